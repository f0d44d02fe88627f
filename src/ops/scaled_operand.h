// Operands of products in FP8 and FP4: codes and scales as values of their own, and the ops that make,
// multiply and read them. The schemes are those of numerics/blocks.h.
//
//   x f32|bf16 ─► quantize_operand ─► codes, scales (, amax) ─┐
//   w          ─► quantize_operand ─► codes, scales (, amax) ─┴► scaled_matmul ─► y
//
// Both run behind autodiff (pass fp8), so they have no derivatives: the gradient of a product is a product of
// quantised operands again, and quantising itself counts as the identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/op_def.h"
#include "numerics/fp8_recipes.h"
#include "ops/philox.h"

namespace plimsoll::ops {

/// Op `quantize_operand`(x, scales?, random?) {scheme, transposed, both, by_sequence, hadamard, stochastic,
/// slot?, key?, precision?} -> codes u8, scales, and with schemes that have a scale of the tensor amax
/// f32[1].
///   x [..., cols], as a matrix of rows; `transposed`: its transpose [cols, rows] is quantised; `both`: codes
///   and scales of the transpose are results behind the others, of schemes with blocks of one row alone.
///   `by_sequence`: in the transpose blocks end with each sequence, an index of axis 0, whose last one zeros
///   fill up, so that no scale depends on which sequences are in the batch; rows are then columns of
///   TurnedRows. Codes of a byte and blocks of one row alone.
///   codes [..., cols] (4 bits: [..., ceil(cols / 2)]), transposed [cols, rows];
///   scales f32 of fp8-block-*, else u8: [..., ceil(cols / block)], tiles [ceil(rows / 16), ceil(cols / 16)],
///   of e4m3 and e5m2 f32[1], the inverse of the scale.
/// With `scales` f32[n] the scale of e4m3 and e5m2 is its element `slot`; else it comes from amax, the
/// largest magnitude of what is quantised. `precision`: x is rounded to bf16 before. `stochastic` draws by
/// `random` i32[4] and `key` as dropout does: the sequence is the token's index along axis 0, the element
/// counts within it in the order of the codes; of a transpose with several sequences each must be of whole
/// runs of 16. Determinism: an amax is a maximum, which knows no order.
///
/// Op `scaled_matmul`(a, a_scales, b, b_scales, bias?, acc?, a_amax?, b_amax?) {a_scheme, b_scheme, a_across,
/// b_across, inner, columns, segment?, terms?, precision?, out?} -> c = sum over k of a[m, k] b[n, k], plus
/// bias.
///   a codes [..., inner], `a_across` [rows = inner, m]; b codes [n, inner], `b_across` [inner, n]; n =
///   columns. `terms`: behind so many of each segment there are zeros alone, which may be left out.
///   c [..., n] with a's leading axes, [m, n] where a lies across.
///
/// Op `dequantize_operand`(codes, scales) {scheme, out?} -> x f32|bf16 [as codes]: the numbers that codes of
/// a byte with scales of blocks of one row stand for, exact in bf16.
///
/// A product of scaled_matmul is exact: codes times scales of blocks are bf16 numbers (below 2^-126 they may
/// count as 0), sums are f32 in the order of the granules (backends/cpu/kernels/gemm/gemm.h). What is left of
/// the scales, of tensors, multiplies each segment's sum of `segment` terms (absent: all) before it is added
/// to c. `acc` f32: the sum goes on from there; the amax are nvfp4's.

/// Attributes of quantize_operand, as its kernels read them.
numerics::OperandForm form_of(const ir::Attrs& attrs);
numerics::Scheme scheme_of(const ir::Attrs& attrs, std::string_view attr);
/// Whether the attribute names a scheme of FP8 or FP4.
bool names_codes(const ir::Attrs& attrs, std::string_view attr);
/// Of scaled_matmul; 0: its terms are one segment.
int64_t segment_of(const ir::Attrs& attrs);

/// A product of scaled_matmul, as its kernels read it: c [m, n] = sum over k of a b. An operand that lies
/// `across` is stored [k, …].
struct ScaledProduct {
  numerics::Scheme a, b;
  bool a_across, b_across;
  int64_t m, n, k;
  int64_t segment;  ///< terms of a segment; k: all are one
  int64_t terms;    ///< of a segment; zeros follow
  ScaledProduct(const ir::Attrs& attrs, const ir::TensorType& c);
  /// Elements of a stored row.
  [[nodiscard]] int64_t a_cols() const { return a_across ? m : k; }
  [[nodiscard]] int64_t b_cols() const { return b_across ? n : k; }
};

/// Types of codes and scales of a matrix [..., cols].
ir::TensorType codes_type(numerics::Scheme scheme, const ir::Shape& matrix);
ir::TensorType scales_type(numerics::Scheme scheme, const ir::Shape& matrix);
/// What is quantised of x: its shape, or that of its transpose.
ir::Shape quantized_matrix(const ir::Shape& x, const ir::Attrs& attrs, bool transposed);

/// Where the rows of x lie in its quantised transpose: side by side, or `by_sequence`, those of a sequence in
/// whole blocks.
struct TurnedRows {
  int64_t rows = 0;                 ///< of x
  int64_t tokens = 1, columns = 1;  ///< rows of a sequence, and what they take; without sequences all are one

  TurnedRows() = default;
  TurnedRows(const ir::Shape& x, const ir::Attrs& attrs);
  /// Of a row; of the number of rows, how many columns there are.
  [[nodiscard]] int64_t column(int64_t row) const { return row / tokens * columns + row % tokens; }
  /// The row in a column; -1: a zero.
  [[nodiscard]] int64_t row(int64_t column) const {
    const int64_t token = column % columns;
    return token < tokens ? column / columns * tokens + token : -1;
  }
  /// Where a band of rows from `first` on ends, so that no block goes on behind it. It has `most` rows at
  /// most: all of them, or whole blocks of every scheme.
  [[nodiscard]] int64_t band_end(int64_t first, int64_t most) const;
};

/// Where an element of an operand draws from: of row r and column c of the quantised matrix the sequence and
/// the number within.
struct OperandDraws {
  RandomStream stream;
  int64_t tokens = 0;  ///< of a sequence
  int64_t cols = 0;    ///< of x
  bool transposed = false;

  OperandDraws() = default;
  OperandDraws(const ir::Shape& x, bool is_transposed, const RandomStream& from);
  /// That of the first of a run, and how many elements follow it there.
  struct Run {
    numerics::RandomKey key;
    int64_t length = 0;
  };
  [[nodiscard]] Run at(int64_t row, int64_t col, int64_t length) const;
};

/// Codes and scales of a run of one row, which begins with a block of it (a tile's rows have their own call,
/// quantize of blocks.h). `row` is changed where the form transforms it.
void quantize_run(const numerics::OperandForm& form, const numerics::TensorScale& tensor,
                  std::span<float> row, std::span<std::byte> codes, std::span<std::byte> scales,
                  const OperandDraws& draws, int64_t at_row, int64_t at_col);

/// What the scales of tensors multiply a sum of products with.
struct TensorFactor {
  numerics::Scheme scheme = numerics::Scheme::kE4m3;
  const float* scales = nullptr;
  const float* amax = nullptr;  ///< nvfp4
};
float product_factor(const TensorFactor& a, const TensorFactor& b);
bool has_tensor_factor(numerics::Scheme a, numerics::Scheme b);

/// Elements [col, col + out) of a row of a matrix of `cols` columns, codes times the scales of blocks, as
/// bf16; row by row the same in tiles.
void dequantize_codes(numerics::Scheme scheme, const std::byte* codes, const std::byte* scales, int64_t cols,
                      int64_t row, int64_t col, std::span<uint16_t> out);

}  // namespace plimsoll::ops
