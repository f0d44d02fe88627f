// Matrix products over leading axes: operands are made dense and rounded once, then each pair is multiplied.
#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/gemm/matrices.h"
#include "base/at.h"
#include "ops/broadcast.h"

namespace plimsoll::cuda {
namespace {

/// Scratch: what cuBLASLt wants, operands made dense, the same rounded, the products in f32.
struct BatchedScratch {
  std::byte *product, *dense_a, *dense_b, *a, *b;
  float* sums;
  BatchedScratch(Scratch& scratch, const ir::TensorType& x, const ir::TensorType& y, int64_t sums_elements,
                 Precision precision)
      : product(scratch.take<std::byte>(kProductWorkspace)),
        dense_a(scratch.take<std::byte>(x.bytes().count)),
        dense_b(scratch.take<std::byte>(y.bytes().count)),
        a(scratch.take<std::byte>(rounded_bytes(x.dtype, x.num_elements(), precision))),
        b(scratch.take<std::byte>(rounded_bytes(y.dtype, y.num_elements(), precision))),
        sums(scratch.take<float>(sums_elements)) {}
};

int64_t sums_of(const ir::TensorType& out, Precision precision) {
  return is_direct(out.dtype, precision) ? 0 : out.num_elements();
}

int64_t batched_matmul_bytes(const ir::OpTypes& types) {
  const Precision precision = precision_of(types.attrs, types.inputs[0].dtype, types.inputs[1].dtype);
  Scratch scratch;
  BatchedScratch(scratch, types.inputs[0], types.inputs[1], sums_of(types.outputs[0], precision), precision);
  return scratch.bytes();
}

/// The matrices of an operand, dense and rounded, one after the other.
class DeviceMatrices {
 public:
  DeviceMatrices(const ir::Shape& shape, const Matrix& all, const ir::Shape& lead)
      : all_(all), rows_(shape.dim(-2)), lead_(lead) {
    const auto axes = at(shape.rank() - 2);
    const ir::Shape own(shape.dims().first(axes));
    strides_ = ops::stretched_strides(own, ir::dense_strides(own), lead);
  }
  [[nodiscard]] Matrix matrix(int64_t i) const {
    return all_.from(ops::offset_of(lead_, i, strides_) * rows_, rows_);
  }

 private:
  Matrix all_;
  int64_t rows_;
  ir::Shape lead_;
  ir::Strides strides_{};
};

Result<Matrix> prepared(const KernelCall& call, size_t i, Precision precision, std::byte* dense,
                        std::byte* rounded, Stream& stream) {
  TensorRef x = call.inputs[i];
  if (!x.is_dense()) {
    TensorRef copy{dense, x.type, ir::dense_strides(x.shape())};
    PLIMSOLL_TRY(copy_elements(x, copy, call, stream));
    x = copy;
  }
  return rounded_for(matrix_of(x), precision, rounded, stream);
}

Status batched_matmul(const KernelCall& call, Stream& stream) {
  const TensorRef& out = call.outputs[0];
  const ir::Attrs& attrs = call.op->attrs;
  const Precision precision = precision_of(attrs, call.inputs[0].type.dtype, call.inputs[1].type.dtype);
  const int64_t sums = sums_of(out.type, precision);
  Scratch memory(call);
  const BatchedScratch scratch(memory, call.inputs[0].type, call.inputs[1].type, sums, precision);
  PLIMSOLL_ASSIGN(const Matrix a, prepared(call, 0, precision, scratch.dense_a, scratch.a, stream));
  PLIMSOLL_ASSIGN(const Matrix b, prepared(call, 1, precision, scratch.dense_b, scratch.b, stream));
  const ir::Shape lead(out.shape().dims().first(at(out.shape().rank() - 2)));
  const DeviceMatrices left(call.inputs[0].shape(), a, lead), right(call.inputs[1].shape(), b, lead);
  const int64_t m = out.shape().dim(-2), n = out.shape().dim(-1);
  const int64_t rows = lead.num_elements() * m;
  const Matrix all =
      sums > 0 ? f32_matrix(scratch.sums, rows, n) : Matrix{out.data, out.type.dtype, rows, n, n};
  for (int64_t i = 0; i < lead.num_elements(); ++i)
    PLIMSOLL_TRY(multiply(left.matrix(i), attrs.flag("transpose_a"), right.matrix(i),
                          attrs.flag("transpose_b"), all.from(i * m, m), false, precision, scratch.product,
                          stream));
  if (sums == 0) return Ok{};
  return cast_elements(operand(all), operand(out), sums, stream);
}

}  // namespace

std::span<const Kernel> batched_matmul_kernels() {
  static constexpr Kernel kernels[] = {{.op = "batched_matmul",
                                        .run = batched_matmul,
                                        .workspace_bytes = batched_matmul_bytes,
                                        .strided_inputs = 0b11,
                                        .accepts = accepts_product}};
  return kernels;
}

}  // namespace plimsoll::cuda
