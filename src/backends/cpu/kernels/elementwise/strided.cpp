// Kernels that move elements along an axis: gradients of slices, axes in reverse order, elements by index.
#include <cstring>

#include "backends/cpu/kernels/operands.h"
#include "base/at.h"
#include "ops/broadcast.h"

namespace plimsoll::cpu {
namespace {

/// An axis between those before and those behind it, of dense tensors.
struct AroundAxis {
  AroundAxis(const ir::Shape& shape, int64_t axis) : extent(shape.dim(static_cast<int>(axis))) {
    for (int i = 0; i < shape.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : shape.dim(i);
  }
  int64_t outer = 1, extent = 1, inner = 1;
};

size_t bytes_of(int64_t elements, const TensorRef& ref) {
  return static_cast<size_t>(elements * ir::bits(ref.type.dtype) / 8);
}

/// Where the elements of a slice lie along the axis of what it was cut from.
struct SlicePlace {
  explicit SlicePlace(const ir::Attrs& attrs) : start(attrs.i64("start")), step(attrs.i64("step")) {}
  int64_t start, step;
};

/// Rows behind the axis that are long enough to be moved one by one.
void slice_grad_by_rows(const TensorRef& dy, const TensorRef& dx, int64_t axis, const SlicePlace& slice,
                        ThreadPool& pool) {
  const AroundAxis from(dy.shape(), axis), to(dx.shape(), axis);
  const size_t row = bytes_of(to.inner, dx);
  for_row_blocks(pool, to.outer * to.extent, to.inner, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = i % to.extent - slice.start;
      std::byte* const there = dx.data + static_cast<size_t>(i) * row;
      if (place < 0 || place % slice.step != 0 || place / slice.step >= from.extent)
        std::memset(there, 0, row);
      else
        std::memcpy(there,
                    dy.data + static_cast<size_t>(i / to.extent * from.extent + place / slice.step) * row,
                    row);
    }
  });
}

/// Short ones: everything from the axis on at once.
void slice_grad_by_blocks(const TensorRef& dy, const TensorRef& dx, int64_t axis, const SlicePlace& slice,
                          ThreadPool& pool) {
  const AroundAxis from(dy.shape(), axis), to(dx.shape(), axis);
  const size_t row = bytes_of(to.inner, dx), each = slice.step == 1 ? at(from.extent) * row : row;
  const size_t block = at(to.extent) * row, given = at(from.extent) * row;
  const size_t first = at(slice.start) * row, stride = at(slice.step) * row;
  for_row_blocks(pool, to.outer, to.extent * to.inner, [&](int64_t begin, int64_t end) {
    for (auto i = at(begin); i < at(end); ++i) {
      std::byte* const there = dx.data + i * block;
      const std::byte* const here = dy.data + i * given;
      const size_t last = first + (given / each - 1) * stride + each;
      std::memset(there, 0, slice.step == 1 ? first : block);
      for (size_t k = 0; k * each < given; ++k)
        std::memcpy(there + first + k * stride, here + k * each, each);
      if (slice.step == 1) std::memset(there + last, 0, block - last);
    }
  });
}

void slice_grad(const KernelCall& call, ThreadPool& pool) {
  constexpr size_t kLongRow = 256;  // bytes
  const TensorRef &dy = call.inputs[0], &dx = call.outputs[0];
  const int64_t axis = call.op->attrs.i64("axis");
  const AroundAxis to(dx.shape(), axis);
  const auto move =
      bytes_of(to.inner, dx) >= kLongRow || to.outer == 1 ? slice_grad_by_rows : slice_grad_by_blocks;
  move(dy, dx, axis, SlicePlace(call.op->attrs), pool);
}

void flip(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &x = call.inputs[0], &y = call.outputs[0];
  const AroundAxis all(x.shape(), call.op->attrs.i64("axis"));
  const size_t row = bytes_of(all.inner, x);
  for_row_blocks(pool, all.outer * all.extent, all.inner, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t from = i / all.extent * all.extent + all.extent - 1 - i % all.extent;
      std::memcpy(y.data + static_cast<size_t>(i) * row, x.data + static_cast<size_t>(from) * row, row);
    }
  });
}

/// Rows of the last axis of index with their strides in x: `along` is the gathered axis's.
struct Gathering {
  Gathering(const TensorRef& x, const TensorRef& index, int64_t axis)
      : shape(index.shape()), strides(ir::dense_strides(x.shape())), along(strides[at(axis)]) {
    strides[at(axis)] = 0;
  }
  ir::Shape shape;
  ir::Strides strides;
  int64_t along;
};

template <typename T>
void gather_of(const KernelCall& call, ThreadPool& pool) {
  const Gathering g(call.inputs[0], call.inputs[1], call.op->attrs.i64("axis"));
  const T* x = call.inputs[0].as<const T>();
  const auto* index = call.inputs[1].as<const int32_t>();
  T* y = call.outputs[0].as<T>();
  const int64_t width = g.shape.dim(-1), step = g.strides[at(g.shape.rank() - 1)];
  for_row_blocks(pool, g.shape.num_rows(), width, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t base = ops::offset_of(g.shape, r * width, g.strides);
      for (int64_t i = r * width; i < (r + 1) * width; ++i)
        y[i] = x[base + (i - r * width) * step + index[i] * g.along];
    }
  });
}

void gather(const KernelCall& call, ThreadPool& pool) {
  ir::bits(call.inputs[0].type.dtype) == 32 ? gather_of<uint32_t>(call, pool)
                                            : gather_of<uint16_t>(call, pool);
}

/// Elements that meet in one place have one index of each axis but the gathered one: a task has all of an
/// index of the first axis, or of everything where that is the gathered one.
void gather_grad(const KernelCall& call, ThreadPool& pool) {
  const int64_t axis = call.op->attrs.i64("axis");
  const Gathering g(call.outputs[0], call.inputs[1], axis);
  const float* dy = call.inputs[0].as<const float>();
  const auto* index = call.inputs[1].as<const int32_t>();
  float* dx = call.outputs[0].as<float>();
  const int64_t tasks = axis == 0 ? 1 : call.outputs[0].shape().dim(0);
  const int64_t filled = call.outputs[0].num_elements() / tasks;
  const int64_t given = axis == 0 ? g.shape.num_elements() : g.shape.num_elements() / g.shape.dim(0);
  for_row_blocks(pool, tasks, filled, [&](int64_t begin, int64_t end) {
    std::fill(dx + begin * filled, dx + end * filled, 0.0F);
    const int64_t last = std::min(g.shape.num_elements(), end * given);
    for (int64_t i = begin * given; i < last; ++i)
      dx[ops::offset_of(g.shape, i, g.strides) + index[i] * g.along] += dy[i];
  });
}

constexpr Kernel kStridedKernels[] = {
    {.op = "flip", .run = flip, .stored_dtypes = true},
    {.op = "gather", .run = gather, .stored_dtypes = true},
    {.op = "gather_grad", .run = gather_grad},
    {.op = "slice_grad", .run = slice_grad, .stored_dtypes = true},
};

}  // namespace

std::span<const Kernel> strided_kernels() { return kStridedKernels; }

}  // namespace plimsoll::cpu
