// Operands as kernels take them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/graph.h"

namespace plimsoll::runtime {

/// A tensor at its place: a dense value or a strided view of a storage.
struct TensorRef {
  /// The device's address; null where an optional operand is absent. Only the device's kernels follow it.
  std::byte* data = nullptr;
  ir::TensorType type;
  ir::Strides strides{};  ///< in elements

  [[nodiscard]] explicit operator bool() const { return data != nullptr; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data);
  }
  [[nodiscard]] const ir::Shape& shape() const { return type.shape; }
  [[nodiscard]] int64_t num_elements() const { return type.shape.num_elements(); }
  [[nodiscard]] bool is_dense() const { return strides == ir::dense_strides(type.shape); }
};

/// One kernel with its operands bound. The referenced arrays outlive every launch and every replay.
struct KernelCall {
  const ir::Op* op = nullptr;
  std::span<const TensorRef> inputs;
  std::span<const TensorRef> outputs;
  std::span<std::byte> workspace;  ///< at least Target::workspace_bytes(), aligned to kAlignment
};

/// Alignment of every storage and workspace: a cache line, and AVX-512's vector.
inline constexpr int64_t kAlignment = 64;

}  // namespace plimsoll::runtime
