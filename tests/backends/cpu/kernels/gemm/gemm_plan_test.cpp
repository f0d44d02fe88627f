// The cuts of gemm: granules cover k and restart with each segment, packed operands stay within their bytes.
#include "backends/cpu/kernels/gemm/gemm_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace plimsoll::cpu {
namespace {

TEST(GemmGranules, CoverKInOrderAndRestartAtSegments) {
  for (const int64_t k : {1, 16, 255, 256, 257, 1000, 2048})
    for (const int64_t segment : {0, 1, 17, 256, 300, 512, 5000}) {
      const GemmGranules granules(k, segment);
      const int64_t length = segment == 0 ? k : segment;
      int64_t at = 0;
      for (int64_t i = 0; i < granules.count(); ++i) {
        const Granule g = granules[i];
        ASSERT_EQ(g.begin, at) << k << " " << segment;
        ASSERT_EQ(g.end, std::min({k, g.begin + kGemmGranule, (g.begin / length + 1) * length}))
            << k << " " << segment;
        ASSERT_LE(g.end - g.begin, granules.longest());
        at = g.end;
      }
      EXPECT_EQ(at, k) << k << " " << segment;
    }
}

TEST(GemmPlan, PackedOperandsFitWhatIsPlanned) {
  const int64_t sizes[] = {1, 7, 48, 100, 576, 2048, 4099, 49152};
  for (const int64_t m : sizes)
    for (const int64_t n : sizes)
      for (const int64_t k : sizes)
        for (const int64_t segment : {0, 1, 17, 300, 512}) {
          const GemmPlan p = plan_gemm(m, n, k, segment);
          const GemmGranules granules(k, segment);
          ASSERT_GT(p.run_granules, 0);
          for (int64_t first = 0; first < granules.count(); first += p.run_granules) {
            const int64_t last = std::min(granules.count(), first + p.run_granules) - 1;
            const int64_t run = granules[last].end - granules[first].begin;
            ASSERT_LE(run * p.block_rows, packed_a_floats(m, k))
                << m << " " << n << " " << k << " " << segment;
            ASSERT_LE(run * p.block_columns, packed_b_floats(n, k))
                << m << " " << n << " " << k << " " << segment;
            if (first > 16 * p.run_granules) break;
          }
          ASSERT_EQ(p.block_rows % kGemmRowUnit, 0);
          ASSERT_EQ(p.tile_rows % kGemmRowUnit, 0);
          ASSERT_EQ(p.block_columns % kGemmColumnUnit, 0);
          ASSERT_EQ(p.tile_columns % kGemmColumnUnit, 0);
        }
}

TEST(GemmPlan, LargeProductsHaveTilesForEveryThread) {
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{512, 576, 576}, {2048, 288, 288}, {256, 576, 49152}, {49152, 576, 256}}) {
    const GemmPlan p = plan_gemm(m, n, k, 0);
    const int64_t down = GemmGranules::div_up(std::min(m, p.block_rows), p.tile_rows);
    const int64_t across = GemmGranules::div_up(std::min(n, p.block_columns), p.tile_columns);
    EXPECT_GE(down * across, 16) << m << " " << n << " " << k;
  }
}

}  // namespace
}  // namespace plimsoll::cpu
