// Matrix products over leading axes: each by the GEMM, large ones on all threads, small ones a thread each.
// Its bits do not depend on the threads, so this choice changes none.
#include "backends/cpu/kernels/gemm/linear.h"
#include "base/at.h"
#include "ops/broadcast.h"

namespace plimsoll::cpu {
namespace {

/// Products of so many terms and more are shared out among the threads themselves.
constexpr int64_t kSharedTerms = int64_t{1} << 24;

struct MatrixExtents {
  int64_t count = 1, m = 0, n = 0, k = 0;
  [[nodiscard]] bool are_shared() const { return count == 1 || m * n * k >= kSharedTerms; }
};

MatrixExtents extents_of(const ir::Shape& a, const ir::Shape& y, const ir::Attrs& attrs) {
  MatrixExtents e{.m = y.dim(-2), .n = y.dim(-1), .k = a.dim(attrs.flag("transpose_a") ? -2 : -1)};
  e.count = y.num_elements() / (e.m * e.n);
  return e;
}

int64_t batched_matmul_bytes(const ir::OpTypes& types, int num_threads) {
  const MatrixExtents e = extents_of(types.inputs[0].shape, types.outputs[0].shape, types.attrs);
  const GemmTypes gemm{precision_of(types.attrs, types.inputs[0].dtype, types.inputs[1].dtype),
                       types.outputs[0].dtype};
  return e.are_shared() ? gemm_workspace_bytes(e.m, e.n, e.k, num_threads, gemm)
                        : num_threads * gemm_workspace_bytes(e.m, e.n, e.k, 1, gemm);
}

/// The matrices of an operand along the leading axes of the result.
class Matrices {
 public:
  Matrices(const TensorRef& ref, bool transposed, const ir::Shape& result) : ref_(ref) {
    const int axes = ref.shape().rank() - 2;
    row_ = ref.strides[at(transposed ? axes + 1 : axes)];
    column_ = ref.strides[at(transposed ? axes : axes + 1)];
    lead_ = ir::Shape(result.dims().first(at(result.rank() - 2)));
    strides_ = ops::stretched_strides(ir::Shape(ref.shape().dims().first(at(axes))), ref.strides, lead_);
  }
  [[nodiscard]] ConstMatrix matrix(int64_t i) const {
    const int64_t offset = ops::offset_of(lead_, i, strides_) * ir::bits(ref_.type.dtype) / 8;
    return {ref_.data + offset, row_, column_, ref_.type.dtype};
  }

 private:
  const TensorRef& ref_;
  int64_t row_ = 0, column_ = 0;
  ir::Shape lead_;
  ir::Strides strides_{};
};

void batched_matmul(const KernelCall& call, ThreadPool& pool) {
  static ThreadPool alone(1);  // runs on whoever calls it, any number at once
  const TensorRef& y = call.outputs[0];
  const ir::Attrs& attrs = call.op->attrs;
  const MatrixExtents e = extents_of(call.inputs[0].shape(), y.shape(), attrs);
  const Matrices a(call.inputs[0], attrs.flag("transpose_a"), y.shape());
  const Matrices b(call.inputs[1], attrs.flag("transpose_b"), y.shape());
  const Precision precision = precision_of(attrs, call.inputs[0].type.dtype, call.inputs[1].type.dtype);
  const auto multiply = [&](int64_t i, ThreadPool& threads, std::span<std::byte> workspace) {
    gemm({.m = e.m,
          .n = e.n,
          .k = e.k,
          .a = a.matrix(i),
          .b = b.matrix(i),
          .c = y.data + i * e.m * e.n * ir::bits(y.type.dtype) / 8,
          .c_row_stride = e.n,
          .precision = precision,
          .c_dtype = y.type.dtype,
          .past_caches = beyond_caches(y.num_elements(), y.type.dtype)},
         threads, workspace);
  };
  if (e.are_shared()) {
    for (int64_t i = 0; i < e.count; ++i) multiply(i, pool, call.workspace);
    return;
  }
  const auto bytes = static_cast<size_t>(
      gemm_workspace_bytes(e.m, e.n, e.k, 1, {.precision = precision, .c_dtype = y.type.dtype}));
  pool.run(e.count, [&](int64_t i, int thread) {
    multiply(i, alone, call.workspace.subspan(static_cast<size_t>(thread) * bytes, bytes));
  });
}

}  // namespace

std::span<const Kernel> batched_matmul_kernels() {
  static constexpr Kernel kernels[] = {{.op = "batched_matmul",
                                        .run = batched_matmul,
                                        .workspace_bytes = batched_matmul_bytes,
                                        .strided_inputs = 0b11,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
