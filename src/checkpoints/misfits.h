// Describes the tensors of a file that do not fit a model.
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::checkpoints {

/// "[2, 3]"
inline std::string extents_text(const std::vector<int64_t>& extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

/// "3 missing (a [2, 3], b [4], …)", appended to a list of such; `describe` gives the words of an item.
template <typename Items, typename Describe>
void add_misfits(std::string& text, const Items& items, const std::string& kind, Describe&& describe) {
  constexpr size_t kShown = 3;
  if (items.empty()) return;
  text += fmt::format("{}{} {} (", text.empty() ? "" : "; ", items.size(), kind);
  for (size_t i = 0; i < std::min(items.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + describe(items[i]);
  text += items.size() > kShown ? ", …)" : ")";
}

}  // namespace plimsoll::checkpoints
