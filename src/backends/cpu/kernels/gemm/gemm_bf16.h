// Products of bf16 on instructions made for it: how they are cut, and what the kernels share. Both operands
// are packed in one form that AVX512_BF16 and AMX read alike. k is cut into steps of 32 that restart with
// each segment, lines (rows of A, columns of B) into panels of 32; a panel has 2 KiB for each step, zeros
// where either ends:
//
//   A: 32 rows of 32 k                    B: two tiles of 16 columns, a pair of k in each 32 bits
//      row 0   k0 k1 ... k31  (64 bytes)     k0 k1 of column 0 | k0 k1 of column 1 | ... 15
//      ...                                   k2 k3 of column 0 | ...
//      row 31  k0 k1 ... k31                 ... k30 k31; then columns 16 to 31
//
// The operand with fewer lines (of about as many, the one whose lines are not rows of memory) is packed once
// and shared; a task packs a strip of the other for itself, so that most of what it reads lies in its own
// second-level cache, and multiplies it with the shared one, a group of its panels at a time. The sums of
// strip x group stay in the task's scratch until k is through. Kernels that keep them in registers are served
// otherwise: gemm_bf16_strips.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/gemm_ahead.h"

namespace plimsoll::cpu::bf16 {

inline constexpr int64_t kStep = 32, kPanel = 32;
inline constexpr int64_t kPanelStepBytes = kStep * kPanel * 2;
/// fp32 sums of a panel of A by one of B: four tiles of 16 x 16, two above and two below.
inline constexpr int64_t kTileFloats = 16 * 16, kBlockFloats = 4 * kTileFloats;

constexpr int64_t div_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return div_up(a, b) * b; }

/// The steps of k; the last one of each segment may be short.
class Steps {
 public:
  struct Step {
    int64_t begin, size;
  };
  Steps(int64_t k, int64_t k_segment)
      : k_(k), segment_(k_segment > 0 ? std::min(k_segment, k) : k), per_segment_(div_up(segment_, kStep)) {}
  [[nodiscard]] int64_t count() const { return k_ / segment_ * per_segment_ + div_up(k_ % segment_, kStep); }
  [[nodiscard]] Step operator[](int64_t index) const {
    const int64_t start = index / per_segment_ * segment_, begin = start + index % per_segment_ * kStep;
    return {begin, std::min({kStep, start + segment_ - begin, k_ - begin})};
  }

 private:
  int64_t k_, segment_, per_segment_;
};

/// Lines and steps that are worked on at a time; the bits depend on neither.
struct Plan {
  bool private_a = true;     ///< tasks pack rows of A and share B, or the other way round
  int64_t run_steps = 0;     ///< of k, packed together
  int64_t shared_lines = 0;  ///< packed together
  int64_t strip_lines = 0;   ///< a task's own
};
Plan plan(const GemmArgs& args, int num_threads);
/// The steps that are packed together, those of all of k if they are not too many.
int64_t run_steps(const GemmArgs& args);
/// Whether C's rows are cache lines that are written once.
bool may_pass_caches(const GemmArgs& args);
/// Whether all of k is packed together, so that C is written once.
bool in_one_run(const GemmArgs& args);
/// Whether sums begin with what C holds; a scaled sum joins it behind.
inline bool continues_c(const GemmArgs& args) { return args.accumulate && args.scale == nullptr; }

/// Bytes of packed operands and sums: shared, and for each thread.
int64_t shared_bytes(int64_t m, int64_t n, int64_t k);
int64_t thread_bytes(int64_t m, int64_t n, int64_t k);

/// An operand as packing sees it: element (k, line) at data + (k * k_stride + line * line_stride) elements.
struct Lines {
  const std::byte* data = nullptr;
  int64_t k_stride = 0, line_stride = 0;
  ir::DType dtype = ir::DType::kF32;
  bool fetch_ahead = false;  ///< pack_panel asks for what it will read soon
  const Patches* patches = nullptr;
  int64_t first_line = 0;  ///< of patches or codes
  const CodedMatrix* codes = nullptr;
  /// In memory, one k after the other; packed as B they lie side by side too.
  [[nodiscard]] bool side_by_side() const { return k_stride != 1 && line_stride == 1; }
};
inline Lines lines_of(const GemmArgs& g, bool of_b) {
  const ConstMatrix& x = of_b ? g.b : g.a;
  const auto* data = static_cast<const std::byte*>(x.data);
  return of_b ? Lines{data, x.row_stride, x.col_stride, x.dtype, false, x.patches, x.first_line, x.codes}
              : Lines{data, x.col_stride, x.row_stride, x.dtype, false, x.patches, x.first_line, x.codes};
}

/// Packs lines [line, line + lines) (at most a panel) of steps [first, end) from `to` on, as B or as A.
void pack_panel(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
                bool as_b, std::byte* to);

/// The same where x is made of patches.
void pack_patches(const Lines& x, int64_t line, int64_t lines, const Steps& steps, int64_t first, int64_t end,
                  bool as_b, std::byte* to);

/// The same where x is codes, of lines [begin, end): the first panel from `to` on, the next ones panel_bytes
/// behind one another.
void pack_codes(const Lines& x, int64_t begin, int64_t end, const Steps& steps, int64_t first, int64_t last,
                bool as_b, std::byte* to, int64_t panel_bytes);

/// Packs lines [begin, end), side by side, of steps [first, last) as B: the first panel from `to` on, the
/// next ones panel_bytes behind one another.
void pack_rows(const Lines& x, int64_t begin, int64_t end, const Steps& steps, int64_t first, int64_t last,
               std::byte* to, int64_t panel_bytes);

/// Rows [i, i + rows) (at most a panel) and columns [j, j + columns) of C; its sums are blocks side by side.
struct Part {
  int64_t i = 0, j = 0, rows = 0, columns = 0;
};
/// Reads f32 C into the sums; what is beyond stays.
void load_blocks(const GemmArgs& args, const Part& part, float* sums);
/// Writes them to C, if `last` with scale and bias; `past_caches`: where whole cache lines are written, which
/// needs C's rows and j aligned to 64 bytes, and finish_stores() before another thread may read them.
void store_blocks(const GemmArgs& args, const Part& part, bool last, bool past_caches, const float* sums);
void finish_stores();

/// One panel of A by one of B over some steps: sums = or += their product.
struct Block {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  float* sums = nullptr;
  int64_t steps = 0;
  bool from_zero = false;
  int row_tiles = 2, column_tiles = 2;  ///< the others hold zeros and may be left out
  // For kernels with multiply_into alone:
  bool a_in_pairs = false;                                   ///< A is packed as B
  int64_t a_row_bytes = 64, a_step_bytes = kPanelStepBytes;  ///< else: from row to row, from step to step
  /// Fetched meanwhile: kAheadOfAStep lines a step, half as many with one row tile.
  GemmAhead::Part ahead = {};
};
inline constexpr int64_t kAheadOfAStep = 32;

/// 32 rows and columns of C, where sums go; `is_added_to`: f32, and they come from there too.
struct Place {
  std::byte* data = nullptr;
  int64_t row_bytes = 0;
  ir::DType dtype = ir::DType::kF32;
  const std::byte* bias = nullptr;  ///< of these columns
  ir::DType bias_dtype = ir::DType::kF32;
  bool is_added_to = false, past_caches = false;
};

/// A thread calls begin before and end behind a series of multiply.
struct Kernels {
  void (*begin)();
  void (*multiply)(const Block&);
  void (*end)();
  int64_t cached_steps;  ///< of a panel of A that stay in the first-level cache while those of B pass
  /// As multiply, but its sums, of whole tiles, go to C; null: not for these kernels.
  void (*multiply_into)(const Block&, const Place&) = nullptr;
};
extern const Kernels kAvx512Kernels, kAmxKernels;
/// Those of the instruction set in use.
const Kernels& current_kernels();

/// As cpu::gemm with kBf16, k > 0, on a CPU with AVX512_BF16. A low C needs in_one_run().
void gemm(const GemmArgs& args, ThreadPool& pool, std::span<std::byte> workspace, const Kernels& kernels);

}  // namespace plimsoll::cpu::bf16
