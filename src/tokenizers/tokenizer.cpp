// Reading the parts, and the path of a text through them.
#include "tokenizers/tokenizer.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <unordered_set>

#include "tokenizers/document.h"
#include "tokenizers/model_kinds.h"
#include "tokenizers/parts.h"
#include "tokenizers/tokenizer_source.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizers {
namespace {

class ModelSink final : public WordSink {
 public:
  ModelSink(const TokenizerParts& parts, ModelState& state, std::vector<int32_t>& ids)
      : parts_(parts), state_(state), ids_(ids) {}
  void word(std::string_view word, const char* readable_end) override {
    parts_.model->encode_word(word, readable_end, parts_.vocabulary, state_, ids_);
  }
  /// An id that stands between words.
  void id(int32_t id) {
    finish();
    ids_.push_back(id);
  }
  void finish() { parts_.model->finish(parts_.vocabulary, state_, ids_); }

 private:
  const TokenizerParts& parts_;
  ModelState& state_;
  std::vector<int32_t>& ids_;
};

Status check_version(const Field& root) {
  PLIMSOLL_TRY(Field(root.tree, "the document", root.source).check_map());
  const Field version = root.member("version");
  if (version.absent()) return Ok{};
  PLIMSOLL_ASSIGN(const std::string text, version.string());
  if (text != "1.0") return version.error(fmt::format("is '{}', expected '1.0'", text.substr(0, 60)));
  return Ok{};
}

/// The model has a row for each id up to the vocabulary's end and no more.
Status check_special_ids(const PostProcessor& post_processor, const Vocabulary& vocabulary,
                         const Field& field) {
  for (const auto* pieces : {&post_processor.pieces(), &post_processor.pair_pieces()})
    for (const PostProcessor::Piece& piece : *pieces)
      for (const int32_t id : piece.ids)
        if (!vocabulary.has(id)) return field.error(fmt::format("adds the id {}, which no token has", id));
  return Ok{};
}

void index_added(TokenizerParts& parts) {
  const auto size = static_cast<size_t>(parts.vocabulary.end_id());
  parts.special.assign(size, false);
  std::unordered_set<std::string_view> special;
  for (const AddedToken& token : parts.added.tokens())
    if (token.special) special.insert(token.content);
  for (const AddedToken& token : parts.added.tokens()) {
    if (token.pattern != token.content) {
      parts.decoded_as.resize(size);
      parts.decoded_as[static_cast<size_t>(token.id)] = token.pattern;
    }
    // In the package a token is special if it reads like one when it is decoded; what normalization changes
    // does not.
    parts.special[static_cast<size_t>(token.id)] = special.contains(token.pattern);
  }
  if (!parts.vocabulary.has_twins()) return;
  for (int32_t id = 0; id < parts.vocabulary.end_id(); ++id)
    if (special.contains(parts.vocabulary.token(id))) parts.special[static_cast<size_t>(id)] = true;
}

uint64_t hash_of(const TokenizerParts& parts, const Document& document) {
  std::string bytes;
  const auto add = [&bytes](std::string_view text) {
    const auto size = static_cast<uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(size >> shift & 0xFF);
    bytes += text;
  };
  for (int32_t id = 0; id < parts.vocabulary.end_id(); ++id) {
    bytes += !parts.vocabulary.has(id) ? '-' : parts.special[static_cast<size_t>(id)] ? '!' : '+';
    add(parts.vocabulary.token(id));
  }
  for (const auto& [left, right] : document.merges) {
    add(left);
    add(right);
  }
  // What else decides which ids a text gets; a member that is absent is as one that is null.
  const auto add_tree = [&](const io::Tree* tree) {
    add(tree == nullptr || tree->is_null() ? std::string() : io::to_json(*tree));
  };
  for (const char* part : {"normalizer", "pre_tokenizer"}) add_tree(document.root.find(part));
  if (const io::Tree* model = document.root.find("model"); model != nullptr)
    for (const char* flag : {"unk_token", "fuse_unk", "byte_fallback", "ignore_merges",
                             "continuing_subword_prefix", "end_of_word_suffix"}) {
      const io::Tree* value = model->find(flag);
      const bool off =
          value != nullptr && (value->kind == io::Tree::Kind::kBool ? !value->boolean : value->text.empty());
      add_tree(off ? nullptr : value);
    }
  if (document.has_scores) {
    for (const VocabEntry& entry : document.vocab)
      bytes.append(reinterpret_cast<const char*>(&entry.score), sizeof entry.score);
    add_tree(document.root.find("model")->find("unk_id"));
  } else if (!document.has_merges) {
    add_tree(document.root.find("model")->find("max_input_chars_per_word"));
  }
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

// A thread gets the state that it gave back: two that swap theirs with every text fetch megabytes from each
// other's processors.
std::unique_ptr<TokenizerParts::State> TokenizerParts::take_state() const {
  const std::thread::id user = std::this_thread::get_id();
  std::unique_ptr<State> state;
  {
    const std::lock_guard lock(mutex);
    const auto own = std::find_if(idle.begin(), idle.end(), [user](const std::unique_ptr<State>& one) {
      return one->last_user == user;
    });
    if (own != idle.end()) std::swap(*own, idle.back());
    if (!idle.empty()) {
      state = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!state) state = std::make_unique<State>();
  state->last_user = user;
  return state;
}

void TokenizerParts::give_back(std::unique_ptr<State> state) const {
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(state));
}

void TokenizerParts::encode_text(std::string_view text, bool starts, State& state,
                                 std::vector<int32_t>& ids) const {
  if (valid_utf8_prefix(text) != text.size()) {
    state.repaired.clear();
    append_repaired(text, state.repaired);
    text = state.repaired;
  }
  ModelSink sink(*this, state.model, ids);
  state.sections.clear();
  added.cut(text, false, state.sections);
  for (const Section& section : state.sections) {
    if (section.id >= 0) {
      sink.id(section.id);
      continue;
    }
    const bool leads = section.text.data() == text.data();
    bool first = leads && starts;
    const std::string_view normalized =
        normalizer.apply(section.text, state.normalized, first, leads && !starts);
    state.inner_sections.clear();
    added.cut(normalized, true, state.inner_sections);
    for (const Section& inner : state.inner_sections) {
      if (inner.id >= 0)
        sink.id(inner.id);
      else
        pre_tokenizer.run(inner.text, first && inner.text.data() == normalized.data(), sink);
    }
  }
  sink.finish();
}

std::string_view TokenizerParts::decoded_token(int32_t id) const {
  const auto index = static_cast<size_t>(id);
  if (index < decoded_as.size() && !decoded_as[index].empty()) return decoded_as[index];
  return vocabulary.token(id);
}

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::open(const std::string& path) {
  PLIMSOLL_ASSIGN(const auto source, TokenizerSource::read(path));
  return build(source);
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::parse(std::string_view json, const std::string& source) {
  TokenizerSource alone{.file = source};
  PLIMSOLL_ASSIGN(alone.document, read_document(json, source));
  return build(alone);
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::build(const TokenizerSource& from) {
  const Document& document = from.document;
  const std::string& source = from.file;
  const Field root{&document.root, "", source};
  PLIMSOLL_TRY(check_version(root));
  const Field model_field = root.member("model");
  PLIMSOLL_TRY(check_model(document, model_field));
  PLIMSOLL_ASSIGN(auto normalizer, Normalizer::build(root.member("normalizer")));
  PLIMSOLL_ASSIGN(auto pre_tokenizer, PreTokenizer::build(root.member("pre_tokenizer")));
  PLIMSOLL_ASSIGN(auto post_processor, PostProcessor::build(root.member("post_processor")));
  PLIMSOLL_ASSIGN(auto decoder, Decoder::build(root.member("decoder")));
  PLIMSOLL_ASSIGN(auto vocabulary, Vocabulary::build(document, source));
  PLIMSOLL_ASSIGN(auto model, build_model(document, model_field, pre_tokenizer.byte_level(), vocabulary));
  PLIMSOLL_ASSIGN(auto added, AddedTokens::build(root.member("added_tokens"), from.named,
                                                 from.splits_special_tokens, normalizer, vocabulary));
  PLIMSOLL_TRY(check_special_ids(post_processor, vocabulary, root.member("post_processor")));
  auto parts = std::unique_ptr<TokenizerParts>(new TokenizerParts{
      .vocabulary = std::move(vocabulary),
      .normalizer = std::move(normalizer),
      .added = std::move(added),
      .pre_tokenizer = std::move(pre_tokenizer),
      .model = std::move(model),
      .post_processor = std::move(post_processor),
      .decoder = std::move(decoder),
      .source = source,
      .decoded_as = {},
      .special = {},
  });
  index_added(*parts);
  parts->hash = hash_of(*parts, document);
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

Error TokenizerParts::unknown_error() const {
  return {ErrorCode::kBadData,
          fmt::format("a character or a word has no token, and {}", model->unknown_problem()),
          source,
          {}};
}

Status Tokenizer::encode(std::string_view text, bool add_special_tokens, std::vector<int32_t>& ids) const {
  return encode_piece(text, true, true, add_special_tokens, ids);
}

Status Tokenizer::encode_piece(std::string_view piece, bool first, bool last, bool add_special_tokens,
                               std::vector<int32_t>& ids) const {
  std::unique_ptr<TokenizerParts::State> state = parts_->take_state();
  const size_t before = ids.size();
  // At once for a long text, by doubling over many short ones.
  if (const size_t expected = before + piece.size() / 4; expected > ids.capacity())
    ids.reserve(std::max(expected, 2 * ids.capacity()));
  constexpr size_t kMuchText = size_t{4} << 20;
  state->num_bytes += piece.size();
  if (state->num_bytes > kMuchText) state->model.cache.widen();
  state->model.unknown_failed = false;
  parts_->around_text(
      first, last, add_special_tokens, [&] { parts_->encode_text(piece, first, *state, ids); },
      [&](const std::vector<int32_t>& special, bool) {
        ids.insert(ids.end(), special.begin(), special.end());
      });
  const bool failed = state->model.unknown_failed;
  parts_->give_back(std::move(state));
  if (!failed) return Ok{};
  ids.resize(before);
  return parts_->unknown_error();
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const int32_t id : ids) {
    if (!parts_->vocabulary.has(id) || (skip_special_tokens && is_special(id))) continue;
    tokens.emplace_back(parts_->decoded_token(id));
  }
  return parts_->decoder.decode(std::move(tokens));
}

int64_t Tokenizer::vocab_size() const { return parts_->vocabulary.end_id(); }
std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  return parts_->vocabulary.find(token);
}
uint64_t Tokenizer::vocabulary_hash() const { return parts_->hash; }
std::string_view Tokenizer::token(int32_t id) const { return parts_->vocabulary.token(id); }
std::vector<int32_t> Tokenizer::added_ids() const {
  std::vector<int32_t> ids;
  for (const AddedToken& token : parts_->added.tokens()) ids.push_back(token.id);
  return ids;
}
bool Tokenizer::is_special(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < parts_->special.size() &&
         parts_->special[static_cast<size_t>(id)];
}

}  // namespace plimsoll::tokenizers
