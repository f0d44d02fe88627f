// Gradients of linear layers: the product over the rows, and the sums of dy's rows beside it.
#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/gemm/matrices.h"
#include "backends/cuda/kernels/norm/sums.h"

namespace plimsoll::cuda {
namespace {

/// The types of an op's operands: x, dy, the weight's gradient.
struct GradientTypes {
  const ir::TensorType &x, &dy, &out;
  Precision precision;
  GradientTypes(const ir::Attrs& attrs, const ir::TensorType& x_type, const ir::TensorType& dy_type,
                const ir::TensorType& out_type)
      : x(x_type), dy(dy_type), out(out_type), precision(precision_of(attrs, x.dtype, dy.dtype)) {}
  [[nodiscard]] bool direct() const { return is_direct(out.dtype, precision); }
};

/// What cuBLASLt wants, the operands rounded, the product in f32; of a bias its sums in f32, and by granules.
struct GradientScratch {
  std::byte *product, *a, *b;
  float *sums, *row = nullptr, *partial = nullptr;
  GradientScratch(Scratch& scratch, const GradientTypes& t, bool has_bias)
      : product(scratch.take<std::byte>(kProductWorkspace)),
        a(scratch.take<std::byte>(rounded_bytes(t.x.dtype, t.x.num_elements(), t.precision))),
        b(scratch.take<std::byte>(rounded_bytes(t.dy.dtype, t.dy.num_elements(), t.precision))),
        sums(scratch.take<float>(t.direct() ? 0 : t.out.num_elements())) {
    if (!has_bias) return;
    row = scratch.take<float>(t.dy.shape.dim(-1));
    partial = scratch.take<float>(column_sum_elements(t.dy.shape));
  }
};

template <bool kHasBias>
int64_t gradient_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  GradientScratch(scratch, {types.attrs, types.inputs[0], types.inputs[1], types.outputs[0]}, kHasBias);
  return scratch.bytes();
}

GradientTypes types_of(const KernelCall& call) {
  return {call.op->attrs, call.inputs[0].type, call.inputs[1].type, call.outputs[0].type};
}

/// The product dw = dy^T x, or x^T dy where the weight lies so; onto the accumulator, where it has one.
Result<Product> weight_product(const KernelCall& call, const GradientTypes& t, const GradientScratch& scratch,
                               Stream& stream) {
  const TensorRef &out = call.outputs[0], acc = input_or_none(call, 2);
  if (acc && acc.data != out.data) PLIMSOLL_TRY(stream.copy(out.data, acc.data, out.type.bytes().count));
  PLIMSOLL_ASSIGN(const Matrix x, rounded_for(matrix_of(call.inputs[0]), t.precision, scratch.a, stream));
  PLIMSOLL_ASSIGN(const Matrix dy, rounded_for(matrix_of(call.inputs[1]), t.precision, scratch.b, stream));
  Matrix d = matrix_of(out);
  if (!t.direct()) d = f32_matrix(scratch.sums, d.rows, d.cols);
  const bool transposed = call.op->attrs.flag("transposed");
  return product_of(transposed ? x : dy, true, transposed ? dy : x, false, d, static_cast<bool>(acc),
                    t.precision, scratch.product);
}

Status multiply_weight_gradient(const KernelCall& call, const GradientTypes& t, const Product& product,
                                Stream& stream) {
  PLIMSOLL_TRY(stream.multiply(product));
  if (t.direct()) return Ok{};
  const TensorRef& out = call.outputs[0];
  return cast_elements(operand_at(product.d, product.out), operand(out), out.num_elements(), stream);
}

Status linear_dw(const KernelCall& call, Stream& stream) {
  const GradientTypes t = types_of(call);
  Scratch memory(call);
  const GradientScratch scratch(memory, t, /*has_bias=*/false);
  PLIMSOLL_ASSIGN(const Product product, weight_product(call, t, scratch, stream));
  return multiply_weight_gradient(call, t, product, stream);
}

/// Where the product itself may write the sums: those of dy as it is stored, in the dtype of what it
/// computes. Null: nowhere.
void* sums_beside(const GradientTypes& t, const Product& product, const TensorRef& acc, const TensorRef& db,
                  const GradientScratch& scratch) {
  if (is_rounded_for(t.dy.dtype, t.precision)) return nullptr;
  if (acc) return product.out == ir::DType::kF32 ? scratch.row : nullptr;
  const bool fits = product.out == db.type.dtype && reinterpret_cast<uintptr_t>(db.data) % 16 == 0;
  return fits ? db.data : nullptr;
}

/// Where the library sums nothing beside such a product, the rows are summed by themselves.
Status linear_dw_db(const KernelCall& call, Stream& stream) {
  const GradientTypes t = types_of(call);
  const TensorRef &dy = call.inputs[1], &db = call.outputs[1], acc = input_or_none(call, 3);
  Scratch memory(call);
  const GradientScratch scratch(memory, t, /*has_bias=*/true);
  PLIMSOLL_ASSIGN(Product product, weight_product(call, t, scratch, stream));
  product.sums = sums_beside(t, product, acc, db, scratch);
  product.sums_of_b = call.op->attrs.flag("transposed");
  const bool beside = product.sums != nullptr && stream.multiplies(product);
  if (!beside) product.sums = nullptr;
  PLIMSOLL_TRY(multiply_weight_gradient(call, t, product, stream));
  if (!beside) return sum_columns({dy}, scratch.partial, acc, db, stream);
  if (!acc) return Ok{};
  return add_partials(scratch.row, 1, dy.shape().dim(-1), acc, db, stream);
}

Status accepts_both(const ir::OpTypes& types, int capability) {
  PLIMSOLL_TRY(accepts_product(types, capability));
  return accepts_column_sum(types, capability);  // of x, which has dy's rows
}

}  // namespace

std::span<const Kernel> linear_gradient_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "linear_dw",
       .run = linear_dw,
       .workspace_bytes = gradient_bytes<false>,
       .strided_inputs = 0b11,
       .accepts = accepts_product},
      {.op = "linear_dw_db",
       .run = linear_dw_db,
       .workspace_bytes = gradient_bytes<true>,
       .strided_inputs = 0b11,
       .accepts = accepts_both},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
