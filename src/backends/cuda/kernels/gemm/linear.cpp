// Linear layers: operands and layouts put into terms of the one product.
#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"
#include "backends/cuda/kernels/gemm/linear_args.h"
#include "backends/cuda/kernels/gemm/matrices.h"
#include "backends/cuda/kernels/gemm/quantized.h"
#include "base/check.h"

namespace plimsoll::cuda {
namespace {

/// Bytes of a weight's numbers as they are multiplied: of a quantised one a band.
int64_t weight_bytes(const ir::TensorType& weight, bool transposed, Precision precision) {
  return ir::is_block(weight.dtype) ? Band(weight, transposed, precision).bytes()
                                    : rounded_bytes(weight.dtype, weight.num_elements(), precision);
}

/// Scratch of a map: what cuBLASLt wants, the operands rounded, the product in f32, a weight's scales.
struct LinearScratch {
  std::byte *product, *a, *b;
  float *sums, *scales;
  LinearScratch(Scratch& scratch, const ir::TensorType& x, const ir::TensorType& y, int64_t sums_elements,
                Precision precision, bool transposed = false)
      : product(scratch.take<std::byte>(kProductWorkspace)),
        a(scratch.take<std::byte>(rounded_bytes(x.dtype, x.num_elements(), precision))),
        b(scratch.take<std::byte>(weight_bytes(y, transposed, precision))),
        sums(scratch.take<float>(sums_elements)),
        scales(scratch.take<float>(scales_elements(y))) {}
};

/// Whether the product is stored as f32 before it is the result; `bias` dtype where there is one.
bool needs_sums(ir::DType out, const ir::DType* bias, Precision precision) {
  if (!is_direct(out, precision)) return true;
  return bias != nullptr && out != ir::DType::kF32 && *bias != out;
}

int64_t linear_bytes(const ir::OpTypes& types) {
  const ir::TensorType &x = types.inputs[0], &weight = types.inputs[1], &out = types.outputs[0];
  const Precision precision = precision_of(types.attrs, x.dtype, weight.dtype);
  Scratch scratch;
  LinearScratch(scratch, x, weight,
                needs_sums(out.dtype, types.has(2) ? &types.inputs[2].dtype : nullptr, precision)
                    ? out.num_elements()
                    : 0,
                precision, types.attrs.flag("transposed"));
  return scratch.bytes();
}

/// Whether the product itself adds the bias (Product::bias).
bool adds_in_product(const TensorRef& bias, const TensorRef& out) {
  return bias.type.dtype == out.type.dtype && reinterpret_cast<uintptr_t>(bias.data) % 16 == 0;
}

/// d = x weight, whichever way the weight is stored. `bias`: as Product::bias; absent: none.
Status multiply_weight(const Matrix& x, const TensorRef& weight, bool transposed, const Matrix& d, bool adds,
                       const TensorRef& bias, Precision precision, const LinearScratch& scratch,
                       Stream& stream) {
  if (ir::is_block(weight.type.dtype))
    return multiply_quantized({.x = x,
                               .d = d,
                               .weight = weight,
                               .bias = bias,
                               .transposed = transposed,
                               .adds = adds,
                               .precision = precision,
                               .numbers = scratch.b,
                               .product = scratch.product,
                               .scales = scratch.scales},
                              stream);
  PLIMSOLL_ASSIGN(const Matrix b, rounded_for(matrix_of(weight), precision, scratch.b, stream));
  return multiply(x, false, b, !transposed, d, adds, precision, scratch.product, stream, bias.data);
}

/// The product adds the bias. Where it cannot, the bias lies in the result before the product is added to it,
/// or is added to the product in f32.
Status linear(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &weight = call.inputs[1], &out = call.outputs[0];
  const TensorRef bias = input_or_none(call, 2);
  const Precision precision = precision_of(call.op->attrs, x.type.dtype, weight.type.dtype);
  const bool sums_first = needs_sums(out.type.dtype, bias ? &bias.type.dtype : nullptr, precision);
  const int64_t n = out.num_elements();
  Scratch memory(call);
  const bool transposed = call.op->attrs.flag("transposed");
  const LinearScratch scratch(memory, x.type, weight.type, sums_first ? n : 0, precision, transposed);
  PLIMSOLL_ASSIGN(const Matrix a, rounded_for(matrix_of(x), precision, scratch.a, stream));
  Matrix d = matrix_of(out);
  if (sums_first) d = f32_matrix(scratch.sums, d.rows, d.cols);
  const Dim grid = blocks(n, kEach * kThreads);
  const bool in_product = bias && !sums_first && adds_in_product(bias, out);
  const bool lies_before = bias && !sums_first && !in_product;
  if (lies_before)
    PLIMSOLL_TRY(stream.launch(kBroadcastRow, grid, {kThreads}, 0,
                               {.row = operand(bias), .out = operand(out), .n = n, .cols = d.cols}));
  PLIMSOLL_TRY(multiply_weight(a, weight, transposed, d, lies_before, in_product ? bias : TensorRef{},
                               precision, scratch, stream));
  if (!sums_first) return Ok{};
  if (!bias) return cast_elements(operand(d), operand(out), n, stream);
  return stream.launch(kBiasAddRows, grid, {kThreads}, 0,
                       {.x = operand(d), .bias = operand(bias), .out = operand(out), .n = n, .cols = d.cols});
}

int64_t added_columns(const ir::TensorType& weight, const ir::Attrs& attrs) {
  return weight.shape.dim(attrs.flag("transposed") ? 1 : 0);
}

/// Elements of the sums of a product that cannot be added to the result at once.
int64_t added_sums(const ir::TensorType& weight, const ir::TensorType& out, const ir::Attrs& attrs,
                   Precision precision) {
  return is_direct(out.dtype, precision) ? 0 : out.shape.num_rows() * added_columns(weight, attrs);
}

int64_t linear_add_bytes(const ir::OpTypes& types) {
  const ir::TensorType &x = types.inputs[0], &weight = types.inputs[1], &out = types.outputs[0];
  const Precision precision = precision_of(types.attrs, x.dtype, weight.dtype);
  Scratch scratch;
  LinearScratch(scratch, x, weight, added_sums(weight, out, types.attrs, precision), precision);
  return scratch.bytes();
}

/// The product is added as it is summed: not rounded before, unlike on the CPU.
Status linear_add(const KernelCall& call, Stream& stream) {
  const TensorRef &x = call.inputs[0], &weight = call.inputs[1], &base = call.inputs[2],
                  &out = call.outputs[0];
  const ir::Attrs& attrs = call.op->attrs;
  const Precision precision = precision_of(attrs, x.type.dtype, weight.type.dtype);
  const int64_t columns = added_columns(weight.type, attrs), column = attrs.i64("column");
  const int64_t sums = added_sums(weight.type, out.type, attrs, precision);
  Scratch memory(call);
  const LinearScratch scratch(memory, x.type, weight.type, sums, precision);
  if (base.data != out.data) PLIMSOLL_TRY(stream.copy(out.data, base.data, out.type.bytes().count));
  PLIMSOLL_ASSIGN(const Matrix a, rounded_for(matrix_of(x), precision, scratch.a, stream));
  PLIMSOLL_ASSIGN(const Matrix b, rounded_for(matrix_of(weight), precision, scratch.b, stream));
  Matrix d = matrix_of(out);
  d.data += column * ir::bits(d.dtype) / 8;
  d.cols = columns;
  const bool direct = sums == 0;
  if (!direct) d = f32_matrix(scratch.sums, d.rows, columns);
  PLIMSOLL_TRY(
      multiply(a, false, b, !attrs.flag("transposed"), d, direct, precision, scratch.product, stream));
  if (direct) return Ok{};
  return stream.launch(kAddToColumns, blocks(sums, kThreads), {kThreads}, 0,
                       {.sums = scratch.sums,
                        .out = operand(out),
                        .n = sums,
                        .cols = columns,
                        .width = out.shape().dim(-1),
                        .first = column});
}

}  // namespace

Result<Matrix> rounded_for(const Matrix& x, Precision precision, std::byte* scratch, Stream& stream) {
  if (!is_rounded_for(x.dtype, precision)) return x;
  const Matrix to{scratch, ops::stored_dtype(precision), x.rows, x.cols, x.cols};
  PLIMSOLL_TRY(
      cast_to_rows(operand(x), x.stride, operand(to), x.rows, x.cols, precision == Precision::kTf32, stream));
  return to;
}

Product product_of(const Matrix& a, bool a_transposed, const Matrix& b, bool b_transposed, const Matrix& d,
                   bool adds, Precision precision, void* workspace) {
  return {.a = a.data,
          .b = b.data,
          .d = d.data,
          .in = a.dtype,
          .out = d.dtype,
          .m = d.rows,
          .n = d.cols,
          .k = a_transposed ? a.rows : a.cols,
          .a_transposed = a_transposed,
          .b_transposed = b_transposed,
          .lda = a.stride,
          .ldb = b.stride,
          .ldd = d.stride,
          .adds = adds,
          .tf32 = precision == Precision::kTf32,
          .workspace = workspace};
}

Status multiply(const Matrix& a, bool a_transposed, const Matrix& b, bool b_transposed, const Matrix& d,
                bool adds, Precision precision, void* workspace, Stream& stream, const void* bias) {
  Product product = product_of(a, a_transposed, b, b_transposed, d, adds, precision, workspace);
  product.bias = bias;
  return stream.multiply(product);
}

Status accepts_product(const ir::OpTypes& types, int capability) {
  if (capability == 0 || capability >= 80) return Ok{};
  if (precision_of(types.attrs, types.inputs[0].dtype, types.inputs[1].dtype) != Precision::kBf16)
    return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               "products in bf16 have no units on a card of compute capability 7.5 (Turing)",
               "runtime.device",
               "set training.precision=fp16 (with training.state.weights fp32 or fp16), or fp32"};
}

std::span<const Kernel> linear_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "linear",
       .run = linear,
       .workspace_bytes = linear_bytes,
       .strided_inputs = 0b11,
       .block_inputs = 0b10,
       .accepts = accepts_product},
      {.op = "linear_add",
       .run = linear_add,
       .workspace_bytes = linear_add_bytes,
       .strided_inputs = 0b11,
       .accepts = accepts_product},
      {.op = "linear_few",
       .run = linear,
       .workspace_bytes = linear_bytes,
       .strided_inputs = 0b11,
       .block_inputs = 0b10,
       .accepts = accepts_product},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
