// All kinds become one list of pieces: ids, the text, ids.
#include "data/tokenizer/post_processor.h"

#include <fmt/format.h>

namespace plimsoll::tokenizer {

Result<PostProcessor> PostProcessor::build(const Field& field) {
  PostProcessor result;
  if (!field.absent()) PLIMSOLL_TRY(result.add(field, 0));
  return result;
}

Status PostProcessor::add(const Field& field, int depth) {
  PLIMSOLL_ASSIGN(const std::string type, field.type());
  if (type == "ByteLevel") return Ok{};
  if (type == "Sequence") {
    if (depth > 8) return field.error("is nested too deep");
    const Field list = field.member("processors");
    PLIMSOLL_TRY(list.check_list());
    for (size_t i = 0; i < list.num_items(); ++i) PLIMSOLL_TRY(add(list.item(i), depth + 1));
    return Ok{};
  }
  const bool around = type == "RobertaProcessing" || type == "BertProcessing";
  if (type != "TemplateProcessing" && !around)
    return field.member("type").error(
        fmt::format("is '{}'; supported post-processors are TemplateProcessing, ByteLevel, "
                    "RobertaProcessing, BertProcessing and Sequence",
                    type.substr(0, 60)));
  if (!pieces_.empty())
    return field.error("is a second one that adds tokens, which the package cannot apply either");
  return around ? add_around(field) : add_template(field);
}

Status PostProcessor::add_template(const Field& field) {
  const Field single = field.member("single");
  PLIMSOLL_TRY(single.check_list());
  if (single.num_items() > 1000) return single.error("has more than 1000 pieces");
  int texts = 0;
  for (size_t i = 0; i < single.num_items(); ++i) {
    const Field piece = single.item(i);
    PLIMSOLL_TRY(piece.check_map());
    if (const Field sequence = piece.member("Sequence"); sequence.tree) {
      PLIMSOLL_ASSIGN(const std::string name, sequence.member("id").string());
      if (name != "A") return sequence.member("id").expected("A, the only text there is");
      if (++texts > 1) return sequence.error("repeats the text");
      pieces_.push_back({.is_text = true});
      continue;
    }
    const Field special = piece.member("SpecialToken");
    PLIMSOLL_ASSIGN(const std::string name, special.member("id").string());
    const Field tokens = field.member("special_tokens");
    const Field ids = tokens.member(name).member("ids");
    if (!tokens.tree || !tokens.tree->find(name))
      return special.member("id").error(
          fmt::format("names '{}', which special_tokens lacks", name.substr(0, 60)));
    PLIMSOLL_TRY(ids.check_list());
    pieces_.emplace_back();
    for (size_t k = 0; k < ids.num_items(); ++k) {
      PLIMSOLL_ASSIGN(const int64_t id, ids.item(k).integer(0, INT32_MAX));
      pieces_.back().ids.push_back(static_cast<int32_t>(id));
    }
  }
  if (texts == 0) return single.error("has no place for the text");
  return Ok{};
}

/// "cls": ["<s>", 0] before, "sep": ["</s>", 2] behind.
Status PostProcessor::add_around(const Field& field) {
  for (const char* name : {"cls", "sep"}) {
    const Field token = field.member(name);
    PLIMSOLL_TRY(token.check_list());
    PLIMSOLL_ASSIGN(const int64_t id, token.item(1).integer(0, INT32_MAX));
    pieces_.push_back({.ids = {static_cast<int32_t>(id)}});
  }
  pieces_.insert(pieces_.begin() + 1, {.is_text = true});
  return Ok{};
}

}  // namespace plimsoll::tokenizer
