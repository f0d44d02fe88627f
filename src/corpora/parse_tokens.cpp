#include "corpora/parse_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "corpora/json_members.h"
#include "corpora/packed_row.h"

namespace plimsoll::corpora {
namespace {

using Wrong = std::optional<std::string>;
using Borders = Wrong (PackedRow::*)(std::string_view, std::span<const int32_t>);

constexpr int32_t kNoTargetLabel = -100;

Wrong integers(std::string_view name, std::string_view list, std::vector<int32_t>& out) {
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
Wrong mask_by(std::string_view name, std::string_view list, const std::vector<int32_t>& ids,
              std::vector<uint8_t>& in_loss, Counts counts) {
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
Wrong check_labels(std::string_view list, const std::vector<int32_t>& ids) {
  std::vector<int32_t> labels;
  if (list.empty() || integers("labels", list, labels)) return std::nullopt;  // told elsewhere
  for (size_t i = 0; i < std::min(ids.size(), labels.size()); ++i)
    if (labels[i] != kNoTargetLabel && labels[i] != ids[i])
      return fmt::format("\"labels\" holds {} where \"input_ids\" holds {}, expected the same or -100",
                         labels[i], ids[i]);
  return std::nullopt;
}

/// Where documents begin, by every member that says it.
Wrong find_borders(const TokenMembers& m, PackedRow& row) {
  struct Source {
    std::string_view name, list;
    Borders take;
  };
  const Source sources[] = {{"seq_lengths", m.seq_lengths, &PackedRow::by_lengths},
                            {"position_ids", m.position_ids, &PackedRow::by_positions},
                            {"cu_seqlens", m.cu_seqlens, &PackedRow::by_bounds},
                            {"cu_seq_lens_q", m.cu_seq_lens_q, &PackedRow::by_bounds},
                            {"seq_idx", m.seq_idx, &PackedRow::by_numbers}};
  std::vector<int32_t> values;
  for (const Source& source : sources) {
    if (source.list.empty()) continue;
    if (auto wrong = integers(source.name, source.list, values)) return wrong;
    if (auto wrong = (row.*source.take)(source.name, values)) return wrong;
  }
  // 0 and 1 tell padding alone.
  if (m.attention_mask.empty() || integers("attention_mask", m.attention_mask, values)) return std::nullopt;
  const bool counts = std::any_of(values.begin(), values.end(), [](int32_t v) { return v > 1; });
  return counts ? row.by_numbers("attention_mask", values) : std::nullopt;
}

/// Leaves padding away; `begins` then count among what is kept, and its documents' ends go to `out`.
void compact(std::span<const uint8_t> seen, std::span<const size_t> begins, const ParsedTokens& out) {
  size_t kept = 0, document = 0;
  for (size_t i = 0; i < out.ids.size(); ++i) {
    if (document < begins.size() && begins[document] == i) {
      if (document++ > 0) out.ends.push_back(kept);
    }
    if (!seen.empty() && seen[i] == 0) continue;
    if (!out.in_loss.empty()) out.in_loss[kept] = out.in_loss[i];
    out.ids[kept++] = out.ids[i];
  }
  if (begins.size() > 1) out.ends.push_back(kept);
  out.ids.resize(kept);
  if (!out.in_loss.empty()) out.in_loss.resize(kept);
}

}  // namespace

std::optional<std::string> parse_tokens(const TokenMembers& members, const ParsedTokens& out) {
  std::vector<int32_t>& ids = out.ids;
  std::vector<uint8_t>& in_loss = out.in_loss;
  in_loss.clear();
  out.ends.clear();
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
  PackedRow row(ids.size(), seen);
  if (auto wrong = find_borders(members, row)) return wrong;
  compact(seen, row.is_packed() ? std::span(row.begins()) : std::span<const size_t>(), out);
  if (std::find(in_loss.begin(), in_loss.end(), 0) == in_loss.end()) in_loss.clear();
  return std::nullopt;
}

}  // namespace plimsoll::corpora
