// A program: values in single assignment, ops in execution order, and the session's state that it names.
//
//   state "model.norm.weight" : f32[288] parameter          declared once a session, shared by its programs
//   %4 = state {name="model.norm.weight"} : f32[288]         read
//   %9, %10 = rms_norm(%8, %4) {eps=1e-05} : f32[8,256,288], f32[8,256] @layers.0
//   state_assign(%31) {name="model.norm.weight"}             the only way in which state changes
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/lists.h"
#include "ir/attrs.h"
#include "ir/shape.h"

namespace plimsoll::ir {

struct OpDef;

struct ValueId {
  int32_t index = -1;
  [[nodiscard]] bool valid() const { return index >= 0; }
  auto operator<=>(const ValueId&) const = default;
};
struct OpId {
  int32_t index = -1;
  [[nodiscard]] bool valid() const { return index >= 0; }
  auto operator<=>(const OpId&) const = default;
};

/// Where a storage lives. Each is a pool of a plan, with a peak of its own.
enum class MemorySpace : uint8_t {
  kDevice,
  kHostPinned,    ///< which copy queues reach without a detour
  kHostPageable,  ///< the process's ordinary memory
  kDisk           ///< a file without a name
};
inline constexpr size_t kNumSpaces = 4;
/// "device", "host_pinned", "host_pageable", "disk".
std::string_view name(MemorySpace space);
/// Nothing where no space has that name.
std::optional<MemorySpace> parse_space(std::string_view text);

/// Work within a queue runs in order; queues run beside each other, ordered by events alone.
enum class Queue : uint8_t {
  kCompute,
  kCopyIn,
  kCopyOut,
  kHost  ///< kernels that the host runs on its own memory, beside a device that has another
};
inline constexpr size_t kNumQueues = 4;
/// "compute", "copy_in", "copy_out", "host".
std::string_view name(Queue queue);
/// Where the kernels of a queue have their results and their scratch.
constexpr MemorySpace kernel_space(Queue queue) {
  return queue == Queue::kHost ? MemorySpace::kHostPinned : MemorySpace::kDevice;
}

/// Op::block outside the model's blocks, and of the optimizer's ops.
inline constexpr int32_t kNoBlock = -1, kUpdateBlock = -2;

/// What a persistent storage is for; the classes of the memory report.
enum class StateClass : uint8_t {
  kParameter,
  kGradient,
  kOptimizerState,
  kScaler,  ///< the loss scale and its counts
  kScalars,
  kInput,
  kOutput,
  kConstant,
  kCache,         ///< keys and values of generation
  kMasterWeight,  ///< f32, where parameters are kept in a lower precision
  kBuffer         ///< running statistics: forward writes them, no optimizer does
};
std::string_view name(StateClass c);
/// Whether a step changes states of that class for the next one, so that a checkpoint holds them.
bool is_saved(StateClass c);

/// A persistent storage of the session, by name.
struct StateDecl {
  std::string name;
  TensorType type;
  StateClass state_class = StateClass::kParameter;
  MemorySpace space = MemorySpace::kDevice;
  bool operator==(const StateDecl&) const = default;
};

struct Value {
  TensorType type;
  OpId producer;
  int32_t result_index = 0;
  /// Where it lies: as the state that is read, as what a view shows, where a copy goes; a kernel's results
  /// lie on the device, or in kHostPinned where it runs on kHost.
  MemorySpace space = MemorySpace::kDevice;
};

struct Op {
  const OpDef* def = nullptr;
  std::vector<ValueId> inputs = {};  ///< an absent optional input is an invalid id
  std::vector<ValueId> outputs = {};
  Attrs attrs = {};
  std::string layer = {};  ///< dotted name, "layers.3.mlp"; where errors, reports and profiles point
  Queue queue = Queue::kCompute;
  bool recomputed = false;   ///< a clone made by recompute; opaque to common-subexpression elimination
  int32_t block = kNoBlock;  ///< which of the model's repeated blocks it belongs to, forward and backward
};

/// Holds ids into arenas. Ops that a pass removes stay allocated but leave the order.
class Graph {
 public:
  std::string name = "main";

  /// Appends an op to the order and makes its results. The builder infers `types`; use that.
  OpId append(Op op, const std::vector<TensorType>& types);
  /// The same at `position` of the order.
  OpId insert(size_t position, Op op, const std::vector<TensorType>& types);

  [[nodiscard]] const Op& op(OpId id) const { return ops_[static_cast<size_t>(id.index)]; }
  [[nodiscard]] Op& op(OpId id) { return ops_[static_cast<size_t>(id.index)]; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.index)]; }
  [[nodiscard]] Value& value(ValueId id) { return values_[static_cast<size_t>(id.index)]; }
  [[nodiscard]] const TensorType& type(ValueId id) const { return value(id).type; }
  [[nodiscard]] size_t num_values() const { return values_.size(); }
  [[nodiscard]] size_t num_ops() const { return ops_.size(); }

  /// Ids in execution order.
  [[nodiscard]] const std::vector<OpId>& order() const { return order_; }
  /// Replaces the order (a permutation of a subset of the ops); the verifier checks that it is legal.
  void set_order(std::vector<OpId> order) { order_ = std::move(order); }
  /// Where the results of such an op lie.
  [[nodiscard]] MemorySpace result_space(const Op& op) const;
  /// Makes every use of `from` a use of `to`.
  void replace_uses(ValueId from, ValueId to);
  /// Takes the ops for which `dead` holds out of the order.
  void remove_ops(const std::function<bool(OpId)>& dead);
  /// The ops that use each value, in order; by ValueId::index.
  [[nodiscard]] Lists<OpId> uses() const;

  /// Declares a state; the same name again must carry the same declaration. Returns its index.
  size_t declare_state(const StateDecl& decl);
  [[nodiscard]] const std::vector<StateDecl>& states() const { return states_; }
  [[nodiscard]] const StateDecl* find_state(std::string_view name) const;

 private:
  std::vector<Value> values_;
  std::vector<Op> ops_;
  std::vector<OpId> order_;
  std::vector<StateDecl> states_;
  std::map<std::string, size_t, std::less<>> state_index_;  ///< by name, into states_
};

}  // namespace plimsoll::ir
