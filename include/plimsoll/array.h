// Arrays that go into a session: pointers to memory of the caller's (Array), or arrays that own theirs
// (Tensor); several of them by name are a Batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/config.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

enum class DType { f32, bf16, f16, i32, i64 };
inline constexpr DType f32 = DType::f32;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType fp16 = DType::f16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;

/// Extents, outermost first; empty for one number.
using Shape = std::vector<int64_t>;

/// Elements of the caller's, row after row. Not owned: they are read within the call that takes them.
struct Array {
  const void* data = nullptr;
  DType dtype = f32;
  Shape shape = {};
  std::optional<size_t> bytes = {};  ///< how many lie there, where that is known
};

inline Array array(const float* data, Shape shape) { return {data, f32, std::move(shape), {}}; }
inline Array array(const int32_t* data, Shape shape) { return {data, i32, std::move(shape), {}}; }
inline Array array(const int64_t* data, Shape shape) { return {data, i64, std::move(shape), {}}; }

namespace detail {

inline const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::i32:
      return "int32";
    case DType::i64:
      break;
  }
  return "int64";
}

inline int64_t dtype_bytes(DType dtype) {
  return dtype == DType::i64 ? 8 : dtype == DType::f32 || dtype == DType::i32 ? 4 : 2;
}

inline int64_t elements_of(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};

}  // namespace detail

/// An array with its own elements.
class Tensor {
 public:
  Tensor() = default;
  /// `values` row after row. Their number is compared with the shape where a session takes the tensor.
  template <class T>
  Tensor(const std::vector<T>& values, Shape shape)
      : dtype_(detail::DTypeOf<T>::value), shape_(std::move(shape)), bytes_(values.size() * sizeof(T)) {
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  Tensor(DType dtype, Shape shape, std::vector<std::byte> bytes)
      : dtype_(dtype), shape_(std::move(shape)), bytes_(std::move(bytes)) {}
  /// One axis.
  template <class T>
  explicit Tensor(const std::vector<T>& values) : Tensor(values, {static_cast<int64_t>(values.size())}) {}
  /// One number.
  Tensor(float value) : Tensor(std::vector<float>{value}, {}) {}      // implicit by design
  Tensor(int32_t value) : Tensor(std::vector<int32_t>{value}, {}) {}  // implicit by design

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }
  [[nodiscard]] Array view() const { return {bytes_.data(), dtype_, shape_, bytes_.size()}; }

 private:
  DType dtype_ = f32;
  Shape shape_;
  std::vector<std::byte> bytes_;
};

/// Arrays by name.
class Batch {
 public:
  using Entry = std::pair<std::string, Array>;
  Batch() = default;
  Batch(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(std::string name, Array array) { entries_.emplace_back(std::move(name), std::move(array)); }
  /// Keeps the tensor for as long as the batch or a copy of it lives.
  void add(std::string name, std::shared_ptr<const Tensor> tensor) {
    entries_.emplace_back(std::move(name), tensor->view());
    owned_.push_back(std::move(tensor));
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Null where no array has that name.
  [[nodiscard]] const Array* find(std::string_view name) const {
    for (const Entry& entry : entries_)
      if (entry.first == name) return &entry.second;
    return nullptr;
  }

 private:
  std::vector<Entry> entries_;
  std::vector<std::shared_ptr<const Tensor>> owned_;
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
