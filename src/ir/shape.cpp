#include "ir/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace plimsoll::ir {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  PLIMSOLL_CHECK(dims.size() <= kMaxRank);
  for (size_t i = 0; i < dims.size(); ++i) dims_[i] = dims[i];
}

int64_t Shape::num_elements() const {
  int64_t n = 1;
  for (const int64_t d : dims()) n *= d;
  return n;
}

int64_t Shape::num_rows() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < rank_; ++i) n *= dim(i);
  return n;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), ",")); }

std::string to_string(const TensorType& type) {
  return fmt::format("{}{}", name(type.dtype), to_string(type.shape));
}

Strides dense_strides(const Shape& shape) {
  Strides strides{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= shape.dim(i);
  }
  return strides;
}

}  // namespace plimsoll::ir
