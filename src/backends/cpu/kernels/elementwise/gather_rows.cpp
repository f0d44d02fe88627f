// One row of each sequence, and back among zeros.
#include <cstring>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

void gather_rows(const KernelCall& call, ThreadPool&) {
  const RowsOfAny x(call.inputs[0]), y(call.outputs[0]);
  const auto* index = call.inputs[1].as<const int32_t>();
  const int64_t tokens = call.inputs[0].shape().dim(1);
  const auto row_bytes = static_cast<size_t>(y.cols() * y.element_bytes());
  for (int64_t b = 0; b < y.rows(); ++b) std::memcpy(y.row(b), x.row(b * tokens + index[b]), row_bytes);
}

void gather_rows_grad(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny dy(call.inputs[0]), x(call.outputs[0]);
  const auto* index = call.inputs[1].as<const int32_t>();
  const int64_t tokens = call.outputs[0].shape().dim(1);
  const auto row_bytes = static_cast<size_t>(x.cols() * x.element_bytes());
  for_row_blocks(pool, x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      if (r % tokens == index[r / tokens])
        std::memcpy(x.row(r), dy.row(r / tokens), row_bytes);
      else
        std::memset(x.row(r), 0, row_bytes);
  });
}

constexpr Kernel kGatherRowsKernels[] = {
    {.op = "gather_rows", .run = gather_rows, .strided_inputs = 0b1, .stored_dtypes = true},
    {.op = "gather_rows_grad", .run = gather_rows_grad, .strided_inputs = 0b1, .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> gather_rows_kernels() { return kGatherRowsKernels; }

}  // namespace plimsoll::cpu
