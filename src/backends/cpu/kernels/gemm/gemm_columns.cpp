// By whether k is cut. In one run, all of it is packed for some columns, and A once for all threads. In more,
// a thread keeps its columns from granule to granule and packs A's for itself.
//
// On an Intel Xeon (model 207), two threads, weights from memory, GFLOP/s, before anything was fetched ahead:
// 512 x 9728 x 896 172 to 231, 256 x 151936 x 896 167 to 228, 128 x 9728 x 896 165 to 203; no difference from
// 1,500 columns down. On an EPYC of Zen 5 by fetching ahead: 64 x 151936 x 896 318 to 404, with 256 rows 407
// to 461; in ranges 64 x 896 x 151936 217 to 375, with 256 rows 333 to 433; no difference with 512 rows.
#include "backends/cpu/kernels/gemm/gemm_columns.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm/gemm_tile.h"

namespace plimsoll::cpu {
namespace {

// Columns that are packed at a time, and how many such groups make it worth a thread's while.
constexpr int64_t kOwnColumns = 2 * kGemmColumnUnit, kEnoughOwn = 16;
// More rows gain nothing; fewer columns a task, and packing A for each is more than a little.
constexpr int64_t kMostRows = 256, kLeastRange = 400;
constexpr int64_t kPackedRows = 6 * kGemmRowUnit;

int64_t floats_of(int64_t columns, int64_t k) { return ceil_div(columns * k, 16) * 16; }

// B's columns [j0, j1), k in [s.begin, s.end).
GemmAhead lines_of(const GemmArgs& g, const Granule& s, int64_t j0, int64_t j1) {
  if (g.b.patches != nullptr) return {};
  const int64_t size = ir::bits(g.b.dtype) / 8;
  const auto* b = static_cast<const std::byte*>(g.b.data);
  return fetch_ahead_of(b + (s.begin * g.b.row_stride + j0 * g.b.col_stride) * size, g.b.row_stride,
                        g.b.col_stride, s.end - s.begin, j1 - j0, size);
}

bool in_one_run(const GemmArgs& g, const GemmPlan& plan, int64_t granules, int num_threads) {
  return plan.block_rows >= g.m && plan.run_granules >= granules && g.n >= kEnoughOwn * kOwnColumns &&
         num_threads * floats_of(kOwnColumns, g.k) <= packed_b_floats(g.n, g.k);
}

void multiply_in_one_run(const GemmArgs& g, const GemmPlan& plan, int64_t granules, ThreadPool& pool,
                         std::span<std::byte> workspace) {
  GemmBlock all{.args = &g, .m1 = g.m, .n1 = g.n, .end_granule = granules, .padded_rows = plan.block_rows};
  all.a = reinterpret_cast<float*>(workspace.data());
  all.b = all.a + packed_a_floats(g.m, g.k);
  all.padded_columns = kOwnColumns;
  pool.run(ceil_div(g.m, kPackedRows), [&](int64_t strip, int) {
    const int64_t i = strip * kPackedRows;
    gemm_pack_a(all, {.begin = i, .end = std::min(g.m, i + kPackedRows), .end_granule = granules});
  });
  const int64_t ahead = pool.num_threads() * kOwnColumns;
  pool.run(ceil_div(g.n, kOwnColumns), [&](int64_t task, int thread) {
    GemmBlock block = all;
    block.n0 = task * kOwnColumns;
    block.n1 = std::min(g.n, block.n0 + kOwnColumns);
    block.b += thread * floats_of(kOwnColumns, g.k);
    gemm_pack_b(block, {.begin = block.n0, .end = block.n1, .end_granule = granules});
    GemmAhead next = lines_of(g, {0, g.k}, std::min(g.n, block.n0 + ahead), std::min(g.n, block.n1 + ahead));
    for (int64_t i = 0; i < g.m; i += plan.tile_rows) {
      gemm_multiply(block, i, std::min(g.m, i + plan.tile_rows), block.n0, block.n1, next);
      next = {};
    }
  });
}

// Equal ranges of whole vectors' columns, as many as leave each enough, a multiple of the threads.
int64_t range_columns(const GemmArgs& g, int num_threads) {
  const int64_t ranges = std::max<int64_t>(1, g.n / kLeastRange / num_threads) * num_threads;
  return ceil_div(ceil_div(g.n, ranges), 16) * 16;
}

int64_t own_floats(const GemmArgs& g) {
  return floats_of(ceil_div(g.m, kGemmRowUnit) * kGemmRowUnit + kOwnColumns, kGemmGranule);
}

bool in_ranges(const GemmArgs& g, int64_t granules, int num_threads) {
  return granules > 1 && g.m <= kMostRows && g.n >= kLeastRange * num_threads && g.b.col_stride == 1 &&
         num_threads * own_floats(g) <= packed_a_floats(g.m, g.k) + packed_b_floats(g.n, g.k);
}

// One granule of some columns.
void multiply_range(GemmBlock block, const GemmGranules& granules, int64_t begin, int64_t end) {
  const GemmArgs& g = *block.args;
  const int64_t index = block.first_granule;
  gemm_pack_a(block, {.begin = 0, .end = g.m, .first_granule = index, .end_granule = index + 1});
  for (block.n0 = begin; block.n0 < end; block.n0 = block.n1) {
    block.n1 = std::min(end, block.n0 + kOwnColumns);
    gemm_pack_b(block,
                {.begin = block.n0, .end = block.n1, .first_granule = index, .end_granule = index + 1});
    const bool is_last = block.n1 == end;
    const Granule next =
        is_last && index + 1 == granules.count() ? Granule{} : granules[is_last ? index + 1 : index];
    const int64_t from = is_last ? begin : block.n1;
    gemm_multiply(block, 0, g.m, block.n0, block.n1,
                  lines_of(g, next, from, std::min(end, from + kOwnColumns)));
  }
}

void multiply_in_ranges(const GemmArgs& g, const GemmGranules& granules, ThreadPool& pool,
                        std::span<std::byte> workspace) {
  const int64_t columns = range_columns(g, pool.num_threads());
  pool.run(ceil_div(g.n, columns), [&](int64_t task, int thread) {
    GemmBlock block{.args = &g, .m1 = g.m, .padded_columns = kOwnColumns};
    block.padded_rows = ceil_div(g.m, kGemmRowUnit) * kGemmRowUnit;
    block.a = reinterpret_cast<float*>(workspace.data()) + thread * own_floats(g);
    block.b = block.a + floats_of(block.padded_rows, kGemmGranule);
    for (; block.first_granule < granules.count(); ++block.first_granule) {
      block.end_granule = block.first_granule + 1;
      multiply_range(block, granules, task * columns, std::min(g.n, (task + 1) * columns));
    }
  });
}

}  // namespace

bool gemm_by_columns(const GemmArgs& g, const GemmPlan& plan, ThreadPool& pool,
                     std::span<std::byte> workspace) {
  const GemmGranules granules(g.k, g.k_segment);
  if (in_one_run(g, plan, granules.count(), pool.num_threads())) {
    multiply_in_one_run(g, plan, granules.count(), pool, workspace);
    return true;
  }
  if (!in_ranges(g, granules.count(), pool.num_threads())) return false;
  multiply_in_ranges(g, granules, pool, workspace);
  return true;
}

}  // namespace plimsoll::cpu
