// Quantises an operand of a product. The reference works on the whole matrix, with bytes held as their
// numbers.
#include <cstring>
#include <string>
#include <vector>

#include "ops/granules.h"
#include "ops/operands.h"
#include "ops/random_operand.h"
#include "ops/scaled_operand.h"

namespace plimsoll::ops {
namespace {

using numerics::Scheme;
using numerics::TensorScale;

bool has_byte_runs(const numerics::OperandForm& form) {
  const numerics::SchemeInfo& s = numerics::info(form.scheme);
  return s.block_rows == 1 && numerics::info(s.codes).stored_bits == 8;
}

Result<Types> infer_quantize_operand(const OpTypes& t) {
  Operands in(t, 1, {"x", "scales", "random"});
  if (!in) return in.error();
  in.require(names_codes(t.attrs, "scheme"), "scheme must be a scheme of FP8 or FP4");
  if (!in) return in.error();
  const numerics::OperandForm form = form_of(t.attrs);
  const Shape matrix = quantized_matrix(t.inputs[0].shape, t.attrs, t.attrs.flag("transposed"));
  in.floating({1}, {2}).shaped(2, Shape{4});
  check_precision(in, t);
  const bool of_tensor = numerics::info(form.scheme).block_rows == 0;
  const bool both = t.attrs.flag("both");
  in.require(!both || (numerics::info(form.scheme).block_rows == 1 &&
                       !numerics::info(form.scheme).has_tensor_scale && !t.attrs.flag("transposed")),
             "both copies are made in blocks of one row without a scale of the tensor");
  in.require(!t.attrs.flag("by_sequence") || ((both || t.attrs.flag("transposed")) && has_byte_runs(form)),
             "by_sequence is of transposes with codes of a byte in blocks of one row");
  in.require(!form.hadamard || matrix.dim(-1) % numerics::kHadamardRun == 0, "rows are not whole runs of 16",
             {0});
  in.require(
      !form.stochastic || (form.scheme == Scheme::kNvfp4 && t.has(2) && t.attrs.find("key") != nullptr),
      "stochastic needs nvfp4, random and a key");
  const Granules tokens(t.inputs[0].shape);
  in.require(!form.stochastic || !t.attrs.flag("transposed") || tokens.segment() == tokens.rows() ||
                 tokens.segment() % numerics::kHadamardRun == 0,
             "sequences are not whole runs of 16", {0});
  in.require(!t.has(1) || (of_tensor && t.inputs[1].shape.rank() == 1 && t.attrs.find("slot") != nullptr &&
                           t.attrs.i64("slot") >= 0 && t.attrs.i64("slot") < t.inputs[1].shape.dim(0)),
             "scales are for e4m3 and e5m2, one of them by slot");
  Types types = {codes_type(form.scheme, matrix), scales_type(form.scheme, matrix)};
  if (numerics::info(form.scheme).has_tensor_scale) types.push_back({DType::kF32, Shape{1}});
  if (both) {
    const Shape turned = quantized_matrix(t.inputs[0].shape, t.attrs, true);
    types.insert(types.end(), {codes_type(form.scheme, turned), scales_type(form.scheme, turned)});
  }
  return in.results(std::move(types));
}

OperandDraws draws_of(const RefContext& ctx) {
  const ir::Attrs& attrs = ctx.op.attrs;
  if (!attrs.flag("stochastic")) return {};
  return {ctx.inputs[0]->type.shape, attrs.flag("transposed"), stream_of(*ctx.inputs[2], attrs)};
}

/// What is quantised, as f32.
std::vector<float> matrix_of(const RefContext& ctx, bool transposed) {
  const std::vector<double> x = operand_of(ctx, *ctx.inputs[0]);
  const Shape& shape = ctx.inputs[0]->type.shape;
  const TurnedRows turned(shape, ctx.op.attrs);
  const auto cols = at(shape.dim(-1)), rows = x.size() / cols;
  const size_t wide = at(turned.column(turned.rows));
  std::vector<float> matrix(transposed ? cols * wide : x.size());
  for (size_t r = 0; r < rows; ++r) {
    const size_t column = at(turned.column(static_cast<int64_t>(r)));
    for (size_t c = 0; c < cols; ++c)
      matrix[transposed ? c * wide + column : r * cols + c] = static_cast<float>(x[r * cols + c]);
  }
  return matrix;
}

float amax_of(const numerics::OperandForm& form, std::vector<float> matrix) {
  if (form.hadamard) numerics::random_hadamard(matrix);
  return numerics::largest_magnitude(matrix);
}

/// A value's bytes as the reference holds them: floats, or the bytes' numbers.
void put_bytes(const std::vector<std::byte>& bytes, RefTensor& to) {
  for (size_t i = 0; i < to.data.size(); ++i) {
    if (to.type.dtype == DType::kU8) {
      to.data[i] = std::to_integer<int>(bytes[i]);
      continue;
    }
    float value = 0;
    std::memcpy(&value, &bytes[4 * i], 4);
    to.data[i] = value;
  }
}

/// A copy, whose codes and scales are results `first` and the next.
void quantize_copy(RefContext& ctx, bool transposed, size_t first) {
  const numerics::OperandForm form = form_of(ctx.op.attrs);
  const numerics::SchemeInfo& s = numerics::info(form.scheme);
  std::vector<float> matrix = matrix_of(ctx, transposed);
  TensorScale tensor;
  if (s.has_tensor_scale) {
    const float amax = amax_of(form, matrix);
    tensor = numerics::tensor_scale(form.scheme, amax);
    if (ctx.inputs.size() > 1 && ctx.inputs[1] != nullptr)
      tensor =
          numerics::given_scale(amax, static_cast<float>(ctx.inputs[1]->data[at(ctx.op.attrs.i64("slot"))]));
    ctx.outputs[2]->data[0] = amax;
  }
  const Shape shape = quantized_matrix(ctx.inputs[0]->type.shape, ctx.op.attrs, transposed);
  const int64_t cols = shape.dim(-1), rows = shape.num_rows();
  const int64_t row_bytes = numerics::code_row_bytes(form.scheme, cols);
  const int64_t scale_bytes = numerics::scale_cols(form.scheme, cols) * numerics::scale_bytes(form.scheme);
  std::vector<std::byte> codes(at(rows * row_bytes)), scales(at(ctx.outputs[first + 1]->type.bytes().count));
  if (s.block_rows > 1) {
    numerics::quantize(form.scheme, tensor, matrix, rows, cols, codes, scales);
  } else {
    const OperandDraws draws = draws_of(ctx);
    for (int64_t r = 0; r < rows; ++r)
      quantize_run(form, tensor, std::span(matrix).subspan(at(r * cols), at(cols)),
                   std::span(codes).subspan(at(r * row_bytes), at(row_bytes)),
                   std::span(scales).subspan(at(s.block_rows == 0 ? 0 : r * scale_bytes),
                                             at(s.block_rows == 0 ? 0 : scale_bytes)),
                   draws, r, 0);
  }
  if (s.block_rows == 0) std::memcpy(scales.data(), &tensor.decode, 4);
  put_bytes(codes, *ctx.outputs[first]);
  put_bytes(scales, *ctx.outputs[first + 1]);
}

void reference_quantize_operand(RefContext& ctx) {
  quantize_copy(ctx, ctx.op.attrs.flag("transposed"), 0);
  if (ctx.op.attrs.flag("both")) quantize_copy(ctx, /*transposed=*/true, 2);
}

/// Of each element: its magnitude, scale, rounding, and the maximum; twice where the tensor's comes first,
/// with the transform (sums, signs, rounding to bf16) before each; the random words of stochastic rounding
/// and its own comparisons.
Cost cost_quantize_operand(const OpTypes& t) {
  const auto elements = static_cast<double>(t.inputs[0].num_elements());
  const numerics::OperandForm form = form_of(t.attrs);
  return cost_of(t, elements * (12 + (form.hadamard ? 2 * 20 : 0) + (form.stochastic ? 80 : 0)));
}

}  // namespace

OpGroup quantize_operand_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "quantize_operand",
       .summary = "an operand of a product as codes and scales",
       .work = {WorkKind::kElementwise},
       .min_inputs = 1,
       .max_inputs = 3,
       .attrs = {string_attr("scheme"),
                 bool_attr("transposed"),
                 bool_attr("both"),
                 bool_attr("by_sequence"),
                 bool_attr("hadamard"),
                 bool_attr("stochastic"),
                 {"slot", AttrSpec::Kind::kInt, false},
                 {"key", AttrSpec::Kind::kInt, false},
                 precision_attr()},
       .infer = infer_quantize_operand,
       .cost = cost_quantize_operand,
       .reference = reference_quantize_operand,
       .recompute = kNearlyFree,
       .rounded_operands = 1,
       .random = 2},
  };
  return kOps;
}

}  // namespace plimsoll::ops
