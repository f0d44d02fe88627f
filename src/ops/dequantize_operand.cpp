// Numbers of codes and scales again, for values that backward reads from a copy in FP8.
#include <bit>
#include <cstring>

#include "base/at.h"
#include "ops/operands.h"
#include "ops/scaled_operand.h"

namespace plimsoll::ops {
namespace {

using numerics::Scheme;

/// Codes of a byte, scales of blocks of one row.
bool is_readable(const ir::Attrs& attrs) {
  const auto scheme = numerics::find_scheme(attrs.str("scheme"));
  if (!scheme) return false;
  const numerics::SchemeInfo& s = numerics::info(*scheme);
  return s.block_rows == 1 && !s.has_tensor_scale && s.codes == numerics::Format::kE4m3;
}

Result<Types> infer_dequantize_operand(const OpTypes& t) {
  Operands in(t, 2, {"codes", "scales"});
  if (!in) return in.error();
  if (!is_readable(t.attrs)) {
    in.require(false, "scheme must have E4M3 codes and scales of blocks of one row");
    return in.error();
  }
  const TensorType& codes = t.inputs[0];
  in.require(codes.dtype == DType::kU8, "codes are u8", {0});
  in.require(t.inputs[1] == scales_type(scheme_of(t.attrs, "scheme"), codes.shape),
             "scales are not those of the codes", {0, 1});
  const DType dtype = out_dtype(in, t, DType::kBf16);
  in.require(dtype != DType::kF16, "fp16 does not hold the numbers");
  return in.results({{dtype, codes.shape}});
}

std::vector<std::byte> bytes_of(const RefTensor& from) {
  const auto width = at(ir::bits(from.type.dtype) / 8);
  std::vector<std::byte> bytes(from.data.size() * width);
  for (size_t i = 0; i < from.data.size(); ++i) {
    const auto value = static_cast<float>(from.data[i]);
    if (width == 1)
      bytes[i] = static_cast<std::byte>(from.data[i]);
    else
      std::memcpy(&bytes[4 * i], &value, 4);
  }
  return bytes;
}

void reference_dequantize_operand(RefContext& ctx) {
  const Scheme scheme = scheme_of(ctx.op.attrs, "scheme");
  const std::vector<std::byte> codes = bytes_of(*ctx.inputs[0]), scales = bytes_of(*ctx.inputs[1]);
  const int64_t cols = ctx.inputs[0]->type.shape.dim(-1);
  std::vector<uint16_t> row(at(cols));
  for (int64_t r = 0; r < ctx.inputs[0]->type.shape.num_rows(); ++r) {
    dequantize_codes(scheme, codes.data(), scales.data(), cols, r, 0, row);
    for (size_t c = 0; c < row.size(); ++c)
      ctx.outputs[0]->data[at(r * cols) + c] = std::bit_cast<float>(static_cast<uint32_t>(row[c]) << 16);
  }
}

Cost cost_dequantize_operand(const OpTypes& t) {
  return cost_of(t, 2 * static_cast<double>(t.inputs[0].num_elements()));
}

}  // namespace

OpGroup dequantize_operand_ops() {
  static const std::vector<OpDef> kOps = {{.name = "dequantize_operand",
                                           .summary = "the numbers of codes and scales",
                                           .work = {WorkKind::kElementwise},
                                           .min_inputs = 2,
                                           .max_inputs = 2,
                                           .attrs = {string_attr("scheme"), out_attr()},
                                           .infer = infer_dequantize_operand,
                                           .cost = cost_dequantize_operand,
                                           .reference = reference_dequantize_operand,
                                           .recompute = ir::RecomputeClass::kNearlyFree,
                                           .output_dtypes = {{0, "out"}}}};
  return kOps;
}

}  // namespace plimsoll::ops
