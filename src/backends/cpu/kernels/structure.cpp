// Copies: of views, of the parts of a concatenation, and constant tensors. All elements have four bytes here.
#include <cstring>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

void copy_bytes(void* to, const void* from, int64_t elements) {
  std::memcpy(to, from, static_cast<size_t>(elements) * sizeof(float));
}

void check_width(const TensorRef& ref) {
  PLIMSOLL_CHECK(ir::bits(ref.type.dtype) == 32, "elements of four bytes");
}

void copy(const KernelCall& call, ThreadPool& pool) {
  check_width(call.inputs[0]);
  const Walk<2> walk({&call.inputs[0], &call.outputs[0]});
  const float* x = call.inputs[0].as<const float>();
  float* y = call.outputs[0].as<float>();
  for_blocks(pool, walk.total(), kBlockElements, [&](int64_t begin, int64_t end) {
    walk.for_runs(begin, end, [&](const auto& at, int64_t n) { copy_bytes(y + at[1], x + at[0], n); });
  });
}

void concat(const KernelCall& call, ThreadPool& pool) {
  const auto y = rows_of<float>(call.outputs[0]);
  for_row_blocks(pool, y.rows, y.cols, [&](int64_t begin, int64_t end) {
    int64_t column = 0;
    for (const TensorRef& input : call.inputs) {
      check_width(input);
      const auto x = rows_of<const float>(input);
      for (int64_t r = begin; r < end; ++r) copy_bytes(y.row(r) + column, x.row(r), x.cols);
      column += x.cols;
    }
  });
}

void fill(const KernelCall& call, ThreadPool& pool) {
  const float value = static_cast<float>(call.op->attrs.f64("value"));
  float* y = call.outputs[0].as<float>();
  for_blocks(pool, call.outputs[0].num_elements(), kBlockElements,
             [&](int64_t begin, int64_t end) { std::fill(y + begin, y + end, value); });
}

}  // namespace

std::span<const Kernel> structure_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "concat", .run = concat, .strided_inputs = ~0U},
      {.op = "copy", .run = copy, .strided_inputs = 0b1},
      {.op = "fill", .run = fill},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
