// Work partition of gemm: granules of k, blocks that are packed together, tiles that threads claim. Pure
// functions of the shape, the same for every instruction set and any number of threads.
//
//   for each block of columns                       so many that packed B stays within its bytes
//     for each run of granules of k                 about 1024 of k
//       for each block of rows                      so many that packed A stays within its bytes
//         pack B (first block of rows only) and A   one task per granule and strip
//         multiply                                  one task per tile, all granules of the run
#pragma once

#include <algorithm>
#include <cstdint>

namespace plimsoll::cpu {

/// Products per granule: the longest run of k that is summed in registers before it is added to C.
inline constexpr int64_t kGemmGranule = 256;
/// Cuts of rows and columns are multiples of the micro-tiles of every instruction set.
inline constexpr int64_t kGemmRowUnit = 8, kGemmColumnUnit = 48;

/// One granule: products [begin, end) of k.
struct Granule {
  int64_t begin = 0, end = 0;
};

/// The granules of k; they restart with each segment.
class GemmGranules {
 public:
  GemmGranules(int64_t k, int64_t k_segment)
      : k_(k),
        segment_(k_segment > 0 ? std::min(k_segment, k) : k),
        per_segment_(div_up(segment_, kGemmGranule)) {}

  [[nodiscard]] int64_t count() const {
    return k_ / segment_ * per_segment_ + div_up(k_ % segment_, kGemmGranule);
  }
  [[nodiscard]] Granule operator[](int64_t index) const {
    const int64_t start = index / per_segment_ * segment_,
                  begin = start + index % per_segment_ * kGemmGranule;
    return {begin, std::min({begin + kGemmGranule, start + segment_, k_})};
  }
  [[nodiscard]] int64_t longest() const { return std::min(segment_, kGemmGranule); }

  static int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

 private:
  int64_t k_, segment_, per_segment_;
};

/// Sizes of blocks and tiles, in rows, columns and granules.
struct GemmPlan {
  int64_t block_rows = 0, block_columns = 0, run_granules = 0;
  int64_t tile_rows = 0, tile_columns = 0;
};

/// Floats of packed A and packed B that no plan for this shape exceeds, multiples of 16.
int64_t packed_a_floats(int64_t m, int64_t k);
int64_t packed_b_floats(int64_t n, int64_t k);

/// The plan for C [m,n] with k and k_segment as in GemmArgs, all positive.
GemmPlan plan_gemm(int64_t m, int64_t n, int64_t k, int64_t k_segment);

}  // namespace plimsoll::cpu
