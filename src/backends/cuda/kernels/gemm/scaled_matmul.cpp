// Products of operands in FP8 and FP4. Where the card has no units for their formats (coded_product.h), the
// operands become bf16 numbers - a whole, b in bands of the result's columns - and are multiplied as those;
// scales of tensors multiply the sum, in the product's factor.
#include "backends/cuda/kernels/gemm/scaled_matmul.h"

#include <algorithm>

#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"
#include "backends/cuda/kernels/gemm/coded_product.h"
#include "backends/cuda/kernels/gemm/matrices.h"
#include "backends/cuda/kernels/gemm/quantized.h"
#include "backends/cuda/kernels/gemm/scaled_codes.h"
#include "backends/cuda/kernels/gemm/scaled_matmul_args.h"

namespace plimsoll::cuda {
namespace {

using numerics::Scheme;

int64_t aligned(int64_t bytes) { return round_up(bytes, kScratchAlignment); }

/// The product is f32 before it is the result: where it cannot be stored at once, or its bias is of another
/// dtype than a short result.
bool needs_sums(ir::DType out, const ir::DType* bias) {
  if (!is_direct(out, Precision::kBf16)) return true;
  return bias != nullptr && out != ir::DType::kF32 && *bias != out;
}

int64_t numbers_bytes(const ScaledProduct& p) { return aligned(2 * p.m * p.k) + aligned(2 * p.band() * p.k); }

struct ScaledScratch {
  std::byte *product, *operands;
  float *sums, *factor;
  ScaledScratch(Scratch& scratch, const ScaledProduct& p, bool has_sums)
      : product(scratch.take<std::byte>(kProductWorkspace)),
        operands(scratch.take<std::byte>(std::max(numbers_bytes(p), coded_bytes(p)))),
        sums(scratch.take<float>(has_sums ? p.m * p.n : 0)),
        factor(scratch.take<float>(2)) {}
};

int64_t scaled_matmul_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  ScaledScratch(scratch, ScaledProduct(types),
                needs_sums(types.outputs[0].dtype, types.has(4) ? &types.inputs[4].dtype : nullptr));
  return scratch.bytes();
}

CodedMatrix coded_matrix(const KernelCall& call, size_t input, Scheme scheme, int64_t cols) {
  return {.scheme = code_scheme(scheme),
          .codes = call.inputs[input].as<const unsigned char>(),
          .scales = call.inputs[input + 1].data,
          .cols = cols};
}

Status dequantize(const DequantizeCodes& a, Stream& stream) {
  return stream.launch(kDequantizeCodes, blocks(a.rows * ceil_div(a.cols, int64_t{kEach}), kThreads),
                       {kThreads}, 0, a);
}

/// The numbers of codes, in f32 or bf16.
Status dequantize_operand(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const int64_t cols = out.shape().dim(-1);
  return dequantize({.matrix = coded_matrix(call, 0, ops::scheme_of(call.op->attrs, "scheme"), cols),
                     .out = operand(out),
                     .rows = out.shape().num_rows(),
                     .cols = cols},
                    stream);
}

/// The operands as bf16 numbers in `scratch`, and their product.
Status multiply_numbers(const KernelCall& call, const ScaledProduct& p, const ScaledTarget& to,
                        std::byte* scratch, Stream& stream) {
  std::byte *const a_numbers = scratch, *const b_numbers = scratch + aligned(2 * p.m * p.k);
  PLIMSOLL_TRY(dequantize({.matrix = coded_matrix(call, 0, p.a, p.a_cols()),
                           .out = operand_at(a_numbers, ir::DType::kBf16),
                           .rows = p.a_across ? p.k : p.m,
                           .cols = p.a_cols()},
                          stream));
  for (int64_t first = 0; first < p.n; first += p.band()) {
    const int64_t columns = std::min(p.band(), p.n - first);
    PLIMSOLL_TRY(dequantize({.matrix = coded_matrix(call, 2, p.b, p.b_cols()),
                             .out = operand_at(b_numbers, ir::DType::kBf16),
                             .row = p.b_across ? 0 : first,
                             .column = p.b_across ? first : 0,
                             .rows = p.b_across ? p.k : columns,
                             .cols = p.b_across ? columns : p.k},
                            stream));
    Product product = to.band(p, first, columns);
    product.a = a_numbers;
    product.b = b_numbers;
    product.in = ir::DType::kBf16;
    product.a_transposed = p.a_across;
    product.b_transposed = !p.b_across;
    PLIMSOLL_TRY(stream.multiply(product));
  }
  return Ok{};
}

/// What the scales of tensors multiply the sum with (ops::product_factor), for all products that `adds` says.
Status make_factor(const KernelCall& call, const ScaledProduct& p, bool adds, float* out, Stream& stream) {
  const bool is_nvfp4 = numerics::is_nvfp4(p.a);
  return stream.launch(kProductFactor, {1}, {32}, 0,
                       {.a = call.inputs[is_nvfp4 ? 6 : 1].as<const float>(),
                        .b = call.inputs[is_nvfp4 ? 7 : 3].as<const float>(),
                        .inverse = is_nvfp4 ? 1.0F / (36.0F * 448.0F * 448.0F) : 1.0F,
                        .adds = adds ? 1 : 0,
                        .out = out});
}

/// On units for the formats, where the card has them; else as bf16 numbers. With codes of FP8 the scales of
/// tensors go along, so that those need no factor.
Status multiply(const KernelCall& call, const ScaledProduct& p, ScaledTarget to, const ScaledScratch& scratch,
                Stream& stream) {
  const auto make = [&] {
    to.factor = scratch.factor;
    return make_factor(call, p, to.adds, scratch.factor, stream);
  };
  if (numerics::is_nvfp4(p.a)) PLIMSOLL_TRY(make());
  PLIMSOLL_ASSIGN(const bool is_done, multiply_codes(call, p, to, scratch.operands, stream));
  if (is_done) return Ok{};
  if (to.factor == nullptr && ops::has_tensor_factor(p.a, p.b)) PLIMSOLL_TRY(make());
  return multiply_numbers(call, p, to, scratch.operands, stream);
}

/// The bias, where the product could not add it, and the result's dtype.
Status finish(const TensorRef& bias, const Operand& sums, const TensorRef& out, Stream& stream) {
  const int64_t n = out.num_elements();
  if (!bias) return sums.data == out.data ? Status(Ok{}) : cast_elements(sums, operand(out), n, stream);
  return stream.launch(
      kBiasAddRows, blocks(n, kEach * kThreads), {kThreads}, 0,
      {.x = sums, .bias = operand(bias), .out = operand(out), .n = n, .cols = out.shape().dim(-1)});
}

Status scaled_matmul(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const TensorRef bias = input_or_none(call, 4), acc = input_or_none(call, 5);
  const ScaledProduct p(call.op->attrs, out.type);
  const bool sums_first = needs_sums(out.type.dtype, bias ? &bias.type.dtype : nullptr);
  Scratch memory(call);
  const ScaledScratch scratch(memory, p, sums_first);
  if (acc && acc.data != out.data) PLIMSOLL_TRY(stream.copy(out.data, acc.data, out.type.bytes().count));
  const bool in_product = bias && !sums_first && !acc && out.type.dtype != ir::DType::kF32 &&
                          reinterpret_cast<uintptr_t>(bias.data) % 16 == 0;
  ScaledTarget to;
  to.d = sums_first ? static_cast<void*>(scratch.sums) : out.data;
  to.out = sums_first ? ir::DType::kF32 : out.type.dtype;
  to.adds = static_cast<bool>(acc);
  to.workspace = scratch.product;
  if (in_product) to.bias = bias;
  PLIMSOLL_TRY(multiply(call, p, to, scratch, stream));
  return finish(in_product ? TensorRef{} : bias, operand_at(to.d, to.out), out, stream);
}

Status accepts_scaled(const ir::OpTypes& /*types*/, int capability) {
  if (capability == 0 || capability >= 80) return Ok{};
  return Error{ErrorCode::kInvalidArgument,
               "products in FP8 and FP4 are computed in bf16 on cards without units for them, and a card of "
               "compute capability 7.5 (Turing) has none for bf16",
               "training.precision", "set training.precision=fp16, or fp32"};
}

}  // namespace

int64_t ScaledProduct::band() const {
  return Band({ir::DType::kBf16, ir::Shape{n, k}}, false, Precision::kBf16).columns;
}

Product ScaledTarget::band(const ScaledProduct& p, int64_t first, int64_t columns) const {
  Product product;
  product.d = static_cast<std::byte*>(d) + first * ir::bits(out) / 8;
  product.out = out;
  product.m = p.m;
  product.n = columns;
  product.k = p.k;
  product.ldd = p.n;
  product.adds = adds;
  if (bias) product.bias = bias.data + first * ir::bits(bias.type.dtype) / 8;
  product.factor = factor;
  product.workspace = workspace;
  return product;
}

std::span<const Kernel> scaled_matmul_kernels() {
  static constexpr Kernel kernels[] = {{.op = "dequantize_operand", .run = dequantize_operand},
                                       {.op = "scaled_matmul",
                                        .run = scaled_matmul,
                                        .workspace_bytes = scaled_matmul_bytes,
                                        .accepts = accepts_scaled}};
  return kernels;
}

}  // namespace plimsoll::cuda
