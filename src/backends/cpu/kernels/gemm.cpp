// Walks the plan: packs a block's operands, then multiplies its tiles, each time with all threads of the
// pool.
#include "backends/cpu/kernels/gemm.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm_tile.h"
#include "base/check.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kFloat = sizeof(float);
// What one task packs: this many rows of A or columns of B along k, or this much of a granule across all of
// them.
constexpr int64_t kStripRows = 6 * kGemmRowUnit, kStripColumns = kGemmColumnUnit, kStripDepth = 64;

int64_t div_up(int64_t a, int64_t b) { return Granules::div_up(a, b); }

// No products: C keeps its value or becomes zero, and the bias is added.
void only_bias(const GemmArgs& g) {
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      float& c = g.c[i * g.c_row_stride + j];
      if (!g.accumulate) c = 0.0f;
      if (g.bias) c += g.bias[j];
    }
}

// The tasks that pack one operand of a block.
struct Strips {
  int64_t begin, end, first_granule, granules, size;
  bool along_k;

  Strips(const GemmBlock& block, bool of_a)
      : begin(of_a ? block.m0 : block.n0),
        end(of_a ? block.m1 : block.n1),
        first_granule(block.first_granule),
        granules(block.end_granule - block.first_granule),
        size(of_a ? kStripRows : kStripColumns),
        along_k((of_a ? block.args->a.row_stride : block.args->b.col_stride) != 1) {}

  int64_t count() const {
    return along_k ? div_up(end - begin, size) : granules * (kGemmGranule / kStripDepth);
  }
  GemmStrip operator[](int64_t index) const {
    if (along_k) {
      const int64_t at = begin + index * size;
      return {.begin = at,
              .end = std::min(end, at + size),
              .first_granule = first_granule,
              .end_granule = first_granule + granules};
    }
    constexpr int64_t kParts = kGemmGranule / kStripDepth;
    const int64_t granule = first_granule + index / kParts, p = index % kParts * kStripDepth;
    return {.begin = begin,
            .end = end,
            .first_granule = granule,
            .end_granule = granule + 1,
            .p0 = p,
            .p1 = p + kStripDepth};
  }
};

void pack(const GemmBlock& block, bool with_b, ThreadPool& pool) {
  const Strips a(block, true), b(block, false);
  const int64_t of_b = with_b ? b.count() : 0;
  pool.run(of_b + a.count(), [&](int64_t task, int) {
    task < of_b ? gemm_pack_b(block, b[task]) : gemm_pack_a(block, a[task - of_b]);
  });
}

// Neighbours in the order of tiles share their columns of B.
void multiply(const GemmBlock& block, const GemmPlan& plan, ThreadPool& pool) {
  const int64_t down = div_up(block.m1 - block.m0, plan.tile_rows);
  const int64_t across = div_up(block.n1 - block.n0, plan.tile_columns);
  pool.run(down * across, [&](int64_t tile, int) {
    const int64_t i = block.m0 + tile % down * plan.tile_rows, j = block.n0 + tile / down * plan.tile_columns;
    gemm_multiply(block, i, std::min(block.m1, i + plan.tile_rows), j,
                  std::min(block.n1, j + plan.tile_columns));
  });
}

}  // namespace

int64_t gemm_workspace_bytes(int64_t m, int64_t n, int64_t k, int /*num_threads*/) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  return (packed_a_floats(m, k) + packed_b_floats(n, k)) * kFloat;
}

void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) return only_bias(args);
  const GemmPlan plan = plan_gemm(args.m, args.n, args.k, args.k_segment);
  PLIMSOLL_CHECK(static_cast<int64_t>(workspace.size()) >=
                 gemm_workspace_bytes(args.m, args.n, args.k, pool.num_threads()));
  PLIMSOLL_CHECK(reinterpret_cast<uintptr_t>(workspace.data()) % 64 == 0);
  const int64_t granules = Granules(args.k, args.k_segment).count();
  GemmBlock block{.args = &args, .padded_rows = plan.block_rows, .padded_columns = plan.block_columns};
  block.a = reinterpret_cast<float*>(workspace.data());
  block.b = block.a + packed_a_floats(args.m, args.k);
  for (block.n0 = 0; block.n0 < args.n; block.n0 += plan.block_columns) {
    block.n1 = std::min(args.n, block.n0 + plan.block_columns);
    for (block.first_granule = 0; block.first_granule < granules; block.first_granule += plan.run_granules) {
      block.end_granule = std::min(granules, block.first_granule + plan.run_granules);
      for (block.m0 = 0; block.m0 < args.m; block.m0 += plan.block_rows) {
        block.m1 = std::min(args.m, block.m0 + plan.block_rows);
        pack(block, block.m0 == 0, pool);
        multiply(block, plan, pool);
      }
    }
  }
}

}  // namespace plimsoll::cpu
