#include "tokenizers/older_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/host.h"
#include "io/file.h"
#include "tokenizers/bert_classes.h"
#include "tokenizers/class_parts.h"
#include "tokenizers/config_files.h"
#include "tokenizers/sentencepiece.h"
#include "tokenizers/unicode.h"
#include "tokenizers/unigram_classes.h"

namespace plimsoll::tokenizers {
namespace {

constexpr int64_t kMostVocabBytes = int64_t{256} << 20, kMostModelBytes = int64_t{64} << 20;
constexpr size_t kMostPieceBytes = 256;  // bounds what looking for its merges takes

constexpr const char* kModelNames[] = {"tokenizer.model", "sentencepiece.bpe.model", "spiece.model"};

io::Tree text(std::string_view value) { return io::Tree::of(std::string(value)); }

Error bad(const std::string& file, std::string what, std::string hint) {
  return {ErrorCode::kBadData, std::move(what), file, std::move(hint)};
}

/// What transformers' AutoTokenizer writes when it saves the tokenizer again.
constexpr const char* kSaveAgain =
    "write a tokenizer.json: transformers' AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)";

Status take_vocab(const std::string& file, Document& document) {
  PLIMSOLL_ASSIGN(const std::string json, io::read_small_file(file, kMostVocabBytes));
  if (const size_t start = json.find_first_not_of(" \t\r\n"); start != json.npos && json[start] == '[')
    return bad(file, "no map from tokens to ids", kSaveAgain);
  // As a document whose vocabulary it is, so that one reader knows all that may be wrong with it.
  PLIMSOLL_ASSIGN(Document read, read_document(R"({"model": {"vocab": )" + json + "}}", file));
  if (!read.has_vocab) return bad(file, "no map from tokens to ids", kSaveAgain);
  document.vocab = std::move(read.vocab);
  document.has_vocab = true;
  return Ok{};
}

/// A line a merge, two tokens with a blank between; the first may be "#version: …".
Status take_merges(const std::string& file, Document& document) {
  PLIMSOLL_ASSIGN(const std::string all, io::read_small_file(file, kMostVocabBytes));
  document.has_merges = true;
  int64_t number = 0;
  for (std::string_view rest = all; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const size_t blank = line.find(' ');
    if (blank == line.npos || line.find(' ', blank + 1) != line.npos)
      return bad(fmt::format("{}: line {}", file, number),
                 fmt::format("'{}' is no merge: two tokens with a blank between", line.substr(0, 60)),
                 kSaveAgain);
    document.merges.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  }
  return Ok{};
}

Result<Document> read_vocab_and_merges(const std::string& file, ConfigFiles& files) {
  const TokenizerClass kind = tokenizer_class(files);
  if (kind != TokenizerClass::kGpt2 && kind != TokenizerClass::kQwen2)
    return bad(
        file, "vocab.json and merges.txt do not say how a text is cut into words",
        "name the class in tokenizer_config.json (tokenizer_class: GPT2Tokenizer or Qwen2Tokenizer), or "
        "put the model's tokenizer.json in the same folder");
  Document document;
  PLIMSOLL_TRY(take_vocab(file, document));
  PLIMSOLL_TRY(take_merges(files.folder + "/merges.txt", document));
  set_default_tokens(kind, files);
  document.root = io::Tree::map({{"version", text("1.0")}});
  set_class_parts(kind, files, false, document.root);
  return document;
}

std::string_view without_spaces_behind(std::string_view line) {
  while (!line.empty()) {
    const CodePoint c = decode_before(line.data() + line.size());
    if (!(bert_classes()[c.value] & kBertSpace)) break;
    line.remove_suffix(static_cast<size_t>(c.length));
  }
  return line;
}

/// A token a line, without spaces behind it, its number the id; of a token on several lines the last one
/// counts, and an empty line is the empty token, as the package's WordPiece reads the file.
Result<Document> read_vocab_lines(const std::string& file, ConfigFiles& files) {
  if (tokenizer_class(files) != TokenizerClass::kBert)
    return bad(file, "vocab.txt does not say how a text is cut into words",
               "name the class in tokenizer_config.json (tokenizer_class: BertTokenizer), or put the model's "
               "tokenizer.json in the same folder");
  PLIMSOLL_ASSIGN(const std::string all, io::read_small_file(file, kMostVocabBytes));
  Document document;
  document.has_vocab = true;
  std::unordered_map<std::string_view, int64_t> last;
  int64_t number = 0;
  for (size_t at = 0; at < all.size(); ++number) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view line = std::string_view(all).substr(at, end - at);
    if (valid_utf8_prefix(line) != line.size())
      return bad(fmt::format("{}: line {}", file, number + 1), "the token is no UTF-8", kSaveAgain);
    last[without_spaces_behind(line)] = number;
    at = end + 1;
  }
  document.vocab.reserve(last.size());
  for (const auto& [token, id] : last) document.vocab.push_back({std::string(token), id});
  std::sort(document.vocab.begin(), document.vocab.end(),
            [](const VocabEntry& a, const VocabEntry& b) { return a.id < b.id; });
  set_default_tokens(TokenizerClass::kBert, files);
  document.root = io::Tree::map({{"version", text("1.0")}});
  set_class_parts(TokenizerClass::kBert, files, false, document.root);
  return document;
}

Status check_kind(const SentencePieceModel& model, bool is_unigram, const std::string& file) {
  const auto refuse = [&](const char* what) { return bad(file, what, kSaveAgain); };
  for (const Piece& piece : model.pieces)
    if (piece.text.size() > kMostPieceBytes || valid_utf8_prefix(piece.text) != piece.text.size())
      return refuse("the sentencepiece model has a piece that is no UTF-8 or too long");
  if (model.treats_whitespace_as_suffix)
    return refuse("the sentencepiece model has blanks after words, which is not read");
  if (is_unigram) {
    if (model.model_type == 1) return Ok{};
    return refuse("the sentencepiece model is no Unigram, which the folder's tokenizer class needs");
  }
  if (model.model_type == 1)
    return bad(
        file, "the sentencepiece model is Unigram, and its pieces alone do not say their ids",
        "name the class in tokenizer_config.json (tokenizer_class: XLMRobertaTokenizer, "
        "CamembertTokenizer, T5Tokenizer or AlbertTokenizer), or put the model's tokenizer.json in the "
        "same folder");
  if (model.model_type != 2)
    return refuse("the sentencepiece model is neither BPE nor Unigram, and no other kind is read");
  if (!model.charsmap.empty())
    return refuse("the sentencepiece model normalizes characters, which is not read");
  if (model.removes_extra_whitespaces)
    return refuse("the sentencepiece model removes extra blanks, which transformers does not");
  if (!model.byte_fallback) return refuse("the sentencepiece model has no bytes to fall back on");
  return Ok{};
}

/// Every way to put a piece together from two others, in the order of the pieces, then of the left one's
/// length: the ids of BPE's training are its merges' order.
void add_merges(Document& document) {
  std::unordered_map<std::string_view, int64_t> ids;
  for (const VocabEntry& entry : document.vocab) ids.emplace(entry.token, entry.id);
  document.has_merges = true;
  for (const VocabEntry& entry : document.vocab) {
    const std::string_view piece = entry.token;
    for (size_t cut = 1; cut < piece.size(); ++cut) {
      if ((static_cast<unsigned char>(piece[cut]) & 0xC0) == 0x80) continue;
      const std::string_view left = piece.substr(0, cut), right = piece.substr(cut);
      if (ids.contains(left) && ids.contains(right)) document.merges.emplace_back(left, right);
    }
  }
}

/// Control and user-defined pieces are added tokens, where the files name no extra ones.
void name_pieces(const SentencePieceModel& model, ConfigFiles& files) {
  constexpr int32_t kControl = 3, kUserDefined = 4;
  io::Tree list = io::Tree::list();
  for (const Piece& piece : model.pieces)
    if (piece.kind == kControl || piece.kind == kUserDefined)
      list.items.push_back(io::Tree::map({{"content", text(piece.text)},
                                          {"normalized", io::Tree::of(false)},
                                          {"special", io::Tree::of(piece.kind == kControl)}}));
  files.pieces = std::move(list);
}

Result<Document> read_model(const std::string& file, ConfigFiles& files) {
  PLIMSOLL_ASSIGN(const std::string bytes, io::read_small_file(file, kMostModelBytes));
  auto model = parse_sentencepiece(bytes);
  if (!model) return std::move(model).error().at(file);
  const TokenizerClass kind = tokenizer_class(files);
  const bool is_unigram = is_unigram_class(kind);
  PLIMSOLL_TRY(check_kind(*model, is_unigram, file));
  if (is_unigram) {
    name_pieces(*model, files);
    auto document = unigram_document(kind, *model, files);
    if (!document) return std::move(document).error().at(file);
    return document;
  }
  Document document;
  document.has_vocab = true;
  for (const Piece& piece : model->pieces)
    document.vocab.push_back({piece.text, static_cast<int64_t>(document.vocab.size())});
  add_merges(document);
  document.root = io::Tree::map({{"version", text("1.0")}});
  const bool is_llama = kind == TokenizerClass::kLlama;
  if (!is_llama && model->adds_dummy_prefix)
    note(
        fmt::format("{} is read as LlamaTokenizer reads it, a blank before the first word, as the model was "
                    "trained; AutoTokenizer of transformers 5 leaves the blank out in this folder",
                    file));
  set_class_parts(TokenizerClass::kLlama, files, is_llama || model->adds_dummy_prefix, document.root);
  set_default_tokens(TokenizerClass::kLlama, files);
  name_pieces(*model, files);
  return document;
}

/// [CLS] text [SEP], and its pair of type 1 with another [SEP].
Status set_bert_template(const ConfigFiles& files, const std::vector<NamedToken>& named, Document& document) {
  io::Tree tokens = io::Tree::map();
  std::string names[2];
  for (const size_t which : {0, 1}) {
    const char* const field = which == 0 ? "cls_token" : "sep_token";
    const std::string* token = special_text(files, field);
    const auto id = token == nullptr ? std::nullopt : id_of_token(*token, named, document);
    if (!id)
      return bad(files.folder + "/tokenizer_config.json",
                 fmt::format("{} names no token of the tokenizer", field), "name one that it has");
    names[which] = *token;
    tokens.set(*token, io::Tree::map({{"id", text(*token)},
                                      {"ids", io::Tree::list({io::Tree::of(*id)})},
                                      {"tokens", io::Tree::list({text(*token)})}}));
  }
  const auto piece = [](const char* kind, std::string_view id, int64_t type) {
    return io::Tree::map({{kind, io::Tree::map({{"id", text(id)}, {"type_id", io::Tree::of(type)}})}});
  };
  const io::Tree cls = piece("SpecialToken", names[0], 0), sep = piece("SpecialToken", names[1], 0);
  document.root.set(
      "post_processor",
      io::Tree::map({{"type", text("TemplateProcessing")},
                     {"single", io::Tree::list({cls, piece("Sequence", "A", 0), sep})},
                     {"pair", io::Tree::list({cls, piece("Sequence", "A", 0), sep, piece("Sequence", "B", 1),
                                              piece("SpecialToken", names[1], 1)})},
                     {"special_tokens", std::move(tokens)}}));
  return Ok{};
}

}  // namespace

bool is_older_file(const std::string& path) {
  const auto name = std::filesystem::path(path).filename();
  for (const char* model : kModelNames)
    if (name == model) return true;
  return name == "vocab.json" || name == "vocab.txt";
}

std::string older_file(const std::string& folder) {
  for (const char* model : kModelNames)
    if (io::is_file(folder + "/" + model)) return folder + "/" + model;
  if (io::is_file(folder + "/vocab.json") && io::is_file(folder + "/merges.txt"))
    return folder + "/vocab.json";
  if (io::is_file(folder + "/vocab.txt")) return folder + "/vocab.txt";
  return {};
}

Result<Document> read_older_files(const std::string& file, ConfigFiles& files) {
  if (file.ends_with(".model")) return read_model(file, files);
  return file.ends_with(".txt") ? read_vocab_lines(file, files) : read_vocab_and_merges(file, files);
}

Status set_text_ends(const ConfigFiles& files, const std::vector<NamedToken>& named, Document& document) {
  const TokenizerClass kind = tokenizer_class(files);
  if (kind == TokenizerClass::kBert) return set_bert_template(files, named, document);
  if (is_unigram_class(kind)) return set_unigram_template(kind, files, named, document);
  io::Tree single = io::Tree::list(), tokens = io::Tree::map();
  const auto sequence = [](const char* name) {
    return io::Tree::map(
        {{"Sequence", io::Tree::map({{"id", text(name)}, {"type_id", io::Tree::of(int64_t{0})}})}});
  };
  const auto add = [&](const char* flag_name, const char* token_name) -> Status {
    const std::string* token = special_text(files, token_name);
    if (!files.flag(flag_name, false) || token == nullptr) return Ok{};
    const auto id = id_of_token(*token, named, document);
    if (!id)
      return bad(
          files.folder + "/tokenizer_config.json",
          fmt::format("{} is '{}', which the tokenizer does not have", token_name, token->substr(0, 60)),
          "name one that it has");
    single.items.push_back(io::Tree::map(
        {{"SpecialToken", io::Tree::map({{"id", text(*token)}, {"type_id", io::Tree::of(int64_t{0})}})}}));
    tokens.set(*token, io::Tree::map({{"id", text(*token)},
                                      {"ids", io::Tree::list({io::Tree::of(*id)})},
                                      {"tokens", io::Tree::list({text(*token)})}}));
    return Ok{};
  };
  PLIMSOLL_TRY(add("add_bos_token", "bos_token"));
  const std::vector<io::Tree> before = single.items;
  single.items.push_back(sequence("A"));
  const size_t behind = single.items.size();
  PLIMSOLL_TRY(add("add_eos_token", "eos_token"));
  if (single.items.size() == 1) return Ok{};
  const std::vector<io::Tree> after(single.items.begin() + static_cast<std::ptrdiff_t>(behind),
                                    single.items.end());
  // The package's second text gets the first token again, and a last one of its own.
  io::Tree pair = single;
  pair.items.insert(pair.items.end(), before.begin(), before.end());
  pair.items.push_back(sequence("B"));
  pair.items.insert(pair.items.end(), after.begin(), after.end());
  document.root.set("post_processor", io::Tree::map({{"type", text("TemplateProcessing")},
                                                     {"single", std::move(single)},
                                                     {"pair", std::move(pair)},
                                                     {"special_tokens", std::move(tokens)}}));
  return Ok{};
}

}  // namespace plimsoll::tokenizers
