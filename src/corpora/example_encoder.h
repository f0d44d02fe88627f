// Examples to ids and to what of them is a target: the tokenizer, the chat template and the loss' scope.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "corpora/example.h"
#include "corpora/invalid_utf8.h"
#include "templates/chat_template.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::corpora {

/// Which tokens are targets of the loss. A text's all are, in every scope.
enum class LossScope : uint8_t {
  kAuto,          ///< of a conversation the assistant's turns, of a prompt and completion the completion
  kAll,           ///< all
  kCompletions,   ///< what follows the prompt; of a conversation without one the assistant's turns
  kAssistant,     ///< the assistant's turns; of a plain prompt and completion the completion
  kAllAssistant,  ///< the assistant's turns, those within a prompt too; of a plain prompt and completion all
  kTrl,           ///< as TRL by default: all of a conversation, of a prompt and completion the completion
};
/// "auto", "all", "completions", "assistant", "all_assistant", "trl".
std::optional<LossScope> parse_loss_scope(std::string_view name);

/// Behind which documents the end-of-text token is written, as a target.
/// Source of kTrl: TRL's SFTTrainer._prepare_dataset (add_eos), trl/trainer/sft_trainer.py at 00313f2.
enum class AppendEnd : uint8_t {
  kAuto,    ///< a completion behind a prompt that is a text, unless it ends with it
  kAlways,  ///< all; a conversation unless its template has written it, perhaps with blanks behind it
  kNever,
  kTrl,  ///< as kAuto, and lines that hold a text; conversations are their template's business
};
/// "auto", "true", "false", "trl".
std::optional<AppendEnd> parse_append_end(std::string_view name);

struct EncoderOptions {
  LossScope loss = LossScope::kAuto;
  /// What the tokenizer's post-processor adds (<s> and the like) around texts, prompts and completions; a
  /// chat template writes its own.
  bool add_special_tokens = false;
  /// The token that ends documents; -1: none.
  int32_t append_id = -1;
  AppendEnd append = AppendEnd::kAlways;
  /// Why there is no chat template, for the message about a conversation.
  std::optional<Error> template_error = {};
};

/// What examples are usable in spite of and their owner should know, counted.
struct EncodingRemarks {
  int64_t split_prompts = 0;  ///< the prompt's end falls inside a token, which counts as completion
  int64_t unended = 0;        ///< a completion without an end: the tokenizer names no such token
  int64_t packed_rows = 0;    ///< rows of tokens that were packed already, cut where their documents begin
  int64_t texts_beside = 0;   ///< rows of tokens with a text beside them, which is not read
  int64_t idle_labels = 0;    ///< labels or masks of tokens beside no tokens
  int64_t idle_systems = 0;   ///< a "system" beside a prompt that is a text
  int64_t idle_flags = 0;     ///< messages not to be trained on, where all of the conversation is
  int64_t other_roles = 0;    ///< messages to be trained on that are not the assistant's
  InvalidUtf8 invalid = {};   ///< bytes that are no UTF-8, of all files

  void add(const EncodingRemarks& other) {
    split_prompts += other.split_prompts;
    unended += other.unended;
    packed_rows += other.packed_rows;
    texts_beside += other.texts_beside;
    idle_labels += other.idle_labels;
    idle_systems += other.idle_systems;
    idle_flags += other.idle_flags;
    other_roles += other.other_roles;
    invalid.add(other.invalid);
  }
};
/// A line for each that there is.
std::vector<std::string> remark_lines(const EncodingRemarks& remarks);

struct EncodedExample {
  std::vector<int32_t> ids = {};
  std::vector<uint8_t> in_loss = {};  ///< 1: counts as a target; empty: all do
  std::vector<size_t> ends = {};      ///< where each of several documents ends in ids; empty: it is one
  EncodingRemarks remarks = {};
};

/// Immutable; `encode` may be called from any thread, each with its own Scratch.
class ExampleEncoder {
 public:
  struct Scratch {
    std::vector<size_t> ends = {};
    std::string joined = {};
    templates::ChatText chat = {};
    templates::ChatText prompt_chat = {};
  };

  /// Both outlive the encoder; `chat_template` may be null: conversations are then errors that say so.
  ExampleEncoder(const tokenizers::Tokenizer& tokenizer, const templates::ChatTemplate* chat_template,
                 EncoderOptions options)
      : tokenizer_(tokenizer), template_(chat_template), options_(std::move(options)) {}

  /// Ids and mask of an example, appended to nothing: `out` is overwritten.
  ///   text          encode(text); a piece continues where the last one was cut
  ///   completion    encode(prompt + completion) as one text, so that its ids are those that the model will
  ///                 see; a token with a byte of the completion in it is a target
  ///   tokens        as they are, in documents where the row was packed
  ///   conversation  encode(rendered text) without special tokens, as apply_chat_template(tokenize=True);
  ///                 a token with a byte of a turn in it is a target, unless the message says that it is
  ///                 not trained on ("train": false, "weight": 0)
  /// Returns what is wrong with it, if anything; a failure of ours is never among that.
  std::optional<BadExample> encode(const Example& example, Scratch& scratch, EncodedExample& out) const;

  [[nodiscard]] const tokenizers::Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] const EncoderOptions& options() const { return options_; }

 private:
  [[nodiscard]] bool appends(const Example& example, EncodedExample& out) const;
  /// The end-of-text token behind each document of a packed row that lacks it.
  void end_documents(EncodedExample& out) const;
  std::optional<BadExample> encode_text(const Example& example, EncodedExample& out) const;
  std::optional<BadExample> encode_completion(const Example& example, Scratch& scratch,
                                              EncodedExample& out) const;
  std::optional<BadExample> take_tokens(const Example& example, EncodedExample& out) const;
  std::optional<BadExample> encode_messages(const Example& example, Scratch& scratch,
                                            EncodedExample& out) const;
  /// Renders into scratch.chat, whose spans are then what is in the loss.
  std::optional<BadExample> render(const Example& example, LossScope scope, Scratch& scratch,
                                   EncodingRemarks& remarks) const;
  /// Encodes `whole`, of which the spans are targets.
  std::optional<BadExample> encode_marked(const Example& example, std::string_view whole,
                                          bool add_special_tokens, std::span<const templates::TextSpan> spans,
                                          Scratch& scratch, EncodedExample& out) const;
  const tokenizers::Tokenizer& tokenizer_;
  const templates::ChatTemplate* template_;
  EncoderOptions options_;
};

}  // namespace plimsoll::corpora
