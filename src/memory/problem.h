// The inner form of an assignment: time in sections, sizes in units.
//
// A section is a largest set of buffers that live at one time; two buffers overlap in time exactly where they
// share a section, and each lives in a run of neighbouring ones. There are at most as many as buffers.
//
//   time      0   3   5   9      births and deaths        a: [0,5)  b: [3,9)  c: [5,9)
//   sections  |  0    | 1 |      0 = {a, b}, 1 = {b, c}: [0,3) = {a} lies within section 0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/at.h"
#include "memory/buffer.h"

namespace plimsoll::memory {

/// A buffer in sections [first, last) and units.
struct Item {
  int32_t first = 0;
  int32_t last = 0;
  int64_t size = 0;
  int64_t alignment = 1;
  double lifetime = 1;  ///< in the times of the input
};

/// Buffers of size 0 are left out. Offsets of items times `unit` are bytes.
struct Problem {
  std::vector<Item> items;
  std::vector<int64_t> source;  ///< item -> index of its buffer
  std::vector<int64_t> load;    ///< section -> sum of the sizes alive
  int64_t unit = 1;             ///< bytes; every justified offset is a multiple of it
  int64_t bound = 0;            ///< the largest load
  int64_t bound_bytes = 0;      ///< the lower bound in bytes
  bool aligned = false;         ///< whether some alignment is not 1

  [[nodiscard]] int32_t num_sections() const { return static_cast<int32_t>(load.size()); }
};

/// Builds the inner form. Precondition: check_buffers.
Problem make_problem(std::span<const Buffer> buffers);

/// The least multiple of `alignment` that is >= offset.
inline int64_t align_up(int64_t offset, int64_t alignment) {
  return alignment == 1 ? offset : (offset + alignment - 1) / alignment * alignment;
}

/// Offsets of the items, in units, and the top that they reach.
struct Packing {
  std::vector<int64_t> offsets;
  int64_t height = 0;
  int64_t steps = 0;  ///< a measure of the work it took
};

}  // namespace plimsoll::memory
