// A band's numbers lie dense: rows of a weight [out, in], or columns of one that lies as [in, out].
#include "backends/cuda/kernels/gemm/quantized.h"

#include <algorithm>

#include "backends/cuda/kernels/gemm/dequantize_args.h"
#include "numerics/dynamic_map.h"
#include "numerics/quantized.h"
#include "runtime/component.h"

namespace plimsoll::cuda {
namespace {

/// Wide enough that the product fills a card, and small beside weights and activations.
constexpr int64_t kBandBytes = int64_t{32} << 20, kLeastColumns = 256, kColumnStep = 128;
static_assert(kColumnStep % 8 == 0,
              "a bias's part is aligned as the whole, and so are eight numbers of a row");

static_assert(kScaledCodes == numerics::bitsandbytes::kBlock);
static_assert(kScaledScales == numerics::bitsandbytes::kNestedBlock);

bool is_double(ir::DType dtype) { return dtype == ir::DType::kNf4Double || dtype == ir::DType::kFp4Double; }
numerics::FourBit format_of(ir::DType dtype) {
  return dtype == ir::DType::kFp4 || dtype == ir::DType::kFp4Double ? numerics::FourBit::kFp4
                                                                    : numerics::FourBit::kNf4;
}

Status make_scales(const TensorRef& weight, float* out, Stream& stream) {
  DequantizeScales a;
  a.codes = runtime::component(weight, 1).as<const unsigned char>();
  a.second = runtime::component(weight, 2).as<const float>();
  a.offset = runtime::component(weight, 3).as<const float>();
  a.out = out;
  a.n = scales_elements(weight.type);
  std::ranges::copy(numerics::signed_dynamic_map().values, a.map);
  return stream.launch(kDequantizeScales, blocks(a.n, kDequantizeThreads), {kDequantizeThreads}, 0, a);
}

}  // namespace

int64_t scales_elements(const ir::TensorType& weight) {
  return is_double(weight.dtype) ? ceil_div(weight.num_elements(), int64_t{kScaledCodes}) : 0;
}

Result<CodedWeight> coded_weight(const TensorRef& weight, float* scales, Stream& stream) {
  CodedWeight w;
  w.codes = reinterpret_cast<const unsigned char*>(weight.data);
  w.row = weight.shape().dim(-1);
  if (weight.type.dtype == ir::DType::kI8Rows)
    w.form = Codes::kInt8Rows;
  else
    std::ranges::copy(numerics::bitsandbytes::values_of(format_of(weight.type.dtype)), w.values);
  if (is_double(weight.type.dtype)) {
    PLIMSOLL_TRY(make_scales(weight, scales, stream));
    w.scales = scales;
  } else {
    w.scales = runtime::component(weight, 1).as<const float>();
  }
  return w;
}

Band::Band(const ir::TensorType& weight, bool transposed, Precision precision)
    : inner(weight.shape.dim(transposed ? 0 : 1)), dtype(ops::stored_dtype(precision)) {
  const int64_t out = weight.shape.dim(transposed ? 1 : 0);
  const int64_t fitting = std::max(kLeastColumns, kBandBytes / (inner * ir::bits(dtype) / 8));
  columns = std::min(out, round_up(ceil_div(out, ceil_div(out, fitting)), kColumnStep));
}

Status multiply_quantized(const QuantizedProduct& p, Stream& stream) {
  const Band band(p.weight.type, p.transposed, p.precision);
  PLIMSOLL_ASSIGN(const CodedWeight weight, coded_weight(p.weight, p.scales, stream));
  for (int64_t first = 0; first < p.d.cols; first += band.columns) {
    const int64_t columns = std::min(band.columns, p.d.cols - first);
    Dequantize a;
    a.weight = weight;
    a.out = operand_at(p.numbers, band.dtype);
    (p.transposed ? a.column : a.row) = first;
    a.rows = p.transposed ? band.inner : columns;
    a.cols = p.transposed ? columns : band.inner;
    a.tf32 = p.precision == Precision::kTf32 ? 1 : 0;
    PLIMSOLL_TRY(stream.launch(kDequantize, blocks(a.rows * a.cols, 8 * kDequantizeThreads),
                               {kDequantizeThreads}, 0, a));
    const Matrix numbers{p.numbers, band.dtype, a.rows, a.cols, a.cols};
    Matrix d = p.d;
    d.data += first * ir::bits(d.dtype) / 8;
    d.cols = columns;
    const auto* bias = p.bias ? p.bias.data + first * ir::bits(p.bias.type.dtype) / 8 : nullptr;
    PLIMSOLL_TRY(
        multiply(p.x, false, numbers, !p.transposed, d, p.adds, p.precision, p.product, stream, bias));
  }
  return Ok{};
}

}  // namespace plimsoll::cuda
