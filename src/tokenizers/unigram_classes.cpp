#include "tokenizers/unigram_classes.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizers/charsmap.h"
#include "tokenizers/config_files.h"

namespace plimsoll::tokenizers {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581
constexpr int64_t kMostExtraIds = 100'000;

io::Tree text(std::string_view value) { return io::Tree::of(std::string(value)); }
io::Tree of_type(std::string_view type) { return io::Tree::map({{"type", text(type)}}); }

io::Tree metaspace(bool prefix_space) {
  return io::Tree::map({{"type", text("Metaspace")},
                        {"replacement", text(kMark)},
                        {"prepend_scheme", text(prefix_space ? "always" : "never")},
                        {"split", io::Tree::of(true)}});
}

io::Tree replace(std::string_view pattern, std::string_view content) {
  return io::Tree::map({{"type", text("Replace")},
                        {"pattern", io::Tree::map({{"String", text(pattern)}})},
                        {"content", text(content)}});
}

/// A special token by its field, "" where there is none.
std::string token_of(const ConfigFiles& files, const char* field) {
  const std::string* token = special_text(files, field);
  return token == nullptr ? std::string() : *token;
}

/// How many of T5's sentinels there are.
int64_t num_extra_ids(const ConfigFiles& files) {
  const io::Tree* count = files.config.find("extra_ids");
  const bool is_number = count != nullptr && count->kind == io::Tree::Kind::kInteger;
  return is_number && count->integer >= 0 && count->integer <= kMostExtraIds ? count->integer : 100;
}
std::string extra_id(int64_t number) { return fmt::format("<extra_id_{}>", number); }

/// The first charsmap of a normalizer, or of a sequence of them.
std::optional<io::Tree> charsmap_of(const io::Tree* normalizer) {
  if (normalizer == nullptr || normalizer->kind != io::Tree::Kind::kMap) return std::nullopt;
  const auto is = [](const io::Tree& tree, std::string_view type) {
    const io::Tree* name = tree.find("type");
    return name != nullptr && name->text == type;
  };
  if (is(*normalizer, "Precompiled")) return *normalizer;
  const io::Tree* list = is(*normalizer, "Sequence") ? normalizer->find("normalizers") : nullptr;
  if (list == nullptr) return std::nullopt;
  for (const io::Tree& one : list->items)
    if (is(one, "Precompiled")) return one;
  return std::nullopt;
}

io::Tree albert_normalizer(const ConfigFiles& files, std::optional<io::Tree> charsmap) {
  io::Tree list = io::Tree::list({replace("``", "\""), replace("''", "\"")});
  if (!files.flag("keep_accents", false))
    for (const char* type : {"NFKD", "StripAccents"}) list.items.push_back(of_type(type));
  if (files.flag("do_lower_case", true)) list.items.push_back(of_type("Lowercase"));
  if (charsmap) list.items.push_back(std::move(*charsmap));
  return io::Tree::map({{"type", text("Sequence")}, {"normalizers", std::move(list)}});
}

int64_t unknown_id(TokenizerClass kind, const ConfigFiles& files, const Document& document) {
  if (kind == TokenizerClass::kT5) return 2;
  if (kind == TokenizerClass::kAlbert) return 1;
  if (kind == TokenizerClass::kXlmRoberta) return 3;
  const std::string unknown = token_of(files, "unk_token");
  for (const VocabEntry& entry : document.vocab)
    if (entry.token == unknown) return entry.id;
  return 0;
}

}  // namespace

bool is_unigram_class(TokenizerClass kind) {
  return kind == TokenizerClass::kXlmRoberta || kind == TokenizerClass::kCamembert ||
         kind == TokenizerClass::kT5 || kind == TokenizerClass::kAlbert;
}

void set_unigram_tokens(TokenizerClass kind, ConfigFiles& files) {
  const auto set = [&](std::string_view name, std::string_view token) {
    if (files.config.find(name) == nullptr) files.config.set(name, text(token));
  };
  set("unk_token", "<unk>");
  set("pad_token", "<pad>");
  const bool is_albert = kind == TokenizerClass::kAlbert;
  set("eos_token", is_albert ? "[SEP]" : "</s>");
  if (kind != TokenizerClass::kT5) {
    set("bos_token", is_albert ? "[CLS]" : "<s>");
    set("cls_token", is_albert ? "[CLS]" : "<s>");
    set("sep_token", is_albert ? "[SEP]" : "</s>");
    set("mask_token", is_albert ? "[MASK]" : "<mask>");
  }
  if (kind == TokenizerClass::kCamembert) {
    const io::Tree* mask = files.config.find("mask_token");
    if (mask->kind == io::Tree::Kind::kString)
      files.config.set("mask_token", io::Tree::map({{"__type", text("AddedToken")},
                                                    {"content", text(mask->text)},
                                                    {"lstrip", io::Tree::of(true)},
                                                    {"normalized", io::Tree::of(false)},
                                                    {"special", io::Tree::of(true)}}));
    files.class_tokens = io::Tree::list({text("<s>NOTUSED"), text("</s>NOTUSED"), text("<unk>NOTUSED")});
  }
  if (kind != TokenizerClass::kT5) return;
  files.class_tokens = io::Tree::list();
  files.class_tokens_mark = "<extra_id_";
  for (int64_t i = 0; i < num_extra_ids(files); ++i) files.class_tokens->items.push_back(text(extra_id(i)));
}

void set_unigram_parts(TokenizerClass kind, const ConfigFiles& files, Document& document) {
  io::Tree& root = document.root;
  auto charsmap = charsmap_of(root.find("normalizer"));
  if (kind == TokenizerClass::kAlbert)
    root.set("normalizer", albert_normalizer(files, std::move(charsmap)));
  else
    root.set("normalizer", charsmap ? std::move(*charsmap) : io::Tree());
  const bool prefix_space = kind == TokenizerClass::kT5 || files.flag("add_prefix_space", true);
  root.set("model", io::Tree::map({{"type", text("Unigram")},
                                   {"unk_id", io::Tree::of(unknown_id(kind, files, document))},
                                   {"byte_fallback", io::Tree::of(false)}}));
  root.set("pre_tokenizer",
           io::Tree::map(
               {{"type", text("Sequence")},
                {"pretokenizers", io::Tree::list({of_type("WhitespaceSplit"), metaspace(prefix_space)})}}));
  root.set("decoder", metaspace(prefix_space));
}

Status set_unigram_template(TokenizerClass kind, const ConfigFiles& files,
                            const std::vector<NamedToken>& named, Document& document) {
  const io::Tree* before = document.root.find("post_processor");
  const bool is_albert = kind == TokenizerClass::kAlbert, is_t5 = kind == TokenizerClass::kT5;
  if (is_albert && before != nullptr && !before->is_null()) return Ok{};
  io::Tree tokens = io::Tree::map();
  const auto enter = [&](const char* field, std::string_view name) -> Status {
    const std::string token = token_of(files, field);
    const auto id = id_of_token(token, named, document);
    if (!id)
      return Error{ErrorCode::kBadData,
                   fmt::format("{} is '{}', which the tokenizer does not have", field, token.substr(0, 60)),
                   files.folder + "/tokenizer_config.json", "name one that it has"};
    tokens.set(name, io::Tree::map({{"id", text(name)},
                                    {"ids", io::Tree::list({io::Tree::of(*id)})},
                                    {"tokens", io::Tree::list({text(name)})}}));
    return Ok{};
  };
  constexpr const char *kFirst = "first", *kLast = "last";
  if (!is_t5) PLIMSOLL_TRY(enter(is_albert ? "cls_token" : "bos_token", kFirst));
  PLIMSOLL_TRY(enter(is_albert ? "sep_token" : "eos_token", kLast));
  const auto piece = [](const char* what, std::string_view id, int64_t type) {
    return io::Tree::map({{what, io::Tree::map({{"id", text(id)}, {"type_id", io::Tree::of(type)}})}});
  };
  const int64_t second = is_albert ? 1 : 0;
  std::vector<io::Tree> single;
  if (!is_t5) single.push_back(piece("SpecialToken", kFirst, 0));
  single.push_back(piece("Sequence", "A", 0));
  single.push_back(piece("SpecialToken", kLast, 0));
  std::vector<io::Tree> pair = single;
  if (!is_t5 && !is_albert) pair.push_back(piece("SpecialToken", kLast, 0));
  pair.push_back(piece("Sequence", "B", second));
  pair.push_back(piece("SpecialToken", kLast, second));
  document.root.set("post_processor", io::Tree::map({{"type", text("TemplateProcessing")},
                                                     {"single", io::Tree::list(std::move(single))},
                                                     {"pair", io::Tree::list(std::move(pair))},
                                                     {"special_tokens", std::move(tokens)}}));
  return Ok{};
}

Result<Document> unigram_document(TokenizerClass kind, const SentencePieceModel& model, ConfigFiles& files) {
  set_unigram_tokens(kind, files);
  Document document;
  document.has_scores = true;
  const auto add = [&document](std::string token, double score) {
    document.vocab.push_back({std::move(token), static_cast<int64_t>(document.vocab.size()), score});
  };
  size_t first = 0;  // of the model's pieces
  if (kind == TokenizerClass::kXlmRoberta) {
    for (const char* name : {"bos_token", "pad_token", "eos_token", "unk_token"})
      add(token_of(files, name), 0);
    first = 3;
  } else if (kind == TokenizerClass::kCamembert) {
    add("<s>NOTUSED", 0);
    add(token_of(files, "pad_token"), 0);
    add("</s>NOTUSED", 0);
    add(token_of(files, "unk_token"), 0);
    add("<unk>NOTUSED", -100);
    first = 1;
  }
  for (size_t i = first; i < model.pieces.size(); ++i) {
    const Piece& piece = model.pieces[i];
    if (!std::isfinite(piece.score))
      return Error{
          ErrorCode::kBadData, fmt::format("piece {} has a score that is no finite number", i), {}, {}};
    add(piece.text, static_cast<double>(piece.score));
  }
  if (kind == TokenizerClass::kXlmRoberta || kind == TokenizerClass::kCamembert)
    add(token_of(files, "mask_token"), 0);
  if (kind == TokenizerClass::kT5)
    for (int64_t i = num_extra_ids(files); i > 0; --i) add(extra_id(i - 1), 0);
  document.root = io::Tree::map({{"version", text("1.0")}});
  if (!model.charsmap.empty())
    document.root.set("normalizer",
                      io::Tree::map({{"type", text("Precompiled")},
                                     {"precompiled_charsmap", text(encode_base64(model.charsmap))}}));
  set_unigram_parts(kind, files, document);
  return document;
}

}  // namespace plimsoll::tokenizers
