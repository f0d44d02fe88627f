#include "tokenizers/config_files.h"

#include <utility>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::tokenizers {

Result<io::Tree> read_config_object(const std::string& path, ErrorCode missing) {
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kConfigLimits.max_bytes, missing));
  auto tree = io::parse_json(text, kConfigLimits);
  if (!tree) return std::move(tree).error().at(path);
  if (tree->kind != io::Tree::Kind::kMap)
    return Error{ErrorCode::kBadData, "no JSON object", path, "it should be as save_pretrained writes it"};
  return tree;
}

Result<io::Tree> read_config_object_if_there(const std::string& path) {
  return io::is_file(path) ? read_config_object(path, ErrorCode::kIo) : io::Tree();
}

const std::string* token_text(const io::Tree* field) {
  if (field != nullptr && field->kind == io::Tree::Kind::kMap) field = field->find("content");
  return field != nullptr && field->kind == io::Tree::Kind::kString ? &field->text : nullptr;
}

}  // namespace plimsoll::tokenizers
