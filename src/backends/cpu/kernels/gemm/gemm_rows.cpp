// A task's rows of A and the columns of B that it passes lie in the second-level cache:
//
//   packed once:  B, all of it          each task:  96 rows of A, all of k  ->  its rows of C, tile by tile
#include "backends/cpu/kernels/gemm/gemm_rows.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm/gemm_tile.h"

namespace plimsoll::cpu {
namespace {

/// Fewer rows are a matter of the other cuts; a task has some panels of them, within the second-level cache.
constexpr int64_t kEnoughRows = 4096, kMostTaskRows = 96, kLeastTaskRows = 24, kTaskFloats = 96 << 10;
/// What a task packs of B.
constexpr int64_t kPackedColumns = kGemmColumnUnit;

/// Rows of A that a task packs, all of k; 0: there is no room for enough of them.
int64_t task_rows(const GemmArgs& g, int num_threads) {
  const int64_t room = packed_a_floats(g.m, g.k) / num_threads / 16 * 16;
  const int64_t rows = std::min(std::max(kTaskFloats / g.k, kLeastTaskRows), room / g.k);
  const int64_t units = std::min(kMostTaskRows, rows) / kGemmRowUnit;
  return units * kGemmRowUnit < kLeastTaskRows ? 0 : units * kGemmRowUnit;
}

GemmAhead rows_ahead(const GemmArgs& g, int64_t begin, int64_t end) {
  if (g.a.patches != nullptr || begin >= g.m) return {};
  const int64_t size = ir::bits(g.a.dtype) / 8;
  return fetch_ahead_of(static_cast<const std::byte*>(g.a.data) + begin * g.a.row_stride * size,
                        g.a.col_stride, g.a.row_stride, g.k, std::min(g.m, end) - begin, size);
}

}  // namespace

bool gemm_by_rows(const GemmArgs& g, const GemmPlan& plan, ThreadPool& pool, std::span<std::byte> workspace) {
  const int64_t rows = task_rows(g, pool.num_threads()), granules = GemmGranules(g.k, g.k_segment).count();
  const int64_t columns = round_up(g.n, kGemmColumnUnit);
  if (g.m < kEnoughRows || rows == 0 || columns * g.k > packed_b_floats(g.n, g.k)) return false;
  GemmBlock all{
      .args = &g, .n1 = g.n, .end_granule = granules, .padded_rows = rows, .padded_columns = columns};
  all.a = reinterpret_cast<float*>(workspace.data());
  all.b = all.a + packed_a_floats(g.m, g.k);
  pool.run(ceil_div(g.n, kPackedColumns), [&](int64_t strip, int) {
    const int64_t j = strip * kPackedColumns;
    gemm_pack_b(all, {.begin = j, .end = std::min(g.n, j + kPackedColumns), .end_granule = granules});
  });
  const int64_t own = round_up(rows * g.k, 16), ahead = pool.num_threads() * rows;
  pool.run(ceil_div(g.m, rows), [&](int64_t task, int thread) {
    GemmBlock block = all;
    block.m0 = task * rows;
    block.m1 = std::min(g.m, block.m0 + rows);
    block.a += thread * own;
    gemm_pack_a(block, {.begin = block.m0, .end = block.m1, .end_granule = granules});
    GemmAhead next = rows_ahead(g, block.m0 + ahead, block.m1 + ahead);
    for (int64_t j = 0; j < g.n; j += plan.tile_columns) {
      gemm_multiply(block, block.m0, block.m1, j, std::min(g.n, j + plan.tile_columns), next);
      next = {};
    }
  });
  return true;
}

}  // namespace plimsoll::cpu
