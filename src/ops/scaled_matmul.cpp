// Products of quantised operands. The reference computes on whole matrices, with bytes held as their numbers.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "ops/granules.h"
#include "ops/operands.h"
#include "ops/scaled_operand.h"

namespace plimsoll::ops {
namespace {

using numerics::Scheme;

std::vector<std::byte> stored_bytes(const RefTensor& from) {
  std::vector<std::byte> bytes(at(from.type.bytes().count));
  for (size_t i = 0; i < from.data.size(); ++i) {
    const auto value = static_cast<float>(from.data[i]);
    if (from.type.dtype == DType::kU8)
      bytes[i] = static_cast<std::byte>(from.data[i]);
    else
      std::memcpy(&bytes[4 * i], &value, 4);
  }
  return bytes;
}

/// Operand i and its scales are of a matrix of those rows and columns.
void check_operand(Operands& in, const OpTypes& t, size_t i, Scheme scheme, int64_t cols) {
  const Shape& codes = t.inputs[i].shape;
  const Shape matrix = with_last(codes, cols);
  in.require(t.inputs[i].dtype == DType::kU8 && codes == codes_type(scheme, matrix).shape,
             "codes are not of the inner and outer extents", {i});
  in.require(t.inputs[i + 1] == scales_type(scheme, matrix), "scales are not those of the codes", {i, i + 1});
}

/// 0: a segment has no zeros at its end.
int64_t terms_of(const ir::Attrs& attrs) { return attrs.find("terms") == nullptr ? 0 : attrs.i64("terms"); }

Result<Types> infer_scaled_matmul(const OpTypes& t) {
  Operands in(t, 4, {"a", "a_scales", "b", "b_scales", "bias", "acc", "a_amax", "b_amax"});
  if (!in) return in.error();
  in.require(names_codes(t.attrs, "a_scheme") && names_codes(t.attrs, "b_scheme"),
             "a_scheme and b_scheme must be schemes of FP8 or FP4");
  if (!in) return in.error();
  const Scheme a = scheme_of(t.attrs, "a_scheme"), b = scheme_of(t.attrs, "b_scheme");
  const int64_t inner = t.attrs.i64("inner"), columns = t.attrs.i64("columns");
  const bool a_across = t.attrs.flag("a_across"), b_across = t.attrs.flag("b_across");
  in.require(inner > 0 && columns > 0, "inner and columns must be positive");
  const int64_t segment = segment_of(t.attrs), terms = terms_of(t.attrs);
  in.require(terms == 0 || (terms > 0 && terms <= segment && inner % segment == 0),
             "terms are of segments that divide inner");
  in.require(numerics::is_nvfp4(a) == numerics::is_nvfp4(b), "nvfp4 is multiplied with nvfp4");
  in.require(numerics::info(a).has_tensor_scale == numerics::info(b).has_tensor_scale,
             "a scale of the tensor is multiplied with another one");
  in.require(!a_across || numerics::info(numerics::info(a).codes).stored_bits == 8,
             "codes of 4 bits do not lie across");
  check_precision(in, t);
  if (!in) return in.error();
  const Shape& codes = t.inputs[0].shape;
  check_operand(in, t, 0, a, a_across ? codes.dim(-1) : inner);
  check_operand(in, t, 2, b, b_across ? columns : inner);
  in.require(!a_across || codes.num_rows() == inner, "inner dimensions differ", {0});
  in.require(t.inputs[2].shape.num_rows() == (b_across ? inner : columns), "inner dimensions differ", {2});
  for (const size_t i : {size_t{6}, size_t{7}}) in.shaped(i, Shape{1}).same_dtype(i, DType::kF32);
  in.require(!numerics::is_nvfp4(a) || (t.has(6) && t.has(7)), "nvfp4 needs both amax");
  const Shape shape = a_across ? Shape{codes.dim(-1), columns} : with_last(codes, columns);
  const DType dtype = out_dtype(in, t, DType::kF32);
  in.shaped(4, Shape{columns}).shaped(5, shape).same_dtype(5, DType::kF32);
  in.require(!t.has(5) || dtype == DType::kF32, "a gradient is accumulated in f32");
  return in.results({{dtype, shape}});
}

/// Terms of a sum, without zeros at the ends of segments.
double inner_terms(const OpTypes& t) {
  const auto inner = static_cast<double>(t.attrs.i64("inner"));
  const int64_t terms = terms_of(t.attrs);
  return terms == 0 ? inner : inner * static_cast<double>(terms) / static_cast<double>(segment_of(t.attrs));
}
double products(const OpTypes& t) {
  return static_cast<double>(t.outputs[0].num_elements()) * inner_terms(t);
}
Cost cost_scaled_matmul(const OpTypes& t) { return cost_of(t, 2 * products(t)); }

/// The rates are those of products of dequantised operands, which is how machines without instructions for
/// the formats compute them.
WorkSize size_scaled_matmul(const OpTypes& t, double /*flops*/) {
  const std::string_view key = segment_of(t.attrs) > 0    ? "linear_dw"
                               : t.attrs.flag("b_across") ? "linear_t"
                                                          : "linear";
  const double rows = static_cast<double>(t.outputs[0].shape.num_rows());
  return {key, {std::max(1.0, rows), static_cast<double>(t.outputs[0].shape.dim(-1)), inner_terms(t)}};
}

/// An operand's numbers [outer, inner], without the scale of the tensor.
std::vector<double> numbers_of(const RefContext& ctx, size_t i, Scheme scheme, bool across, int64_t inner) {
  const std::vector<std::byte> codes = stored_bytes(*ctx.inputs[i]),
                               scales = stored_bytes(*ctx.inputs[i + 1]);
  const int64_t stored = ctx.inputs[i]->type.shape.num_rows();
  const int64_t cols = across && i == 2 ? ctx.op.attrs.i64("columns")
                       : across         ? ctx.inputs[i]->type.shape.dim(-1)
                                        : inner;
  const int64_t outer = across ? cols : stored;
  std::vector<double> numbers(at(outer * inner));
  std::vector<uint16_t> row(at(cols));
  for (int64_t r = 0; r < stored; ++r) {
    dequantize_codes(scheme, codes.data(), scales.data(), cols, r, 0, row);
    for (int64_t c = 0; c < cols; ++c)
      numbers[at(across ? c * inner + r : r * inner + c)] =
          std::bit_cast<float>(static_cast<uint32_t>(row[at(c)]) << 16);
  }
  return numbers;
}

float factor_of(const RefContext& ctx, Scheme a, Scheme b) {
  std::array<float, 4> values{};
  const auto value = [&](size_t place, size_t input) {
    const bool is_there = input < ctx.inputs.size() && ctx.inputs[input] != nullptr;
    values[place] = is_there ? static_cast<float>(ctx.inputs[input]->data[0]) : 1.0F;
    return &values[place];
  };
  return product_factor({a, value(0, 1), value(1, 6)}, {b, value(2, 3), value(3, 7)});
}

void reference_scaled_matmul(RefContext& ctx) {
  const ir::Attrs& attrs = ctx.op.attrs;
  const Scheme a = scheme_of(attrs, "a_scheme"), b = scheme_of(attrs, "b_scheme");
  const int64_t inner = attrs.i64("inner"), columns = attrs.i64("columns");
  const auto left = numbers_of(ctx, 0, a, attrs.flag("a_across"), inner);
  const auto right = numbers_of(ctx, 2, b, attrs.flag("b_across"), inner);
  const double factor = factor_of(ctx, a, b);
  const auto has = [&](size_t i) { return i < ctx.inputs.size() && ctx.inputs[i] != nullptr; };
  for (size_t e = 0; e < ctx.outputs[0]->data.size(); ++e) {
    const size_t row = e / at(columns), column = e % at(columns);
    double sum = 0;
    for (size_t k = 0; k < at(inner); ++k) sum += left[row * at(inner) + k] * right[column * at(inner) + k];
    sum *= factor;
    if (has(4)) sum += ctx.inputs[4]->data[column];
    if (has(5)) sum += ctx.inputs[5]->data[e];
    ctx.outputs[0]->data[e] = sum;
  }
}

AttrSpec optional_int(std::string_view name) { return {name, AttrSpec::Kind::kInt, false}; }

}  // namespace

OpGroup scaled_matmul_ops() {
  using enum ir::RecomputeClass;
  static const std::vector<OpDef> kOps = {
      {.name = "scaled_matmul",
       .summary = "product of quantised operands",
       .work = {.kind = WorkKind::kProduct,
                .keys = {"linear", "linear_t", "linear_dw"},
                .size = size_scaled_matmul},
       .min_inputs = 4,
       .max_inputs = 8,
       .attrs = {string_attr("a_scheme"), string_attr("b_scheme"), bool_attr("a_across"),
                 bool_attr("b_across"), int_attr("inner"), int_attr("columns"), optional_int("segment"),
                 optional_int("terms"), precision_attr(), out_attr()},
       .infer = infer_scaled_matmul,
       .cost = cost_scaled_matmul,
       .reference = reference_scaled_matmul,
       .recompute = kCompute,
       .accumulators = {{0, 5}},
       .output_dtypes = {{0, "out"}},
       .rounded_operands = 1},
  };
  return kOps;
}

}  // namespace plimsoll::ops
