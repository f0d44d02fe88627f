// Shapes that are stretched to meet, and back.
#include "ops/broadcast.h"

#include <algorithm>

#include "base/at.h"
#include "ops/operands.h"
#include "ops/reduce.h"

namespace plimsoll::ops {

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  Shape result = longer;
  for (int i = 1; i <= shorter.rank(); ++i) {
    const int64_t x = longer.dim(longer.rank() - i), y = shorter.dim(shorter.rank() - i);
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result.set_dim(longer.rank() - i, x == 1 ? y : x);
  }
  return result;
}

bool stretches_to(const Shape& from, const Shape& to) { return broadcast(from, to) == to; }

ir::Strides stretched_strides(const Shape& from, const ir::Strides& strides, const Shape& to) {
  ir::Strides result{};
  const int added = to.rank() - from.rank();
  for (int i = added; i < to.rank(); ++i)
    if (from.dim(i - added) != 1 || to.dim(i) == 1) result[at(i)] = strides[at(i - added)];
  return result;
}

int64_t offset_of(const Shape& shape, int64_t index, const ir::Strides& strides) {
  int64_t offset = 0;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    offset += index % shape.dim(i) * strides[at(i)];
    index /= shape.dim(i);
  }
  return offset;
}

ValueId sum_to(Builder& b, ValueId x, const Shape& shape, DType dtype) {
  const Shape from = b.type(x).shape;
  const int added = from.rank() - shape.rank();
  std::vector<int64_t> axes;
  bool ends_whole = true;  // the axes that are left are trailing ones, none of extent 1
  for (int i = 0; i < from.rank(); ++i) {
    const bool is_summed = i < added || (shape.dim(i - added) == 1 && from.dim(i) != 1);
    if (is_summed) axes.push_back(i);
    ends_whole = ends_whole && is_summed == (i < added);
  }
  if (axes.empty()) return cast(b, from == shape ? x : reshape(b, x, extents_of(shape)), dtype);
  if (ends_whole && shape.rank() == 1) return b.op("sum_rows", {x}, with_out({}, dtype));
  const ValueId sum = reduce(b, Reduce::kSum, x, axes, !ends_whole && added == 0, dtype);
  return b.type(sum).shape == shape ? sum : reshape(b, sum, extents_of(shape));
}

std::vector<int64_t> extents_of(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

}  // namespace plimsoll::ops
