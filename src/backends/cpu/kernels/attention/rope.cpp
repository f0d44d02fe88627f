// Rotary positions. The table is made in double by libm; the rotation is one pass, a head at a time.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention/rope.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels/attention/rope_rows-inl.h"
#include "backends/cpu/kernels/operands.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

void rotate_heads(ir::DType dtype, const void* x, const float* table, void* y, int64_t heads, int64_t half,
                  bool inverse) {
  stored::with_element(dtype, [=](auto element) HWY_ATTR {
    using T = decltype(element);
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    inverse ? ropes::rotate<true>(from, table, to, heads, half)
            : ropes::rotate<false>(from, table, to, heads, half);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(rotate_heads);

void rope_table(const KernelCall& call, ThreadPool& pool) {
  const TensorRef inv_freq = call.inputs[0], positions = input_or_none(call, 1);
  const auto table = rows_of<float>(call.outputs[0]);
  const int64_t half = table.cols / 2;
  const double factor = call.op->attrs.f64("factor");
  const auto* frequency = inv_freq.as<const float>();
  const auto* given = positions.as<const int32_t>();
  // A cosine and a sine cost some 50 elements of a plain pass.
  for_blocks(pool, table.rows, rows_per_block(half * 50), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const double position = given != nullptr ? given[r] : static_cast<double>(r);
      float* row = table.row(r);
      for (int64_t i = 0; i < half; ++i) {
        const double angle = position * static_cast<double>(frequency[i]);
        row[i] = static_cast<float>(std::cos(angle) * factor);
        row[half + i] = static_cast<float>(std::sin(angle) * factor);
      }
    }
  });
}

// The first `heads` heads of every row are turned, what follows is copied.
void turn(const KernelCall& call, ThreadPool& pool, int row_axes, int64_t heads, int64_t head_dim) {
  const RowsOfAny x(call.inputs[0], row_axes), y(call.outputs[0], row_axes);
  const ir::DType dtype = call.inputs[0].type.dtype;
  const auto table = rows_of<const float>(call.inputs[1]);
  const bool inverse = call.op->attrs.flag("inverse");
  const int64_t turned = heads * head_dim;
  for_row_blocks(pool, x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      HWY_DYNAMIC_DISPATCH(rotate_heads)
      (dtype, x.row(r), table.row(r % table.rows), y.row(r), heads, head_dim / 2, inverse);
      if (x.cols() > turned && x.row(r) != y.row(r))
        std::memcpy(y.row(r, turned), x.row(r, turned),
                    static_cast<size_t>((x.cols() - turned) * x.element_bytes()));
    }
  });
}

void rope(const KernelCall& call, ThreadPool& pool) {
  const ir::Shape& shape = call.inputs[0].shape();
  turn(call, pool, 2, shape.dim(2), shape.dim(3));
}

void rope_packed(const KernelCall& call, ThreadPool& pool) {
  turn(call, pool, 1, call.op->attrs.i64("heads"), call.op->attrs.i64("head_dim"));
}

}  // namespace

std::span<const Kernel> rope_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "rope", .run = rope, .strided_inputs = 0b1, .stored_inputs = 0b1, .stored_outputs = 0b1},
      {.op = "rope_packed",
       .run = rope_packed,
       .strided_inputs = 0b1,
       .stored_inputs = 0b1,
       .stored_outputs = 0b1},
      {.op = "rope_table", .run = rope_table},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
