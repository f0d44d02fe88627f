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

// Few columns per tile cost repeated reading of A, few rows repeated packing of B.
Grid choose_grid(int64_t m, int64_t n) {
  Grid g;
  g.tile_columns = std::min<int64_t>(round_up(n, 32), 192);
  g.num_columns = div_up(n, g.tile_columns);
  g.tile_rows = std::min<int64_t>(m, 512);
  while (g.num_columns * div_up(m, g.tile_rows) < 12 && g.tile_rows > 112) g.tile_rows = round_up(g.tile_rows / 2, 14);
  g.num_rows = div_up(m, g.tile_rows);
  return g;
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
  const Grid grid = choose_grid(args.m, args.n);
  float* scratch = reinterpret_cast<float*>(workspace.data());
  const int64_t stride = thread_floats(args.n, args.k);
  pool.run(grid.num_rows * grid.num_columns, [&](int64_t index, int thread) {
    gemm_tile(args, grid.tile(index, args.m, args.n), scratch + thread * stride);
  });
}

}  // namespace plimsoll::cpu
