// All kinds become lists of pieces: ids, the text, ids; and the same of two texts.
#include "tokenizers/post_processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace plimsoll::tokenizers {

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

namespace {

using Pieces = std::vector<PostProcessor::Piece>;

/// The ids of a special token of the template.
Result<std::vector<int32_t>> special_ids(const Field& field, const Field& id) {
  PLIMSOLL_ASSIGN(const std::string name, id.string());
  const Field tokens = field.member("special_tokens");
  const Field ids = tokens.member(name).member("ids");
  if (!tokens.tree || !tokens.tree->find(name))
    return id.error(fmt::format("names '{}', which special_tokens lacks", name.substr(0, 60)));
  PLIMSOLL_TRY(ids.check_list());
  std::vector<int32_t> result;
  for (size_t k = 0; k < ids.num_items(); ++k) {
    PLIMSOLL_ASSIGN(const int64_t value, ids.item(k).integer(0, INT32_MAX));
    result.push_back(static_cast<int32_t>(value));
  }
  return result;
}

Result<int32_t> type_id_of(const Field& piece) {
  const Field type_id = piece.member("type_id");
  if (type_id.absent()) return 0;
  PLIMSOLL_ASSIGN(const int64_t value, type_id.integer(0, INT32_MAX));
  return static_cast<int32_t>(value);
}

/// One of the two lists of a template, `num_texts` of which it may name: A, or A and B. Each text stands at
/// most once.
Result<Pieces> read_template(const Field& field, const Field& list, int num_texts) {
  PLIMSOLL_TRY(list.check_list());
  if (list.num_items() > 1000) return list.error("has more than 1000 pieces");
  Pieces pieces;
  bool seen[2] = {false, false};
  for (size_t i = 0; i < list.num_items(); ++i) {
    const Field piece = list.item(i);
    PLIMSOLL_TRY(piece.check_map());
    const Field sequence = piece.member("Sequence");
    if (!sequence.tree) {
      const Field special = piece.member("SpecialToken");
      PLIMSOLL_ASSIGN(auto ids, special_ids(field, special.member("id")));
      PLIMSOLL_ASSIGN(const int32_t type_id, type_id_of(special));
      pieces.push_back({.type_id = type_id, .ids = std::move(ids)});
      continue;
    }
    const auto name = sequence.member("id").string();
    if (!name) return name.error();
    const bool second = num_texts > 1 && *name == "B";
    if (*name != "A" && !second)
      return sequence.member("id").expected(num_texts > 1 ? "A or B" : "A, the only text there is");
    if (seen[second]) return sequence.error("repeats the text");
    seen[second] = true;
    PLIMSOLL_ASSIGN(const int32_t type_id, type_id_of(sequence));
    pieces.push_back({.is_text = true, .is_second = second, .type_id = type_id});
  }
  return pieces;
}

auto count_texts(const Pieces& pieces) {
  return std::count_if(pieces.begin(), pieces.end(), [](const auto& piece) { return piece.is_text; });
}

}  // namespace

Status PostProcessor::add_template(const Field& field) {
  const Field single = field.member("single"), pair = field.member("pair");
  PLIMSOLL_ASSIGN(pieces_, read_template(field, single, 1));
  if (count_texts(pieces_) == 0) return single.error("has no place for the text");
  takes_pairs_ = false;
  if (pair.absent()) return Ok{};
  PLIMSOLL_ASSIGN(pair_pieces_, read_template(field, pair, 2));
  takes_pairs_ = count_texts(pair_pieces_) == 2;
  return Ok{};
}

/// "cls": ["<s>", 0] before, "sep": ["</s>", 2] behind; between two texts RoBERTa has two, BERT one. BERT's
/// second text and the token behind it are of type 1, everything of RoBERTa is of type 0.
Status PostProcessor::add_around(const Field& field) {
  PLIMSOLL_ASSIGN(const std::string type, field.type());
  std::vector<Piece> tokens;
  for (const char* name : {"cls", "sep"}) {
    const Field token = field.member(name);
    PLIMSOLL_TRY(token.check_list());
    PLIMSOLL_ASSIGN(const int64_t id, token.item(1).integer(0, INT32_MAX));
    tokens.push_back({.ids = {static_cast<int32_t>(id)}});
  }
  const bool is_roberta = type == "RobertaProcessing";
  const int32_t second_type = is_roberta ? 0 : 1;
  const Piece &cls = tokens[0], &sep = tokens[1], first{.is_text = true},
              second{.is_text = true, .is_second = true, .type_id = second_type},
              last{.type_id = second_type, .ids = sep.ids};
  pieces_ = {cls, first, sep};
  pair_pieces_ = {cls, first, sep, second, last};
  if (is_roberta) pair_pieces_.insert(pair_pieces_.begin() + 2, sep);
  return Ok{};
}

}  // namespace plimsoll::tokenizers
