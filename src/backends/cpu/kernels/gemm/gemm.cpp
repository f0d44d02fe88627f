// Chooses the kernels: those for bf16 (gemm_bf16.h), or the fp32 ones, for which this file walks the plan:
// packs a block's operands, then multiplies its tiles, each time with all threads of the pool. A C or a bias
// that the kernels cannot write goes through fp32 sums.
#include "backends/cpu/kernels/gemm/gemm.h"

#include <algorithm>

#include "backends/cpu/kernels/gemm/gemm_bf16.h"
#include "backends/cpu/kernels/gemm/gemm_columns.h"
#include "backends/cpu/kernels/gemm/gemm_rows.h"
#include "backends/cpu/kernels/gemm/gemm_tile.h"
#include "backends/cpu/kernels/isa.h"
#include "base/check.h"

namespace plimsoll::cpu {
namespace {

using ir::DType;

constexpr int64_t kFloat = sizeof(float);
// What one task packs: this many rows of A or columns of B along k, or this much of a granule across all of
// them.
constexpr int64_t kStripRows = 6 * kGemmRowUnit, kStripColumns = kGemmColumnUnit, kStripDepth = 64;
// The sums of a low C whose k does not pass in one go: 1 MiB.
constexpr int64_t kSumFloats = 256 << 10, kSumColumns = 1024, kSumRowUnit = 32;

int64_t div_up(int64_t a, int64_t b) { return GemmGranules::div_up(a, b); }
int64_t size_of(DType dtype) { return dtype == DType::kF32 ? kFloat : 2; }

const void* offset(const void* p, DType dtype, int64_t elements) {
  return p == nullptr ? nullptr : static_cast<const std::byte*>(p) + elements * size_of(dtype);
}
void* offset(void* p, DType dtype, int64_t elements) {
  return static_cast<std::byte*>(p) + elements * size_of(dtype);
}

// From that row of A, or column of B, on.
ConstMatrix lines_from(ConstMatrix x, int64_t line, int64_t line_stride) {
  if (x.patches != nullptr || x.codes != nullptr)
    x.first_line += line;
  else
    x.data = offset(x.data, x.dtype, line * line_stride);
  return x;
}

// Rows [i0, i1) and columns [j0, j1) of the product.
GemmArgs part_of(const GemmArgs& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  GemmArgs part = g;
  part.m = i1 - i0;
  part.n = j1 - j0;
  part.a = lines_from(g.a, i0, g.a.row_stride);
  part.b = lines_from(g.b, j0, g.b.col_stride);
  part.c = offset(g.c, g.c_dtype, i0 * g.c_row_stride + j0);
  part.bias = offset(g.bias, g.bias_dtype, j0);
  return part;
}

// No products: C keeps its value or becomes zero, and the bias is added.
void only_bias(const GemmArgs& g) {
  static constexpr float kZeros[64] = {};
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; j += 64) {
      const GemmArgs part = part_of(g, i, i + 1, j, std::min(g.n, j + 64));
      gemm_finish_row(g.accumulate ? static_cast<const float*>(part.c) : kZeros, part, part.c);
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

// The next run's rows of A^T, cut into `parts` that tiles fetch ahead while this run is multiplied. Only sums
// over the pixels of many images are so long that these rows come from memory; others lie in the caches.
GemmAhead next_run(const GemmBlock& block, const GemmPlan& plan, int64_t part, int64_t parts) {
  constexpr int64_t kFromMemory = 8192;
  const GemmArgs& g = *block.args;
  const GemmGranules granules(g.k, g.k_segment);
  const int64_t last = std::min(granules.count(), block.end_granule + plan.run_granules);
  if (g.k < kFromMemory || g.a.row_stride != 1 || last <= block.end_granule) return {};
  const int64_t begin = granules[block.end_granule].begin, depth = granules[last - 1].end - begin,
                from = depth * part / parts, to = depth * (part + 1) / parts;
  const auto* at =
      static_cast<const std::byte*>(offset(g.a.data, g.a.dtype, (begin + from) * g.a.col_stride + block.m0));
  return fetch_ahead_of(at, g.a.col_stride, 1, to - from, block.m1 - block.m0, size_of(g.a.dtype));
}

// Neighbours in the order of tiles share their columns of B.
void multiply(const GemmBlock& block, const GemmPlan& plan, ThreadPool& pool) {
  const int64_t down = div_up(block.m1 - block.m0, plan.tile_rows);
  const int64_t across = div_up(block.n1 - block.n0, plan.tile_columns);
  pool.run(down * across, [&](int64_t tile, int) {
    const int64_t i = block.m0 + tile % down * plan.tile_rows, j = block.n0 + tile / down * plan.tile_columns;
    gemm_multiply(block, i, std::min(block.m1, i + plan.tile_rows), j,
                  std::min(block.n1, j + plan.tile_columns), next_run(block, plan, tile, down * across));
  });
}

// C and bias are f32.
void multiply_in_f32(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  const GemmPlan plan = plan_gemm(args.m, args.n, args.k, args.k_segment);
  if (gemm_by_columns(args, plan, pool, workspace) || gemm_by_rows(args, plan, pool, workspace)) return;
  const int64_t granules = GemmGranules(args.k, args.k_segment).count();
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

// Of one granule, which is added to C as a sum of its own.
bool continues_sums(int64_t k, GemmTypes types) {
  return k <= kGemmGranule && types.c_dtype == DType::kF32 && types.precision != Precision::kBf16;
}

bool on_bf16(const GemmArgs& g) { return g.precision == Precision::kBf16 && gemm_has_bf16(); }

// Whether the kernels write this C with this bias themselves.
bool direct(const GemmArgs& g) {
  if (g.plus_c) return continues_sums(g.k, {g.precision, g.c_dtype});
  if (on_bf16(g)) return g.c_dtype == DType::kF32 || bf16::in_one_run(g);
  return g.c_dtype == DType::kF32 && (g.bias == nullptr || g.bias_dtype == DType::kF32);
}

void multiply_directly(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  GemmArgs g = args;
  g.accumulate = args.accumulate || args.plus_c;
  if (!on_bf16(g)) return multiply_in_f32(g, pool, workspace);
  bf16::gemm(g, pool, workspace, bf16::current_kernels());
}

// Into f32, at `sums` or in C itself; then the bias and the rounding.
void multiply_and_finish(const GemmArgs& g, float* sums, int64_t stride, ThreadPool& pool,
                         std::span<std::byte> workspace) {
  GemmArgs product = g;
  product.c = sums;
  product.c_dtype = DType::kF32;
  product.c_row_stride = stride;
  product.plus_c = false;
  product.bias = nullptr;
  multiply_directly(product, pool, workspace);
  pool.run(g.m, [&](int64_t i, int) {
    gemm_finish_row(sums + i * stride, g, offset(g.c, g.c_dtype, i * g.c_row_stride));
  });
}

int64_t packed_bytes(int64_t m, int64_t n, int64_t k, int num_threads, Precision precision) {
  const int64_t in_f32 = (packed_a_floats(m, k) + packed_b_floats(n, k)) * kFloat;
  if (precision != Precision::kBf16) return in_f32;
  return std::max(in_f32, bf16::shared_bytes(m, n, k) + num_threads * bf16::thread_bytes(m, n, k));
}

int64_t sum_bytes(int64_t m, int64_t n, int64_t k, GemmTypes types) {
  const bool direct = types.plus_c ? continues_sums(k, types) : types.c_dtype == DType::kF32;
  return direct ? 0 : div_up(std::min(kSumFloats, m * n), 16) * 16 * kFloat;
}

// A part of C at a time, whose sums have room.
void multiply_by_parts(const GemmArgs& g, ThreadPool& pool, std::span<std::byte> workspace) {
  const int64_t packed = packed_bytes(g.m, g.n, g.k, pool.num_threads(), g.precision);
  auto* sums = reinterpret_cast<float*>(workspace.data() + packed);
  const int64_t columns = std::min(g.n, kSumColumns), rows = kSumFloats / columns / kSumRowUnit * kSumRowUnit;
  for (int64_t j = 0; j < g.n; j += columns)
    for (int64_t i = 0; i < g.m; i += rows)
      multiply_and_finish(part_of(g, i, std::min(g.m, i + rows), j, std::min(g.n, j + columns)), sums,
                          columns, pool, workspace.first(static_cast<size_t>(packed)));
}

bool is_float(DType d) { return d == DType::kF32 || d == DType::kBf16 || d == DType::kF16; }

}  // namespace

bool gemm_has_bf16() { return current_isa() >= Isa::kAvx512Bf16; }

bool gemm_scales(int64_t k, GemmTypes types) {
  static constexpr float kAny = 1;
  const GemmArgs g{.k = k, .scale = &kAny, .precision = types.precision, .c_dtype = types.c_dtype};
  return !types.plus_c && on_bf16(g) && bf16::in_one_run(g);
}

int64_t gemm_workspace_bytes(int64_t m, int64_t n, int64_t k, int num_threads, GemmTypes types) {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  return packed_bytes(m, n, k, num_threads, types.precision) + sum_bytes(m, n, k, types);
}

void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace) {
  PLIMSOLL_CHECK(is_float(args.a.dtype) && is_float(args.b.dtype) && is_float(args.c_dtype));
  if (args.m <= 0 || args.n <= 0) return;
  if (args.k <= 0) return only_bias(args);
  PLIMSOLL_CHECK(static_cast<int64_t>(workspace.size()) >=
                 gemm_workspace_bytes(args.m, args.n, args.k, pool.num_threads(),
                                      {args.precision, args.c_dtype, args.plus_c}));
  PLIMSOLL_CHECK(!args.accumulate || args.c_dtype == DType::kF32);
  PLIMSOLL_CHECK((args.a.codes == nullptr && args.b.codes == nullptr) || on_bf16(args));
  PLIMSOLL_CHECK(args.scale == nullptr || gemm_scales(args.k, {args.precision, args.c_dtype, args.plus_c}));
  PLIMSOLL_CHECK(!args.plus_c || (!args.accumulate && args.bias == nullptr));
  PLIMSOLL_CHECK(reinterpret_cast<uintptr_t>(workspace.data()) % 64 == 0);
  if (direct(args)) return multiply_directly(args, pool, workspace);
  if (args.c_dtype == DType::kF32 && !args.plus_c)
    return multiply_and_finish(args, static_cast<float*>(args.c), args.c_row_stride, pool, workspace);
  multiply_by_parts(args, pool, workspace);
}

}  // namespace plimsoll::cpu
