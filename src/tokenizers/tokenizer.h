// tokenizer.json read and applied: text to ids and back, with the ids of the `tokenizers` package.
//
//   text ─► added tokens cut out ─► normalizer ─► pre-tokenizer ─► model ─► post-processor ─► ids
//   ids ─► tokens ─► decoder ─► text
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizers/span.h"

namespace plimsoll::tokenizers {

struct TokenizerParts;
struct TokenizerSource;

/// A tokenizer whose model is BPE, byte-level (GPT-2, Llama-3, Qwen, SmolLM, RoBERTa) or over characters with
/// byte fallback (Llama-2, Mistral), WordPiece (BERT, DistilBERT, MiniLM) or Unigram (XLM-RoBERTa, CamemBERT,
/// T5, ALBERT). Immutable; every call may come from any thread.
class Tokenizer {
 public:
  /// Reads a tokenizer.json with what the files beside it add (tokenizer_source.h), or the one in a
  /// directory. Errors: kBadData that names the file and the field, for broken files and for kinds that are
  /// not supported (WordLevel, a regular expression that is not one of the public models'); kIo.
  static Result<std::unique_ptr<Tokenizer>> open(const std::string& path);
  /// The same from the document's text alone; `source` names it in errors.
  static Result<std::unique_ptr<Tokenizer>> parse(std::string_view json, const std::string& source);
  /// The same from files that are read.
  static Result<std::unique_ptr<Tokenizer>> build(const TokenizerSource& source);
  ~Tokenizer();

  /// Appends the ids of `text` to `ids`; with `add_special_tokens` also those of the post-processor (<s> and
  /// the like). Invalid UTF-8 counts as U+FFFD, one per maximal subpart, as Python's errors="replace". A
  /// character without a token (WordPiece: a word; Unigram: a run of them) becomes the model's unknown token,
  /// or, of BPE, vanishes where it names none, as in the package. The file's `truncation` and `padding` are
  /// not applied: as with transformers, a text is encoded whole. Errors: kBadData where the unknown token is
  /// needed and is not in the vocabulary; `ids` is then as before.
  Status encode(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const;
  /// The same of a text and its pair (premise and hypothesis, …), each encoded by itself, as the package does
  /// with encode(text, pair). `type_ids`, unless null: for each id appended, the segment that the
  /// post-processor gives it (BERT: 0 for the first text, 1 for its pair). Errors: as encode; kBadData where
  /// a template has no place for two texts.
  Status encode_pair(std::string_view text, std::string_view pair, bool add_special_tokens,
                     std::vector<int32_t>& ids, std::vector<int32_t>* type_ids = nullptr) const;
  /// The ids of a text, or of a text and its pair, with special tokens, at most `max_tokens` of them. Where
  /// they would be more, the texts lose tokens at their ends: the longer one first, until both are as long;
  /// of an odd number that is left, the longer one gets one more (of equal ones the pair). Special tokens
  /// stay. As transformers with truncation=True. `type_ids`: as encode_pair. Errors: as encode_pair;
  /// kInvalidArgument where `max_tokens` are fewer than the special tokens.
  Status encode_within(std::string_view text, std::optional<std::string_view> pair, size_t max_tokens,
                       std::vector<int32_t>& ids, std::vector<int32_t>* type_ids = nullptr) const;
  /// Appends the ids of a text, or of a text and its pair, that were encoded without special tokens, with the
  /// special tokens where the post-processor has them. `type_ids`: as encode_pair. Errors: kBadData where a
  /// template has no place for two texts.
  Status join(std::span<const int32_t> text, std::optional<std::span<const int32_t>> pair,
              std::vector<int32_t>& ids, std::vector<int32_t>* type_ids = nullptr) const;
  /// How many special tokens a text gets, or a pair.
  [[nodiscard]] size_t num_special_tokens(bool is_pair) const;
  /// The same ids as encode, and for each of them in `ends` the byte of `text`, as it was given, where its
  /// token ends. A token that ends inside a character ends with that character; where normalization changed
  /// the text, with the characters that it was made from. What is put before a text ends with its first
  /// character; special tokens before it end at 0, those behind it at its size. Never decreases.
  Status encode_with_ends(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                          std::vector<size_t>& ends) const;
  /// The same ids as encode, and for each of them in `spans` where its token lies in `text`, as it was given:
  /// from the first to the last character that it was made from, so tokens of one character's bytes have the
  /// same. Special tokens are empty stretches at the text's ends.
  Status encode_with_spans(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids,
                           std::vector<Span>& spans) const;
  /// Appends the ids of a piece of a text that was cut by `last_safe_cut`: those of all pieces in order are
  /// the ids of the whole. Special tokens come with the first and the last piece. Errors: as encode.
  Status encode_piece(std::string_view piece, bool first, bool last, bool add_special_tokens,
                      std::vector<int32_t>& ids) const;
  /// A position inside `text`, the last that is found, where it may be cut for encode_piece, whatever follows
  /// it; 0 where there is none. `text` is the start of a text or starts at such a cut. Time goes with the
  /// bytes behind the cut: where it is 0, ask again with twice as much text. Always 0 for normalizers that
  /// replace more than single characters and runs of blanks, and within the words of WordPiece and Unigram.
  [[nodiscard]] size_t last_safe_cut(std::string_view text) const;

  /// XXH3 over all tokens, by id, which of them are special, and the merges in their order, or the scores.
  /// Ids of tokenizers with the same hash mean the same.
  [[nodiscard]] uint64_t vocabulary_hash() const;
  /// The text of `ids`; ids that no token has are left out, as are special tokens where asked. Bytes that are
  /// no UTF-8 become U+FFFD.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids, bool skip_special_tokens) const;

  /// The ids of the added tokens, those that stand outside of tokenizer.json too.
  [[nodiscard]] std::vector<int32_t> added_ids() const;
  /// The largest id + 1.
  [[nodiscard]] int64_t vocab_size() const;
  [[nodiscard]] std::optional<int32_t> id_of(std::string_view token) const;
  /// As it stands in the file ("Ġthe", "▁the", "<0x0A>"); empty where no token has the id.
  [[nodiscard]] std::string_view token(int32_t id) const;
  /// Whether decoding leaves it out when special tokens are skipped.
  [[nodiscard]] bool is_special(int32_t id) const;

 private:
  explicit Tokenizer(std::unique_ptr<const TokenizerParts> parts);
  std::unique_ptr<const TokenizerParts> parts_;
};

/// Decodes one id at a time, as the package's decode_stream: text comes out as soon as it is whole
/// characters, and what a decoder does to the start of a text (a space that it strips) happens once.
class DecodeStream {
 public:
  /// The tokenizer must outlive the stream.
  DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens)
      : tokenizer_(tokenizer), skip_special_tokens_(skip_special_tokens) {}

  /// The text that `id` completes; empty while a character is unfinished.
  std::string push(int32_t id);
  /// What is left at the end: bytes that never became a character, as U+FFFD. The stream is then as new.
  std::string finish();

 private:
  [[nodiscard]] std::string beyond_context(const std::string& text) const;
  const Tokenizer& tokenizer_;
  bool skip_special_tokens_;
  std::vector<int32_t> ids_;  // those whose text is not all out, after some that give them their context
  std::string prefix_;        // the text of the context
  size_t prefix_index_ = 0;   // how many ids are context
};

}  // namespace plimsoll::tokenizers
