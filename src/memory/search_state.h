// The state of a branch-and-bound node, with propagation and undo.
//
// Items are placed from the bottom up. floor[s] is the least offset that any item still to be placed in
// section s can have, least[i] the largest floor beneath item i. A section is a machine, its items are jobs
// with release times least[i]: scheduling them in the order of release is exact for one section, so it gives
// the section's true lower bound given the floors; a node dies where that passes the capacity.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "memory/problem.h"

namespace plimsoll::memory {

class SearchState {
 public:
  SearchState(const Problem& problem, int64_t capacity);

  /// least() of an item that is placed.
  static constexpr int64_t kPlaced = std::numeric_limits<int64_t>::max();

  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const Item& item(int32_t i) const { return problem_.items[at(i)]; }
  [[nodiscard]] int64_t capacity() const { return capacity_; }
  [[nodiscard]] int64_t floor(int32_t s) const { return floor_[at(s)]; }
  [[nodiscard]] int64_t remaining(int32_t s) const { return remaining_[at(s)]; }
  [[nodiscard]] int64_t least(int32_t i) const { return least_[at(i)]; }
  /// What section s may still waste.
  [[nodiscard]] int64_t slack(int32_t s) const { return capacity_ - floor(s) - remaining(s); }
  /// Whether some item still to be placed lives in both s and s + 1.
  [[nodiscard]] bool joined(int32_t s) const { return joins_[at(s)] > 0; }
  /// The items of section s that are yet to be placed, in no particular order.
  [[nodiscard]] std::span<const int32_t> members(int32_t s) const {
    return {members_.data() + begin_[at(s)], active_[at(s)]};
  }
  /// Items times sections that they live in.
  [[nodiscard]] int64_t num_members() const { return static_cast<int64_t>(members_.size()); }
  /// The offsets given so far; meaningful for placed items.
  [[nodiscard]] const std::vector<int64_t>& offsets() const { return offsets_; }
  /// Names the sub-problem of sections [first, last): what is to be placed, above which floors.
  [[nodiscard]] uint64_t hash(int32_t first, int32_t last) const;
  /// Members looked at so far: the measure of work.
  [[nodiscard]] int64_t work() const { return work_; }

  /// Propagates the root; false if the capacity is out of reach.
  bool start();
  /// Places item i at least(i); false if that is refuted.
  bool place(int32_t i);
  /// Declares that no item to be placed in s lies below `height`; false if that is refuted.
  bool raise(int32_t s, int64_t height);

  [[nodiscard]] size_t mark() const { return trail_.size(); }
  /// Takes back everything since `mark`.
  void undo(size_t mark);

 private:
  enum class What : int32_t { kFloor, kLeast, kPlace };
  struct Change {
    What what;
    int32_t index;
    int64_t old;
  };

  void set_floor(int32_t s, int64_t height);
  void touch(int32_t s);
  void retire(int32_t s, int32_t i);
  bool propagate();
  bool lift_members(int32_t s);
  void sort_members(int32_t* first, int32_t* last);
  bool check_section(int32_t s);

  const Problem& problem_;
  int64_t capacity_;
  std::vector<int64_t> floor_, remaining_, least_, offsets_;
  std::vector<int32_t> joins_;
  std::vector<size_t> begin_;  ///< section -> where its members begin
  std::vector<int32_t>
      members_;  ///< sections' items: those to be placed, nearly sorted by least, then the others
  std::vector<size_t> active_;    ///< section -> how many are to be placed
  std::vector<uint64_t> starts_;  ///< section -> xor of the keys of items to be placed that start there
  std::vector<Change> trail_;
  std::vector<int32_t> queue_;  ///< sections to be looked at again
  std::vector<uint8_t> queued_;
  int64_t work_ = 0;
};

}  // namespace plimsoll::memory
