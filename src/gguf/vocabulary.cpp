#include "gguf/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "gguf/special_tokens.h"
#include "io/file.h"
#include "tokenizers/config_files.h"
#include "tokenizers/sentencepiece.h"
#include "tokenizers/split_rules.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/tokenizer_source.h"

namespace plimsoll::gguf {
namespace {

/// llama.cpp's numbers; those of pieces in a sentencepiece model are the same.
enum TokenKind : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

constexpr float kNoScore = -10000.0F, kAddedScore = -1000.0F;
constexpr int64_t kMostBytes = int64_t{1} << 30;
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, the space of sentencepiece

/// "<0x0A>".
bool is_byte(std::string_view token) {
  const auto hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
  };
  return token.size() == 6 && token.starts_with("<0x") && hex(token[3]) && hex(token[4]) && token[5] == '>';
}

/// Added tokens that are controls by their looks, whatever the files say.
bool looks_special(std::string_view token) {
  const auto within = [&](std::string_view begin, std::string_view end) {
    return token.starts_with(begin) && token.ends_with(end);
  };
  return token == "<pad>" || token == "<mask>" || token == "<2mass>" || token == "[@BOS@]" ||
         within("<|", "|>") || within("<\xEF\xBD\x9C", "\xEF\xBD\x9C>") || within("<unused", ">");
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// The stages of a pre-tokenizer, sequences taken apart.
void stages_of(const io::Tree* tree, std::vector<const io::Tree*>& stages) {
  if (tree == nullptr || tree->is_null()) return;
  const io::Tree* list = tree->find("pretokenizers");
  if (list == nullptr) return stages.push_back(tree);
  for (const io::Tree& item : list->items) stages_of(&item, stages);
}

std::string_view type_of(const io::Tree& tree) {
  const io::Tree* type = tree.find("type");
  return type == nullptr ? std::string_view() : std::string_view(type->text);
}

bool is_true(const io::Tree& tree, std::string_view field, bool if_absent) {
  const io::Tree* value = tree.find(field);
  return value == nullptr || value->kind != io::Tree::Kind::kBool ? if_absent : value->boolean;
}

/// llama.cpp's name of the rules by which a byte-level tokenizer cuts words; empty where it has none.
std::string_view pre_tokenizer_name(const io::Tree& root) {
  using tokenizers::SplitRule;
  std::vector<const io::Tree*> stages;
  stages_of(root.find("pre_tokenizer"), stages);
  if (stages.empty() || type_of(*stages.back()) != "ByteLevel") return "";
  const bool gpt2 = is_true(*stages.back(), "use_regex", true);
  if (stages.size() == 1) return gpt2 ? "gpt-2" : "";
  if (stages.size() > 2) return "";
  const io::Tree& first = *stages.front();
  if (type_of(first) == "Digits") return gpt2 && is_true(first, "individual_digits", false) ? "smollm" : "";
  const io::Tree* pattern = first.find("pattern");
  const io::Tree* regex = pattern == nullptr ? nullptr : pattern->find("Regex");
  if (gpt2 || regex == nullptr) return "";
  const auto rule = tokenizers::recognise_split_rule(regex->text);
  if (!rule) return "";
  switch (*rule) {
    case SplitRule::kGpt2:
      return "gpt-2";
    case SplitRule::kLlama3:
      return "llama-bpe";
    case SplitRule::kQwen2:
      return "qwen2";
    case SplitRule::kQwenMarks:
      return "qwen35";
    case SplitRule::kGpt4o:
      return "gpt-4o";
    case SplitRule::kTekken:
      return "tekken";
    case SplitRule::kLongDigits:
      break;
  }
  return "";
}

class Vocabulary {
 public:
  Vocabulary(std::string folder, int64_t vocab_size)
      : folder_(std::move(folder)), vocab_size_(static_cast<size_t>(vocab_size)) {}

  Status read() {
    PLIMSOLL_ASSIGN(auto source, tokenizers::TokenizerSource::read(folder_));
    const std::string path = source.file;
    PLIMSOLL_ASSIGN(tokenizer_, tokenizers::Tokenizer::build(source));
    document_ = std::move(source.document);
    if (document_.has_scores)
      return Error{ErrorCode::kInvalidArgument, "gguf: a Unigram tokenizer cannot be written", path,
                   "llama.cpp's kinds that are written are BPE over bytes and over characters"};
    if (tokenizer_->vocab_size() > static_cast<int64_t>(vocab_size_))
      return Error{
          ErrorCode::kBadData,
          fmt::format("the tokenizer has {} tokens, the model {}", tokenizer_->vocab_size(), vocab_size_),
          path, "take both from the same place; the files beside tokenizer.json name tokens too"};
    const io::Tree* model = document_.root.find("model");
    falls_back_ = model != nullptr && is_true(*model, "byte_fallback", false);
    if (const io::Tree* unknown = model == nullptr ? nullptr : model->find("unk_token"))
      unknown_ = unknown->text;
    return Ok{};
  }

  /// Over characters, as Llama 2's; else over bytes.
  [[nodiscard]] bool is_sentencepiece() const { return falls_back_; }

  Status add_byte_level(Metadata& metadata) {
    const std::string_view pre = pre_tokenizer_name(document_.root);
    if (pre.empty())
      return Error{ErrorCode::kInvalidArgument, "gguf: llama.cpp has no name for this pre-tokenizer",
                   folder_ + "/tokenizer.json",
                   "it knows those of gpt2, llama3, qwen2, qwen3, smollm, gpt4o and tekken"};
    take_tokens();
    metadata.add_text("tokenizer.ggml.pre", pre);
    metadata.add_texts("tokenizer.ggml.tokens", tokens_);
    metadata.add_i32s("tokenizer.ggml.token_type", kinds_);
    std::vector<std::string> merges;
    merges.reserve(document_.merges.size());
    // A space within a part would cut the line at the wrong place: it is written as U+0120.
    for (const auto& [left, right] : document_.merges)
      merges.push_back(replaced(left, " ", "\xC4\xA0") + " " + replaced(right, " ", "\xC4\xA0"));
    metadata.add_texts("tokenizer.ggml.merges", merges);
    return Ok{};
  }

  Status add_sentencepiece(Metadata& metadata) {
    take_tokens();
    scores_.assign(vocab_size_, kNoScore);
    if (io::is_file(folder_ + "/tokenizer.model"))
      PLIMSOLL_TRY(take_pieces());
    else
      score_by_merges();
    metadata.add_text("tokenizer.ggml.pre", "default");
    metadata.add_texts("tokenizer.ggml.tokens", tokens_);
    metadata.add_f32s("tokenizer.ggml.scores", scores_);
    metadata.add_i32s("tokenizer.ggml.token_type", kinds_);
    return Ok{};
  }

  Status add_special(Metadata& metadata) const {
    const auto id_of = [&](const std::string& text) -> std::optional<int64_t> {
      const auto id = tokenizer_->id_of(text);
      return id ? std::optional<int64_t>(*id) : std::nullopt;
    };
    return add_special_tokens(folder_, &document_.root, id_of, static_cast<int64_t>(vocab_size_), metadata);
  }

 private:
  void take_tokens() {
    tokens_.resize(vocab_size_);
    kinds_.assign(vocab_size_, kNormal);
    for (size_t id = 0; id < vocab_size_; ++id) {
      tokens_[id] = tokenizer_->token(static_cast<int32_t>(id));
      if (falls_back_ && is_byte(tokens_[id])) kinds_[id] = kByte;
      if (falls_back_ && !unknown_.empty() && tokens_[id] == unknown_) kinds_[id] = kUnknown;
      if (!tokens_[id].empty()) continue;
      tokens_[id] = fmt::format("[PAD{}]", id);
      kinds_[id] = kUnused;
    }
    for (const int32_t id : tokenizer_->added_ids()) {
      const std::string content(tokenizer_->token(id));
      const auto at = static_cast<size_t>(id);
      const bool control = tokenizer_->is_special(id) || looks_special(content);
      if (kinds_[at] != kUnknown) kinds_[at] = control ? kControl : kUserDefined;
      tokens_[at] = control ? content : replaced(content, kSpaceMark, " ");
      added_.push_back(at);
    }
  }

  /// The pieces of tokenizer.model have scores and kinds of their own; what was added since is over them.
  Status take_pieces() {
    const std::string path = folder_ + "/tokenizer.model";
    PLIMSOLL_ASSIGN(const std::string bytes, io::read_small_file(path, kMostBytes));
    auto model = tokenizers::parse_sentencepiece(bytes);
    if (!model) return std::move(model).error().at(path);
    const auto& pieces = model->pieces;
    for (size_t id = 0; id < std::min(vocab_size_, pieces.size()); ++id) {
      const tokenizers::Piece& piece = pieces[id];
      scores_[id] = piece.score;
      if (std::find(added_.begin(), added_.end(), id) != added_.end() && piece.kind == kNormal)
        scores_[id] = kAddedScore;
      else
        kinds_[id] = piece.kind == kUserDefined ? kNormal : piece.kind;
    }
    for (const size_t id : added_)
      if (id >= pieces.size()) scores_[id] = kAddedScore;
    return Ok{};
  }

  /// llama.cpp joins the neighbours with the best score first, BPE those of the first merge: the score of a
  /// token is its merge's rank, negated.
  void score_by_merges() {
    std::map<std::string, size_t, std::less<>> ranks;
    for (size_t rank = 0; rank < document_.merges.size(); ++rank)
      ranks.emplace(document_.merges[rank].first + document_.merges[rank].second, rank);
    for (size_t id = 0; id < vocab_size_; ++id) {
      const auto rank = ranks.find(tokens_[id]);
      if (kinds_[id] == kNormal)
        scores_[id] =
            rank == ranks.end() ? -static_cast<float>(ranks.size()) : -static_cast<float>(rank->second);
      else if (kinds_[id] != kUnused)
        scores_[id] = kinds_[id] == kUserDefined ? kAddedScore : 0;
    }
  }

  std::string folder_;
  size_t vocab_size_;
  tokenizers::Document document_;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer_;
  bool falls_back_ = false;
  std::string unknown_;
  std::vector<std::string> tokens_;
  std::vector<int32_t> kinds_;
  std::vector<float> scores_;
  std::vector<size_t> added_;
};

}  // namespace

Result<VocabularyNote> add_vocabulary(const std::string& folder, const std::string& architecture,
                                      int64_t vocab_size, Metadata& metadata) {
  if (tokenizers::tokenizer_file(folder).empty()) {
    metadata.add_text("tokenizer.ggml.model", "none");
    // The one family whose sizes have it anyway is llama's.
    if (architecture != "llama") metadata.add_u32(architecture + ".vocab_size", vocab_size);
    const auto nothing = [](const std::string&) { return std::optional<int64_t>(); };
    PLIMSOLL_TRY(add_special_tokens(folder, nullptr, nothing, vocab_size, metadata));
    return VocabularyNote{"none", "there is no tokenizer that is read: the file takes ids alone"};
  }
  Vocabulary vocabulary(folder, vocab_size);
  PLIMSOLL_TRY(vocabulary.read());
  const std::string kind = vocabulary.is_sentencepiece() ? "llama" : "gpt2";
  metadata.add_text("tokenizer.ggml.model", kind);
  PLIMSOLL_TRY(vocabulary.is_sentencepiece() ? vocabulary.add_sentencepiece(metadata)
                                             : vocabulary.add_byte_level(metadata));
  PLIMSOLL_TRY(vocabulary.add_special(metadata));
  return VocabularyNote{kind, ""};
}

}  // namespace plimsoll::gguf
