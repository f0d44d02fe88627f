// Cuts C into tiles by its shape alone and lets the pool's threads claim them. Each tile packs what it needs into
// its thread's own scratch: no barrier, and no word shared between the threads but the tile counter.
#include "backends/cpu/kernels/gemm.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm_tile.h"
#include "base/check.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

struct Grid {
  int64_t tile_rows = 0, tile_columns = 0, num_rows = 0, num_columns = 0;

  GemmTile tile(int64_t index, int64_t m, int64_t n) const {
    const int64_t i = index % num_rows * tile_rows, j = index / num_rows * tile_columns;
    return {.m0 = i, .m1 = std::min(m, i + tile_rows), .n0 = j, .n1 = std::min(n, j + tile_columns)};
  }
};

// Cycles per element, measured: a panel of A that is read in place, copied; a panel of B copied, transposed. The
// tile's products take rows * columns / 32 cycles per k.
double cost(const GemmArgs& g, int64_t rows, int64_t columns) {
  const double pack_a = g.a.col_stride == 1 ? 0.1 : 0.3, pack_b = g.b.col_stride == 1 ? 0.15 : 0.35;
  const auto tiles = static_cast<double>(div_up(g.m, rows) * div_up(g.n, columns));
  const double covered = tiles * static_cast<double>(rows * columns) / static_cast<double>(g.m * g.n);
  return covered * (1.0 + 32 * pack_a / static_cast<double>(columns) + 32 * pack_b / static_cast<double>(rows)) + 0.5 / tiles;
}

Grid choose_grid(const GemmArgs& g) {
  Grid best;
  double best_cost = 0;
  for (int64_t columns_cut = 1; columns_cut <= 4096; ++columns_cut) {
    const int64_t columns = round_up(div_up(g.n, columns_cut), 32);
    if (columns > kGemmMaxTileColumns) continue;
    for (int64_t rows_cut = 1; rows_cut <= 4096; ++rows_cut) {
      const int64_t rows = round_up(div_up(g.m, rows_cut), 12);
      if (rows > 512) continue;
      const double c = cost(g, rows, columns);
      if (best_cost == 0 || c < best_cost) {
        best_cost = c;
        best = {rows, columns, div_up(g.m, rows), div_up(g.n, columns)};
      }
      if (rows <= 48) break;
    }
    if (columns <= 32) break;
  }
  return best;
}

int64_t thread_floats(int64_t n, int64_t k) {
  return kGemmPanelFloats + round_up(std::min(n, kGemmMaxTileColumns), 32) * round_up(std::min(k, kGemmGranule), 16);
}

// No products: C keeps its value or becomes zero, and the bias is added.
void only_bias(const GemmArgs& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      float& c = g.c[i * g.c_row_stride + j];
      if (!g.accumulate) c = 0.0f;
      if (g.bias) c += g.bias[j];
    }
}

}  // namespace

int64_t gemm_workspace_bytes(int64_t /*m*/, int64_t n, int64_t k, int num_threads) {
  return num_threads * thread_floats(n, k) * static_cast<int64_t>(sizeof(float));
}

void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) return only_bias(args);
  PLIMSOLL_CHECK(static_cast<int64_t>(workspace.size()) >= gemm_workspace_bytes(args.m, args.n, args.k, pool.num_threads()));
  PLIMSOLL_CHECK(reinterpret_cast<uintptr_t>(workspace.data()) % 64 == 0);
  const Grid grid = choose_grid(args);
  float* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t stride = thread_floats(args.n, args.k);
  pool.run(grid.num_rows * grid.num_columns, [&](int64_t index, int thread) {
    gemm_tile(args, grid.tile(index, args.m, args.n), scratch + thread * stride);
  });
}

}  // namespace plimsoll::cpu
