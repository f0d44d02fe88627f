// Many short lists in one vector: what a vector of vectors is, without an allocation each.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace plimsoll {

/// Lists by number, made once.
template <typename T>
class Lists {
 public:
  Lists() = default;
  /// `count` lists; `each(add)` calls `add(list, item)` for all items, twice the same. Items keep that order.
  template <typename Each>
  Lists(size_t count, const Each& each) : ends_(count) {
    each([&](size_t list, const T&) { ++ends_[list]; });
    std::vector<size_t> next(count);
    std::exclusive_scan(ends_.begin(), ends_.end(), next.begin(), size_t{0});
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
    items_.resize(count == 0 ? 0 : ends_.back());
    each([&](size_t list, const T& item) { items_[next[list]++] = item; });
  }

  [[nodiscard]] size_t size() const { return ends_.size(); }
  [[nodiscard]] std::span<const T> operator[](size_t list) const {
    const size_t begin = list == 0 ? 0 : ends_[list - 1];
    return std::span(items_).subspan(begin, ends_[list] - begin);
  }
  /// One list more.
  void push_back(std::span<const T> list) {
    items_.insert(items_.end(), list.begin(), list.end());
    ends_.push_back(items_.size());
  }

 private:
  std::vector<size_t> ends_;
  std::vector<T> items_;
};

}  // namespace plimsoll
