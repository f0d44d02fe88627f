#include "data/text/parse_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "data/text/json_members.h"

namespace plimsoll::text {
namespace {

constexpr int32_t kNoTargetLabel = -100;

std::optional<std::string> integers(std::string_view name, std::string_view list, std::vector<int32_t>& out) {
  if (!is_list(list)) return fmt::format("\"{}\" is {}, expected a list", name, type_name(list));
  out.clear();
  ListItems items(list);
  for (std::string_view item; items.next(item);) {
    int32_t value = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc() || end != item.data() + item.size())
      return fmt::format("\"{}\" holds {}, expected integers", name, item.substr(0, 40));
    out.push_back(value);
  }
  return std::nullopt;
}

/// Where the member's value counts as a target, into `in_loss`; `counts(id, value)` decides.
template <typename Counts>
std::optional<std::string> mask_by(std::string_view name, std::string_view list,
                                   const std::vector<int32_t>& ids, std::vector<uint8_t>& in_loss,
                                   Counts counts) {
  if (list.empty()) return std::nullopt;
  std::vector<int32_t> values;
  if (auto wrong = integers(name, list, values)) return wrong;
  if (values.size() != ids.size())
    return fmt::format("\"{}\" has {} values, \"input_ids\" {}", name, values.size(), ids.size());
  in_loss.resize(ids.size(), 1);
  for (size_t i = 0; i < ids.size(); ++i) in_loss[i] = in_loss[i] != 0 && counts(values[i]);
  return std::nullopt;
}

/// Labels that are other tokens are of a task that there is not.
std::optional<std::string> check_labels(std::string_view list, const std::vector<int32_t>& ids) {
  std::vector<int32_t> labels;
  if (list.empty() || integers("labels", list, labels)) return std::nullopt;  // told elsewhere
  for (size_t i = 0; i < std::min(ids.size(), labels.size()); ++i)
    if (labels[i] != kNoTargetLabel && labels[i] != ids[i])
      return fmt::format("\"labels\" holds {} where \"input_ids\" holds {}, expected the same or -100",
                         labels[i], ids[i]);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> parse_tokens(const TokenMembers& members, std::vector<int32_t>& ids,
                                        std::vector<uint8_t>& in_loss) {
  in_loss.clear();
  if (auto wrong = integers("input_ids", members.input_ids, ids)) return wrong;
  if (const auto least = std::min_element(ids.begin(), ids.end()); least != ids.end() && *least < 0)
    return fmt::format("\"input_ids\" holds {}, expected ids from 0 on", *least);
  if (auto wrong = check_labels(members.labels, ids)) return wrong;
  const auto is_one = [](int32_t value) { return value != 0; };
  const auto is_label = [](int32_t value) { return value != kNoTargetLabel; };
  if (auto wrong = mask_by("labels", members.labels, ids, in_loss, is_label)) return wrong;
  if (auto wrong = mask_by("completion_mask", members.completion_mask, ids, in_loss, is_one)) return wrong;
  if (auto wrong = mask_by("assistant_masks", members.assistant_masks, ids, in_loss, is_one)) return wrong;
  std::vector<uint8_t> seen;
  if (auto wrong = mask_by("attention_mask", members.attention_mask, ids, seen, is_one)) return wrong;
  size_t kept = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!seen.empty() && seen[i] == 0) continue;
    if (!in_loss.empty()) in_loss[kept] = in_loss[i];
    ids[kept++] = ids[i];
  }
  ids.resize(kept);
  if (!in_loss.empty()) in_loss.resize(kept);
  if (std::find(in_loss.begin(), in_loss.end(), 0) == in_loss.end()) in_loss.clear();
  return std::nullopt;
}

}  // namespace plimsoll::text
