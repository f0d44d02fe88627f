// A backend's kernels by the ops that they run.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

namespace plimsoll::runtime {

/// Lists made one, sorted by `Kernel::op`.
template <typename Kernel>
std::vector<Kernel> join_kernels(std::initializer_list<std::span<const Kernel>> lists) {
  std::vector<Kernel> all;
  for (const auto list : lists) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end(), [](const Kernel& a, const Kernel& b) { return a.op < b.op; });
  return all;
}

/// The one of `sorted` that runs `op`; null where there is none.
template <typename Kernel>
const Kernel* find_kernel(std::span<const Kernel> sorted, std::string_view op) {
  const auto it = std::lower_bound(sorted.begin(), sorted.end(), op,
                                   [](const Kernel& k, std::string_view name) { return k.op < name; });
  return it != sorted.end() && it->op == op ? &*it : nullptr;
}

}  // namespace plimsoll::runtime
