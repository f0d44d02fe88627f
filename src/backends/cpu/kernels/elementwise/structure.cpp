// Copies: of views, of the parts of a concatenation, and constant tensors.
#include <cstring>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/strided_runs.h"

namespace plimsoll::cpu {
namespace {

/// Elements that move as such: of four bytes, or of two.
bool is_word(const TensorRef& ref) {
  const int bits = ir::bits(ref.type.dtype);
  PLIMSOLL_CHECK(bits == 32 || bits == 16, "elements of two or four bytes");
  return bits == 32;
}

template <typename T>
void copy_elements(T* to, const T* from, int64_t elements) {
  std::memcpy(to, from, static_cast<size_t>(elements) * sizeof(T));
}

template <typename T>
void copy_of(const KernelCall& call, ThreadPool& pool) {
  const TensorRef& from = call.inputs[0];
  const StridedRuns runs(from.shape(), from.strides);
  const T* x = from.as<const T>();
  T* y = call.outputs[0].as<T>();
  const int64_t step = runs.stride();
  for_blocks(pool, from.num_elements(), kBlockElements, [&](int64_t begin, int64_t end) {
    runs.for_runs(begin, end, [&](int64_t offset, int64_t first, int64_t n) {
      if (step == 1) return copy_elements(y + first, x + offset, n);
      for (int64_t i = 0; i < n; ++i) y[first + i] = x[offset + i * step];
    });
  });
}

void copy(const KernelCall& call, ThreadPool& pool) {
  is_word(call.inputs[0]) ? copy_of<uint32_t>(call, pool) : copy_of<uint16_t>(call, pool);
}

template <typename T>
void concat_of(const KernelCall& call, ThreadPool& pool) {
  const auto y = rows_of<T>(call.outputs[0]);
  for_row_blocks(pool, y.rows, y.cols, [&](int64_t begin, int64_t end) {
    int64_t column = 0;
    for (const TensorRef& input : call.inputs) {
      const auto x = rows_of<const T>(input);
      for (int64_t r = begin; r < end; ++r) copy_elements(y.row(r) + column, x.row(r), x.cols);
      column += x.cols;
    }
  });
}

void concat(const KernelCall& call, ThreadPool& pool) {
  is_word(call.outputs[0]) ? concat_of<uint32_t>(call, pool) : concat_of<uint16_t>(call, pool);
}

void concat_rows(const KernelCall& call, ThreadPool& pool) {
  std::byte* to = call.outputs[0].data;
  for (const TensorRef& part : call.inputs) {
    const int64_t bytes = part.type.bytes().count;
    for_blocks(pool, bytes, kBlockElements * 4, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, part.data + begin, static_cast<size_t>(end - begin));
    });
    to += bytes;
  }
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
      {.op = "concat", .run = concat, .strided_inputs = ~0U, .stored_dtypes = true},
      {.op = "concat_rows", .run = concat_rows, .stored_dtypes = true},
      {.op = "copy", .run = copy, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "fill", .run = fill},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
