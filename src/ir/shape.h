// Shapes and the type of a value.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "ir/dtype.h"

namespace plimsoll::ir {

/// Up to six static extents; a scalar is [1] by convention, rank 0 is "no shape yet".
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  [[nodiscard]] int rank() const { return rank_; }
  /// Extent of axis `i`; negative counts from the end.
  [[nodiscard]] int64_t dim(int i) const { return dims_[static_cast<size_t>(i < 0 ? rank_ + i : i)]; }
  void set_dim(int i, int64_t extent) { dims_[static_cast<size_t>(i < 0 ? rank_ + i : i)] = extent; }
  [[nodiscard]] std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  /// Product of the extents; 1 for rank 0.
  [[nodiscard]] int64_t num_elements() const;
  /// Product of all extents but the last: the rows that a last-axis op works on.
  [[nodiscard]] int64_t num_rows() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// "[8,256,288]"
std::string to_string(const Shape& shape);

/// Element type and shape of a value.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
  [[nodiscard]] int64_t num_elements() const { return shape.num_elements(); }
  [[nodiscard]] Bytes bytes() const {
    return storage_bytes(dtype, shape.num_elements(), shape.rank() == 0 ? 1 : shape.dim(-1));
  }
};

/// "f32[8,256,288]"
std::string to_string(const TensorType& type);

/// Elements between neighbours along each axis. Views of a storage differ in these and in their offset alone.
using Strides = std::array<int64_t, Shape::kMaxRank>;
Strides dense_strides(const Shape& shape);

}  // namespace plimsoll::ir
