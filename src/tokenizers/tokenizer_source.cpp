#include "tokenizers/tokenizer_source.h"

#include <utility>

#include "io/file.h"
#include "tokenizers/class_parts.h"
#include "tokenizers/older_files.h"
#include "tokenizers/unigram_classes.h"

namespace plimsoll::tokenizers {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 28;
constexpr std::string_view kJson = "tokenizer.json";

/// The class that makes parts of a tokenizer.json anew; none where its model is of another kind.
TokenizerClass rebuilding_class(const ConfigFiles& files, const Document& document, std::string_view json) {
  const io::Tree* model = document.root.find("model");
  const io::Tree* type = model == nullptr ? nullptr : model->find("type");
  const bool is_word_piece =
      type == nullptr ? !document.has_merges && !document.has_scores : type->text == "WordPiece";
  const TokenizerClass kind = class_of_json(files, json);
  const bool fits = kind == TokenizerClass::kBert ? is_word_piece
                    : is_unigram_class(kind)      ? document.has_scores
                                                  : type == nullptr || type->text == "BPE";
  return fits ? kind : TokenizerClass::kAny;
}

}  // namespace

std::string tokenizer_file(const std::string& folder) {
  const std::string json = folder + "/" + std::string(kJson);
  return io::is_file(json) ? json : older_file(folder);
}

bool has_tokenizer_files(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "sentencepiece.bpe.model", "spiece.model",
                           "vocab.json", "vocab.txt", "spm.model", "tekken.json"})
    if (io::is_file(folder + "/" + name)) return true;
  return false;
}

Result<TokenizerSource> TokenizerSource::read(const std::string& path) {
  TokenizerSource source;
  PLIMSOLL_ASSIGN(const bool is_folder, io::is_folder(path));
  source.file = is_folder ? tokenizer_file(path) : path;
  if (source.file.empty()) source.file = path + "/" + std::string(kJson);
  const bool is_older = is_older_file(source.file);
  bool has_template = is_older;
  PLIMSOLL_ASSIGN(ConfigFiles files, ConfigFiles::read(io::folder_of(source.file)));
  if (is_older) {
    PLIMSOLL_ASSIGN(source.document, read_older_files(source.file, files));
  } else {
    PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(source.file, kMaxFileBytes));
    PLIMSOLL_ASSIGN(source.document, read_document(text, source.file));
    const TokenizerClass kind = rebuilding_class(files, source.document, text);
    has_template = kind == TokenizerClass::kBert || is_unigram_class(kind);
    set_default_tokens(kind, files);
    if (is_unigram_class(kind))
      set_unigram_parts(kind, files, source.document);
    else
      set_class_parts(kind, files, true, source.document.root);
  }
  PLIMSOLL_ASSIGN(source.named, named_tokens(files, source.document.root.find("added_tokens")));
  source.splits_special_tokens = files.flag("split_special_tokens", false);
  if (has_template) PLIMSOLL_TRY(set_text_ends(files, source.named, source.document));
  return source;
}

}  // namespace plimsoll::tokenizers
