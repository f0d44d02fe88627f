#include "data/tokenizer/config_files.h"

#include <utility>

#include "io/file.h"
#include "io/json.h"

namespace plimsoll::tokenizer {

Result<Tree> read_config_object(const std::string& path) {
  PLIMSOLL_ASSIGN(const std::string text, read_small_file(path, kConfigLimits.max_bytes));
  auto tree = parse_json(text, kConfigLimits);
  if (!tree) return std::move(tree).error().at(path);
  if (tree->kind != Tree::Kind::kMap)
    return Error{ErrorCode::kBadData, "no JSON object", path, "it should be as save_pretrained writes it"};
  return tree;
}

const std::string* token_text(const Tree* field) {
  if (field != nullptr && field->kind == Tree::Kind::kMap) field = field->find("content");
  return field != nullptr && field->kind == Tree::Kind::kString ? &field->text : nullptr;
}

}  // namespace plimsoll::tokenizer
