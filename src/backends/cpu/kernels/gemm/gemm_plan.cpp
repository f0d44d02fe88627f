// The sizes rest on measurements: packed A and B between the second and the third level of the caches, a
// tile's operands and its part of C in the second, and enough tiles that no thread waits long for the last
// one.
#include "backends/cpu/kernels/gemm/gemm_plan.h"

namespace plimsoll::cpu {
namespace {

// 2 and 4 MiB: what is packed at a time, whatever the number of threads.
constexpr int64_t kFloatsOfA = 512 << 10, kFloatsOfB = 1 << 20;
// This much of k stays together: less fetches C again too often, more spills from the second-level cache.
constexpr int64_t kRunLength = 1024;
constexpr int64_t kMaxTileRows = 192, kMaxTileColumns = 288;

int64_t round_up(int64_t a, int64_t b) { return GemmGranules::div_up(a, b) * b; }

// Cuts `size` into the least number of nearly equal parts, in whole units and of at most `most`.
int64_t even_part(int64_t size, int64_t most, int64_t unit) {
  const int64_t units = GemmGranules::div_up(size, unit),
                parts = GemmGranules::div_up(units, std::max<int64_t>(1, most / unit));
  return GemmGranules::div_up(units, parts) * unit;
}

// Shortens the longer side until there are enough tiles to share out, or until they are too small to be worth
// it.
void cut_tiles(GemmPlan& p) {
  constexpr int64_t kEnough = 16, kMinRows = 48, kMinColumns = 64;
  int64_t rows = kMaxTileRows, columns = kMaxTileColumns;
  for (;;) {
    p.tile_rows = even_part(p.block_rows, rows, kGemmRowUnit);
    p.tile_columns = even_part(p.block_columns, columns, kGemmColumnUnit);
    if (GemmGranules::div_up(p.block_rows, p.tile_rows) *
            GemmGranules::div_up(p.block_columns, p.tile_columns) >=
        kEnough)
      return;
    if (rows <= kMinRows && columns <= kMinColumns) return;
    (rows > kMinRows && (p.tile_rows >= p.tile_columns || columns <= kMinColumns) ? rows : columns) -= 16;
  }
}

}  // namespace

int64_t packed_a_floats(int64_t m, int64_t k) {
  return round_up(std::min(kFloatsOfA, round_up(m, kGemmRowUnit) * k), 16);
}
int64_t packed_b_floats(int64_t n, int64_t k) {
  return round_up(std::min(kFloatsOfB, round_up(n, kGemmColumnUnit) * k), 16);
}

GemmPlan plan_gemm(int64_t m, int64_t n, int64_t k, int64_t k_segment) {
  const GemmGranules granules(k, k_segment);
  GemmPlan p;
  p.block_columns = even_part(n, kFloatsOfB / std::min(k, kRunLength), kGemmColumnUnit);
  const int64_t fit = k * p.block_columns <= kFloatsOfB ? granules.count()
                                                        : kFloatsOfB / (granules.longest() * p.block_columns);
  p.run_granules = even_part(granules.count(), std::min(fit, kRunLength / granules.longest()), 1);
  const int64_t run_k = std::min(k, p.run_granules * granules.longest());
  p.block_rows = even_part(m, kFloatsOfA / run_k, kGemmRowUnit);
  cut_tiles(p);
  return p;
}

}  // namespace plimsoll::cpu
