// Rows of each sequence, and back among zeros.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/operands.h"
#include "ops/structure.h"

namespace plimsoll::cpu {
namespace {

void gather_rows(const KernelCall& call, ThreadPool&) {
  const RowsOfAny x(call.inputs[0]), y(call.outputs[0]);
  const auto* index = call.inputs[1].as<const int32_t>();
  const int64_t tokens = call.inputs[0].shape().dim(1), each = call.outputs[0].shape().dim(1);
  const auto row_bytes = static_cast<size_t>(y.cols() * y.element_bytes());
  for (int64_t r = 0; r < y.rows(); ++r)
    if (index[r] == ops::kNoRow)
      std::memset(y.row(r), 0, row_bytes);
    else
      std::memcpy(y.row(r), x.row(r / each * tokens + index[r]), row_bytes);
}

void gather_rows_grad(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny dy(call.inputs[0]), x(call.outputs[0]);
  const auto* index = call.inputs[1].as<const int32_t>();
  const int64_t tokens = call.outputs[0].shape().dim(1), each = call.inputs[0].shape().dim(1);
  const auto row_bytes = static_cast<size_t>(x.cols() * x.element_bytes());
  // kNoRow as unsigned is behind all rows.
  const auto before = [](int32_t a, int32_t b) {
    return static_cast<uint32_t>(a) < static_cast<uint32_t>(b);
  };
  for_row_blocks(pool, x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int32_t *first = index + r / tokens * each, *last = first + each;
      const auto row = static_cast<int32_t>(r % tokens);
      const int32_t* found = std::lower_bound(first, last, row, before);
      if (found != last && *found == row)
        std::memcpy(x.row(r), dy.row(found - index), row_bytes);
      else
        std::memset(x.row(r), 0, row_bytes);
    }
  });
}

constexpr Kernel kGatherRowsKernels[] = {
    {.op = "gather_rows", .run = gather_rows, .strided_inputs = 0b1, .stored_dtypes = true},
    {.op = "gather_rows_grad", .run = gather_rows_grad, .strided_inputs = 0b1, .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> gather_rows_kernels() { return kGatherRowsKernels; }

}  // namespace plimsoll::cpu
