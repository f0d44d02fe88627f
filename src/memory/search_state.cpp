// Propagation to a fixed point over sections, and the trail that takes it back.
#include "memory/search_state.h"

#include <algorithm>

#include "memory/random.h"

namespace plimsoll::memory {

namespace {

uint64_t item_key(int32_t i) { return mix(static_cast<uint64_t>(i) << 1 | 1); }
uint64_t floor_key(int32_t s, int64_t height) {
  return mix(mix(static_cast<uint64_t>(s) << 1) ^ static_cast<uint64_t>(height));
}

}  // namespace

SearchState::SearchState(const Problem& problem, int64_t capacity)
    : problem_(problem),
      capacity_(capacity),
      floor_(problem.load.size(), 0),
      remaining_(problem.load),
      least_(problem.items.size(), 0),
      offsets_(problem.items.size(), 0),
      joins_(problem.load.size(), 0),
      begin_(problem.load.size() + 1, 0),
      active_(problem.load.size(), 0),
      starts_(problem.load.size(), 0),
      queued_(problem.load.size(), 0) {
  for (const Item& item : problem.items)
    for (int32_t s = item.first; s < item.last; ++s) {
      ++begin_[at(s) + 1];
      joins_[at(s)] += s + 1 < item.last;
    }
  for (size_t s = 0; s < problem.load.size(); ++s) begin_[s + 1] += begin_[s];
  members_.resize(begin_.back());
  std::vector<size_t> next = begin_;
  for (int32_t i = 0; at(i) < problem.items.size(); ++i) {
    starts_[at(item(i).first)] ^= item_key(i);
    for (int32_t s = item(i).first; s < item(i).last; ++s) {
      members_[next[at(s)]++] = i;
      ++active_[at(s)];
    }
  }
}

uint64_t SearchState::hash(int32_t first, int32_t last) const {
  uint64_t h = 0;
  for (int32_t s = first; s < last; ++s) h ^= starts_[at(s)] ^ floor_key(s, floor_[at(s)]);
  return h;
}

void SearchState::touch(int32_t s) {
  if (queued_[at(s)]) return;
  queued_[at(s)] = 1;
  queue_.push_back(s);
}

void SearchState::set_floor(int32_t s, int64_t height) {
  trail_.push_back({What::kFloor, s, floor_[at(s)]});
  floor_[at(s)] = height;
}

bool SearchState::start() {
  for (int32_t s = 0; s < problem_.num_sections(); ++s) touch(s);
  return propagate();
}

bool SearchState::place(int32_t i) {
  const Item& it = item(i);
  const int64_t offset = least_[at(i)];
  trail_.push_back({What::kPlace, i, offset});
  offsets_[at(i)] = offset;
  least_[at(i)] = kPlaced;
  starts_[at(it.first)] ^= item_key(i);
  for (int32_t s = it.first; s < it.last; ++s) {
    set_floor(s, offset + it.size);
    remaining_[at(s)] -= it.size;
    joins_[at(s)] -= s + 1 < it.last;
    retire(s, i);
    touch(s);
  }
  return propagate();
}

/// Moves item i behind those to be placed. Undone in reverse order, each is found where it was left.
void SearchState::retire(int32_t s, int32_t i) {
  int32_t* const first = members_.data() + begin_[at(s)];
  int32_t* const last = first + --active_[at(s)];
  std::swap(*std::find(first, last, i), *last);
}

bool SearchState::raise(int32_t s, int64_t height) {
  set_floor(s, height);
  touch(s);
  return propagate();
}

bool SearchState::propagate() {
  bool alive = true;
  for (size_t next = 0; next < queue_.size(); ++next) {
    const int32_t s = queue_[next];
    queued_[at(s)] = 0;
    if (alive && remaining_[at(s)] > 0) alive = lift_members(s) && check_section(s);
  }
  queue_.clear();
  return alive;
}

/// Items of s lie at or above its floor.
bool SearchState::lift_members(int32_t s) {
  const int64_t height = floor_[at(s)];
  for (const int32_t i : members(s)) {
    int64_t& least = least_[at(i)];
    if (least >= height) continue;
    const Item& it = item(i);
    const int64_t lifted = align_up(height, it.alignment);
    if (lifted + it.size > capacity_) return false;
    trail_.push_back({What::kLeast, i, least});
    least = lifted;
    work_ += it.last - it.first;
    for (int32_t t = it.first; t < it.last; ++t)
      if (t != s) touch(t);
  }
  return true;
}

/// Sorts by least. Short lists are nearly sorted already, long ones are not worth the risk of quadratic time.
void SearchState::sort_members(int32_t* first, int32_t* last) {
  constexpr std::ptrdiff_t kShort = 48;
  if (last - first > kShort) {
    std::sort(first, last, [&](int32_t a, int32_t b) { return least_[at(a)] < least_[at(b)]; });
    work_ += 8 * (last - first);
    return;
  }
  for (int32_t* i = first + 1; i < last; ++i) {
    const int32_t moved = *i;
    const int64_t key = least_[at(moved)];
    int32_t* j = i;
    for (; j > first && least_[at(j[-1])] > key; --j) *j = j[-1];
    *j = moved;
  }
}

/// The one-machine bound; the floor follows the least of its items.
bool SearchState::check_section(int32_t s) {
  int32_t* const first = members_.data() + begin_[at(s)];
  int32_t* const last = first + active_[at(s)];
  work_ += last - first;
  sort_members(first, last);
  int64_t top = 0;
  for (const int32_t* i = first; i < last; ++i) top = std::max(top, least_[at(*i)]) + item(*i).size;
  if (top > capacity_) return false;
  if (least_[at(*first)] > floor_[at(s)]) set_floor(s, least_[at(*first)]);
  return true;
}

void SearchState::undo(size_t mark) {
  while (trail_.size() > mark) {
    const Change change = trail_.back();
    trail_.pop_back();
    if (change.what == What::kFloor) {
      floor_[at(change.index)] = change.old;
      continue;
    }
    least_[at(change.index)] = change.old;
    if (change.what == What::kLeast) continue;
    const Item& it = item(change.index);
    starts_[at(it.first)] ^= item_key(change.index);
    for (int32_t s = it.first; s < it.last; ++s) {
      remaining_[at(s)] += it.size;
      joins_[at(s)] += s + 1 < it.last;
      ++active_[at(s)];
    }
  }
}

}  // namespace plimsoll::memory
