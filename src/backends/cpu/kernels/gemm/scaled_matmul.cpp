// Products of quantised operands through the one GEMM. On instructions for bf16 it packs codes and writes the
// result itself, in one call where it can. Else a band of each operand becomes bf16 numbers at a time, small
// enough for the last-level cache; and a sum that wants more than the GEMM does - the scales of tensors, a
// dtype that does not hold sums of segments - stands in f32 scratch until it is complete, and is rounded
// once.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/elementwise/cast.h"
#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/gemm/linear.h"
#include "base/at.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cpu {
namespace {

using ir::DType;
using numerics::Scheme;

constexpr int64_t kScaledBandBytes = int64_t{4} << 20, kMostLines = 1024, kLeastLines = 256, kLineStep = 128;
/// Elements that a thread makes at once.
constexpr int64_t kScaledPieceElements = int64_t{16} << 10;

/// The product and its bands, from its types alone.
struct BandedProduct : ops::ScaledProduct {
  DType out;
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
  [[nodiscard]] int64_t sum_bytes() const { return may_want_sums() ? round64(4 * a_lines * b_lines) : 0; }
  [[nodiscard]] int64_t part_bytes() const { return is_scaled() ? sum_bytes() : 0; }
  [[nodiscard]] bool is_scaled() const { return ops::has_tensor_factor(a, b); }
  [[nodiscard]] bool is_one_segment() const { return segment == k; }
  /// Of segments, sums of which the result does not hold.
  [[nodiscard]] bool rounds_late() const { return !is_one_segment() && out != DType::kF32; }
  [[nodiscard]] bool may_want_sums() const { return is_scaled() || rounds_late(); }
  /// Of one call, to the result or to f32.
  [[nodiscard]] GemmTypes gemm_types(bool to_result) const {
    return {.precision = Precision::kBf16, .c_dtype = to_result ? out : DType::kF32};
  }
  [[nodiscard]] int64_t gemm_bytes(int64_t rows, int64_t columns, int64_t inner, int num_threads) const {
    return std::max(gemm_workspace_bytes(rows, columns, inner, num_threads, gemm_types(true)),
                    gemm_workspace_bytes(rows, columns, inner, num_threads, gemm_types(false)));
  }
  [[nodiscard]] int64_t banded_bytes(int num_threads) const {
    return a_bytes() + b_bytes() + sum_bytes() + part_bytes() +
           gemm_bytes(a_lines, b_lines, terms, num_threads);
  }
  /// Whether one call of the GEMM multiplies codes.
  [[nodiscard]] bool is_one_call() const {
    return gemm_reads_codes() && writes_result() && (is_one_segment() || (!is_scaled() && terms == segment));
  }
  /// Whether calls of the GEMM write the result.
  [[nodiscard]] bool writes_result() const {
    const bool rounds = rounds_late() && (is_scaled() || terms != segment || !gemm_reads_codes());
    return !rounds && (!is_scaled() || gemm_scales(terms, gemm_types(true)));
  }
};

/// One operand's codes.
struct ScaledCodes : CodedMatrix {
  bool across = false;
  CodedMatrix part = {};  ///< what a call multiplies

  /// Lines [line, line + lines) of terms [k, k + terms) as bf16: lines x terms, or across terms x lines.
  void make_numbers(int64_t line, int64_t lines, int64_t k, int64_t terms, uint16_t* to,
                    ThreadPool& pool) const {
    const int64_t rows = across ? terms : lines, run = across ? lines : terms;
    const int64_t first = across ? k : line, left = across ? line : k;
    const int64_t piece = std::max<int64_t>(1, kScaledPieceElements / run);
    for_blocks(pool, rows, piece, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) numbers(first + r, left, {to + r * run, at(run)});
    });
  }
  /// From that line and term on, as A (of lines x terms) or as B.
  [[nodiscard]] ConstMatrix coded(int64_t line, int64_t k, bool as_a) {
    part = *this;
    part.row = across ? k : line;
    part.col = across ? line : k;
    ConstMatrix matrix = strided(nullptr, std::max(int64_t{2}, cols), as_a);
    matrix.codes = &part;
    return matrix;
  }
  /// Numbers that are made.
  [[nodiscard]] ConstMatrix made(const uint16_t* data, int64_t lines, int64_t terms, bool as_a) const {
    return strided(data, across ? lines : terms, as_a);
  }

 private:
  [[nodiscard]] ConstMatrix strided(const uint16_t* data, int64_t stride, bool as_a) const {
    const bool by_rows = as_a != across;
    return {data, by_rows ? stride : 1, by_rows ? 1 : stride, DType::kBf16};
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
        writes_result_(p_.writes_result()),
        a_(codes_of(0, p_.a, p_.a_across, p_.a_cols())),
        b_(codes_of(2, p_.b, p_.b_across, p_.b_cols())),
        bias_(input_or_none(call, 4)),
        acc_(input_or_none(call, 5)) {
    if (p_.is_scaled())
      factor_ = ops::product_factor({p_.a, call.inputs[1].as<const float>(), floats(6)},
                                    {p_.b, call.inputs[3].as<const float>(), floats(7)});
  }

  void operator()() {
    if (writes_result_ && acc_ && acc_.data != result())
      std::memcpy(result(), acc_.data, at(acc_.type.bytes().count));
    p_.is_one_call() ? in_one_call() : in_bands();
  }

 private:
  [[nodiscard]] ScaledCodes codes_of(size_t input, Scheme scheme, bool across, int64_t cols) const {
    return {{scheme, call_.inputs[input].data, call_.inputs[input + 1].data, cols}, across};
  }
  [[nodiscard]] const float* floats(size_t input) const {
    return input_or_none(call_, input).as<const float>();
  }
  [[nodiscard]] std::byte* result() const { return call_.outputs[0].data; }
  [[nodiscard]] std::byte* result_at(int64_t i, int64_t j) const {
    return result() + (i * p_.n + j) * ir::bits(p_.out) / 8;
  }

  void in_one_call() {
    GemmArgs g = to_result({0, p_.m, 0, p_.n}, true);
    g.k = p_.is_one_segment() ? p_.terms : p_.k;
    g.k_segment = p_.segment;
    g.a = a_.coded(0, 0, true);
    g.b = b_.coded(0, 0, false);
    g.accumulate = static_cast<bool>(acc_);
    g.past_caches = beyond_caches(p_.m * p_.n, p_.out);
    gemm(g, pool_, call_.workspace);
  }

  void in_bands() {
    std::byte* at = call_.workspace.data();
    a_numbers_ = reinterpret_cast<uint16_t*>(at);
    b_numbers_ = reinterpret_cast<uint16_t*>(at += p_.a_bytes());
    sum_ = reinterpret_cast<float*>(at += p_.b_bytes());
    part_ = reinterpret_cast<float*>(at += p_.sum_bytes());
    rest_ = call_.workspace.subspan(plimsoll::at(at + p_.part_bytes() - call_.workspace.data()));
    for (int64_t i = 0; i < p_.m; i += p_.a_lines) {
      const int64_t rows = std::min(p_.a_lines, p_.m - i);
      if (p_.is_one_segment() && !gemm_reads_codes())
        a_.make_numbers(i, rows, 0, p_.terms, a_numbers_, pool_);
      for (int64_t j = 0; j < p_.n; j += p_.b_lines) block({i, rows, j, std::min(p_.b_lines, p_.n - j)});
    }
  }

  void block(const ResultBlock& c) {
    bool begun = static_cast<bool>(acc_);
    if (begun && !writes_result_) copy_acc(c);
    for (int64_t k = 0; k < p_.k; k += p_.segment) {
      GemmArgs g = writes_result_ ? to_result(c, k + p_.segment >= p_.k) : to_scratch(c);
      g.k = std::min(p_.terms, p_.k - k);
      set_operands(g, c, k);
      g.accumulate = begun && (writes_result_ || !p_.is_scaled());
      gemm(g, pool_, rest_);
      if (p_.is_scaled() && !writes_result_) add_scaled(c, begun);
      begun = true;
    }
    if (!writes_result_) store(c);
  }

  [[nodiscard]] GemmArgs to_result(const ResultBlock& c, bool is_last) const {
    GemmArgs g{.m = c.rows, .n = c.columns, .c = result_at(c.i, c.j), .c_row_stride = p_.n};
    if (p_.is_scaled()) g.scale = &factor_;
    if (bias_ && is_last) {
      g.bias = bias_.data + c.j * ir::bits(bias_.type.dtype) / 8;
      g.bias_dtype = bias_.type.dtype;
    }
    g.precision = Precision::kBf16;
    g.c_dtype = p_.out;
    return g;
  }
  [[nodiscard]] GemmArgs to_scratch(const ResultBlock& c) const {
    return {.m = c.rows,
            .n = c.columns,
            .c = p_.is_scaled() ? part_ : sum_,
            .c_row_stride = c.columns,
            .precision = Precision::kBf16};
  }

  void set_operands(GemmArgs& g, const ResultBlock& c, int64_t k) {
    if (gemm_reads_codes()) {
      g.a = a_.coded(c.i, k, true);
      g.b = b_.coded(c.j, k, false);
      return;
    }
    if (!p_.is_one_segment()) a_.make_numbers(c.i, c.rows, k, g.k, a_numbers_, pool_);
    b_.make_numbers(c.j, c.columns, k, g.k, b_numbers_, pool_);
    g.a = a_.made(a_numbers_, c.rows, g.k, true);
    g.b = b_.made(b_numbers_, c.columns, g.k, false);
  }

  void copy_acc(const ResultBlock& c) {
    for_row_blocks(pool_, c.rows, c.columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        std::copy_n(acc_.as<const float>() + (c.i + r) * p_.n + c.j, c.columns, sum_ + r * c.columns);
    });
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
        std::byte* const to = result_at(c.i + r, c.j);
        if (p_.out == DType::kF32)
          std::copy_n(row, c.columns, reinterpret_cast<float*>(to));
        else
          round_to(row, to, p_.out, c.columns);
      }
    });
  }

  void load_bias(const ResultBlock& c, float* bias) const {
    const std::byte* from = bias_.data + c.j * ir::bits(bias_.type.dtype) / 8;
    if (bias_.type.dtype == DType::kF32)
      std::copy_n(reinterpret_cast<const float*>(from), c.columns, bias);
    else
      widen(from, bias_.type.dtype, bias, c.columns);
  }

  const KernelCall& call_;
  ThreadPool& pool_;
  BandedProduct p_;
  bool writes_result_;
  ScaledCodes a_, b_;
  TensorRef bias_, acc_;
  float factor_ = 1;
  uint16_t *a_numbers_ = nullptr, *b_numbers_ = nullptr;
  float *sum_ = nullptr, *part_ = nullptr;
  std::span<std::byte> rest_;
};

int64_t scaled_workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const BandedProduct p(types.attrs, types.outputs[0]);
  return std::max(p.banded_bytes(num_threads), p.gemm_bytes(p.m, p.n, p.k, num_threads));
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
