#include "tokenizers/tokenizer_source.h"

#include <filesystem>
#include <utility>

#include "io/file.h"
#include "tokenizers/older_files.h"
#include "tokenizers/tokenizer_class.h"

namespace plimsoll::tokenizers {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 28;
constexpr std::string_view kJson = "tokenizer.json";

io::Tree* member(io::Tree& tree, std::string_view name) {
  for (auto& [key, value] : tree.members)
    if (key == name) return &value;
  return nullptr;
}

/// transformers makes the pre-tokenizers of these classes anew, with tokenizer_config.json's
/// add_prefix_space.
void set_prefix_space(io::Tree& pre_tokenizer, bool on) {
  if (io::Tree* list = member(pre_tokenizer, "pretokenizers"))
    for (io::Tree& item : list->items) set_prefix_space(item, on);
  const io::Tree* type = pre_tokenizer.find("type");
  if (type != nullptr && type->text == "ByteLevel") pre_tokenizer.set("add_prefix_space", io::Tree::of(on));
}

void apply_prefix_space(const ConfigFiles& files, io::Tree& root) {
  const io::Tree* on = files.config.find("add_prefix_space");
  io::Tree* pre_tokenizer = member(root, "pre_tokenizer");
  if (on == nullptr || on->kind != io::Tree::Kind::kBool || pre_tokenizer == nullptr) return;
  const TokenizerClass kind = tokenizer_class(files);
  if (kind == TokenizerClass::kGpt2 || kind == TokenizerClass::kQwen2)
    set_prefix_space(*pre_tokenizer, on->boolean);
}

}  // namespace

std::string tokenizer_file(const std::string& folder) {
  const std::string json = folder + "/" + std::string(kJson);
  return io::is_file(json) ? json : older_file(folder);
}

bool has_tokenizer_files(const std::string& folder) {
  for (const char* name :
       {"tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "tekken.json"})
    if (io::is_file(folder + "/" + name)) return true;
  return false;
}

Result<TokenizerSource> TokenizerSource::read(const std::string& path) {
  std::error_code ignored;
  TokenizerSource source;
  const bool is_folder = std::filesystem::is_directory(path, ignored);
  source.file = is_folder ? tokenizer_file(path) : path;
  if (source.file.empty()) source.file = path + "/" + std::string(kJson);
  const bool is_older = is_older_file(source.file);
  PLIMSOLL_ASSIGN(ConfigFiles files, ConfigFiles::read(io::folder_of(source.file)));
  if (is_older) {
    PLIMSOLL_ASSIGN(source.document, read_older_files(source.file, files));
  } else {
    PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(source.file, kMaxFileBytes));
    PLIMSOLL_ASSIGN(source.document, read_document(text, source.file));
    apply_prefix_space(files, source.document.root);
  }
  PLIMSOLL_ASSIGN(source.named, named_tokens(files, source.document.root.find("added_tokens")));
  source.splits_special_tokens = files.splits_special_tokens();
  if (is_older) PLIMSOLL_TRY(set_text_ends(files, source.named, source.document));
  return source;
}

}  // namespace plimsoll::tokenizers
