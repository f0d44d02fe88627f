// Products of quantised operands: a band of each becomes bf16 numbers at a time, small enough for the
// last-level cache, and goes through the one GEMM. The sum of a block of the result stands in f32 scratch,
// where the scales of tensors multiply it and the bias joins it, so that the result is rounded once.
#include <algorithm>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/linear.h"
#include "base/at.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cpu {
namespace {

using numerics::Scheme;

constexpr int64_t kScaledBandBytes = int64_t{4} << 20, kMostLines = 1024, kLeastLines = 256, kLineStep = 128;
/// Elements that a thread makes at once.
constexpr int64_t kScaledPieceElements = int64_t{16} << 10;

/// The product and its bands, from its types alone.
struct BandedProduct : ops::ScaledProduct {
  ir::DType out;
  int64_t a_lines, b_lines;  ///< of a band

  BandedProduct(const ir::Attrs& attrs, const ir::TensorType& c)
      : ScaledProduct(attrs, c), out(c.dtype), a_lines(lines(m)), b_lines(lines(n)) {}
  [[nodiscard]] int64_t lines(int64_t all) const {
    const int64_t fitting = kScaledBandBytes / (2 * terms) / kLineStep * kLineStep;
    return std::min(all, std::clamp(fitting, kLeastLines, kMostLines));
  }
  [[nodiscard]] static int64_t round64(int64_t bytes) { return round_up(bytes, int64_t{64}); }
  [[nodiscard]] int64_t a_bytes() const { return round64(2 * a_lines * terms); }
  [[nodiscard]] int64_t b_bytes() const { return round64(2 * b_lines * terms); }
  [[nodiscard]] int64_t sum_bytes() const { return round64(4 * a_lines * b_lines); }
  [[nodiscard]] bool is_scaled() const { return ops::has_tensor_factor(a, b); }
  [[nodiscard]] int64_t gemm_bytes(int num_threads) const {
    return gemm_workspace_bytes(a_lines, b_lines, terms, num_threads, {.precision = Precision::kBf16});
  }
};

/// One operand's codes.
struct ScaledCodes {
  Scheme scheme;
  const TensorRef& codes;
  const TensorRef& scales;
  bool across;
  int64_t cols;  ///< of its matrix: k, or lines where it lies across

  /// Lines [line, line + lines) of terms [k, k + terms) as bf16: lines x terms, or across terms x lines.
  void numbers(int64_t line, int64_t lines, int64_t k, int64_t terms, uint16_t* to, ThreadPool& pool) const {
    const int64_t rows = across ? terms : lines, run = across ? lines : terms;
    const int64_t row = across ? k : line, col = across ? line : k;
    const int64_t piece = std::max<int64_t>(1, kScaledPieceElements / run);
    for_blocks(pool, rows, piece, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        ops::dequantize_codes(scheme, codes.data, scales.data, cols, row + r, col, {to + r * run, at(run)});
    });
  }
  [[nodiscard]] ConstMatrix as_a(const uint16_t* numbers, int64_t lines, int64_t terms) const {
    return across ? ConstMatrix{numbers, 1, lines, ir::DType::kBf16}
                  : ConstMatrix{numbers, terms, 1, ir::DType::kBf16};
  }
  [[nodiscard]] ConstMatrix as_b(const uint16_t* numbers, int64_t lines, int64_t terms) const {
    return across ? ConstMatrix{numbers, lines, 1, ir::DType::kBf16}
                  : ConstMatrix{numbers, 1, terms, ir::DType::kBf16};
  }
};

/// Rows [i, i + rows) and columns [j, j + columns) of the result.
struct ResultBlock {
  int64_t i, rows, j, columns;
};

/// A call's operands and scratch.
class ScaledRun {
 public:
  ScaledRun(const KernelCall& call, ThreadPool& pool)
      : call_(call),
        pool_(pool),
        p_(call.op->attrs, call.outputs[0].type),
        a_{p_.a, call.inputs[0], call.inputs[1], p_.a_across, p_.a_cols()},
        b_{p_.b, call.inputs[2], call.inputs[3], p_.b_across, p_.b_cols()},
        bias_(input_or_none(call, 4)),
        acc_(input_or_none(call, 5)) {
    std::byte* at = call.workspace.data();
    a_numbers_ = reinterpret_cast<uint16_t*>(at);
    b_numbers_ = reinterpret_cast<uint16_t*>(at += p_.a_bytes());
    sum_ = reinterpret_cast<float*>(at += p_.b_bytes());
    part_ = reinterpret_cast<float*>(at += p_.sum_bytes());
    rest_ = call.workspace.subspan(static_cast<size_t>(at - call.workspace.data()) +
                                   (p_.is_scaled() ? plimsoll::at(p_.sum_bytes()) : 0));
    if (p_.is_scaled())
      factor_ = ops::product_factor({p_.a, call.inputs[1].as<const float>(), floats(6)},
                                    {p_.b, call.inputs[3].as<const float>(), floats(7)});
  }

  void operator()() {
    const bool one_segment = p_.segment == p_.k;
    for (int64_t i = 0; i < p_.m; i += p_.a_lines) {
      const int64_t rows = std::min(p_.a_lines, p_.m - i);
      if (one_segment) a_.numbers(i, rows, 0, p_.terms, a_numbers_, pool_);
      for (int64_t j = 0; j < p_.n; j += p_.b_lines)
        block({i, rows, j, std::min(p_.b_lines, p_.n - j)}, !one_segment);
    }
  }

 private:
  [[nodiscard]] const float* floats(size_t input) const {
    return input_or_none(call_, input).as<const float>();
  }

  void block(const ResultBlock& c, bool makes_a) {
    bool begun = static_cast<bool>(acc_);
    if (begun) copy_acc(c);
    for (int64_t k = 0; k < p_.k; k += p_.segment) {
      const int64_t terms = std::min(p_.terms, p_.k - k);
      if (makes_a) a_.numbers(c.i, c.rows, k, terms, a_numbers_, pool_);
      b_.numbers(c.j, c.columns, k, terms, b_numbers_, pool_);
      multiply(c, terms, begun && !p_.is_scaled(), p_.is_scaled() ? part_ : sum_);
      if (p_.is_scaled()) add_scaled(c, begun);
      begun = true;
    }
    store(c);
  }

  void copy_acc(const ResultBlock& c) {
    for_row_blocks(pool_, c.rows, c.columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        std::copy_n(acc_.as<const float>() + (c.i + r) * p_.n + c.j, c.columns, sum_ + r * c.columns);
    });
  }

  void multiply(const ResultBlock& c, int64_t terms, bool accumulate, float* to) {
    gemm({.m = c.rows,
          .n = c.columns,
          .k = terms,
          .a = a_.as_a(a_numbers_, c.rows, terms),
          .b = b_.as_b(b_numbers_, c.columns, terms),
          .c = to,
          .c_row_stride = c.columns,
          .accumulate = accumulate,
          .precision = Precision::kBf16},
         pool_, rest_);
  }

  void add_scaled(const ResultBlock& c, bool begun) {
    for_blocks(pool_, c.rows * c.columns, kBlockElements, [&](int64_t begin, int64_t end) {
      const float* part = part_;
      float* sum = sum_;
      for (int64_t e = begin; e < end; ++e) {
        const float scaled = part[e] * factor_;
        sum[e] = begun ? sum[e] + scaled : scaled;
      }
    });
  }

  void store(const ResultBlock& c) {
    for_row_blocks(pool_, c.rows, c.columns, [&](int64_t begin, int64_t end) {
      alignas(64) float bias[kMostLines];
      if (bias_) load_bias(c, bias);
      for (int64_t r = begin; r < end; ++r) {
        float* const row = sum_ + r * c.columns;
        if (bias_)
          for (int64_t j = 0; j < c.columns; ++j) row[j] += bias[j];
        std::byte* const to = call_.outputs[0].data + ((c.i + r) * p_.n + c.j) * ir::bits(p_.out) / 8;
        if (p_.out == ir::DType::kF32)
          std::copy_n(row, c.columns, reinterpret_cast<float*>(to));
        else
          round_to(row, to, p_.out, c.columns);
      }
    });
  }

  void load_bias(const ResultBlock& c, float* bias) const {
    const std::byte* from = bias_.data + c.j * ir::bits(bias_.type.dtype) / 8;
    if (bias_.type.dtype == ir::DType::kF32)
      std::copy_n(reinterpret_cast<const float*>(from), c.columns, bias);
    else
      widen(from, bias_.type.dtype, bias, c.columns);
  }

  const KernelCall& call_;
  ThreadPool& pool_;
  BandedProduct p_;
  ScaledCodes a_, b_;
  TensorRef bias_, acc_;
  float factor_ = 1;
  uint16_t *a_numbers_ = nullptr, *b_numbers_ = nullptr;
  float *sum_ = nullptr, *part_ = nullptr;
  std::span<std::byte> rest_;
};

int64_t scaled_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const BandedProduct p(types.attrs, types.outputs[0]);
  return p.a_bytes() + p.b_bytes() + (p.is_scaled() ? 2 : 1) * p.sum_bytes() + p.gemm_bytes(num_threads);
}

void scaled_matmul(const KernelCall& call, ThreadPool& pool) { ScaledRun(call, pool)(); }

}  // namespace

std::span<const Kernel> scaled_matmul_kernels() {
  static constexpr Kernel kernels[] = {{.op = "scaled_matmul",
                                        .run = scaled_matmul,
                                        .workspace_bytes = scaled_workspace_bytes,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
