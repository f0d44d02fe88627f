// What a device must offer so that everything above runs on it: memory, queues, events, copies, kernels, and
// the capture of a launch sequence. The CPU implements it with threads; CUDA maps each call onto its own of
// that name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::runtime {

/// A tensor at its place: a dense value or a strided view of a storage.
struct TensorRef {
  std::byte* data = nullptr;  ///< null where an optional operand is absent
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

/// One kernel with its operands bound. The referenced arrays outlive every launch.
struct KernelCall {
  const ir::Op* op = nullptr;
  std::span<const TensorRef> inputs;
  std::span<const TensorRef> outputs;
  std::span<std::byte> workspace;  ///< at least workspace_bytes(), aligned to kAlignment
};

/// Alignment of every storage and workspace: a cache line, and AVX-512's vector.
inline constexpr int64_t kAlignment = 64;

/// An allocation of the backend, freed with the object.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::span<std::byte> bytes() const = 0;
  /// How much of it is resident now (on a GPU: all).
  [[nodiscard]] virtual Bytes resident_bytes() const = 0;
};

struct EventId {
  int32_t index = -1;
};

/// A recorded sequence of launches and copies, replayed as one.
class CapturedGraph {
 public:
  virtual ~CapturedGraph() = default;
};

/// Async: launch, copy, record and wait return before the work is done on a device with queues; work of one
/// queue runs in the order of issue; synchronize waits. On the CPU every call has finished when it returns.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // Planning: pure functions of their arguments and of the settings that the backend was made with.
  /// Scratch that the op's kernel is given.
  [[nodiscard]] virtual int64_t workspace_bytes(const ir::OpTypes& types) const = 0;
  /// Whether the kernel reads that input through strides; otherwise a view is copied before.
  [[nodiscard]] virtual bool accepts_strided(std::string_view op, size_t input) const = 0;
  /// Whether there is a kernel.
  [[nodiscard]] virtual bool supports(std::string_view op) const = 0;

  // Running.
  /// Reserves memory and touches all of it. Errors: kIo with the size and what to lower.
  virtual Result<std::unique_ptr<Memory>> allocate(ir::MemorySpace space, Bytes bytes) = 0;
  virtual void launch(const KernelCall& call, ir::Queue queue) = 0;
  virtual void copy(std::byte* destination, const std::byte* source, Bytes bytes, ir::Queue queue) = 0;
  virtual EventId record(ir::Queue queue) = 0;
  virtual void wait(ir::Queue queue, EventId event) = 0;
  virtual void synchronize(ir::Queue queue) = 0;
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedGraph> end_capture() = 0;
  virtual void replay(const CapturedGraph& graph) = 0;
};

}  // namespace plimsoll::runtime
