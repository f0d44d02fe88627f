// The definition of an op type in the graph. One OpDef stands in each ops/<op>.cpp; ops/op_list.cpp lists
// them all.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::ir {

class Builder;

/// Which precision an op runs in under autocast; as PyTorch's lists.
enum class AutocastClass : uint8_t {
  kLowPrecision,
  kF32,
  kAsInputs,
  kWidest,   ///< operands may differ, the result is as the widest
  kOneDtype  ///< operands are made one dtype: f32 where they differ
};
/// What recomputing an op in backward costs beside keeping its result.
enum class RecomputeClass : uint8_t {
  kNever,       ///< state, randomness without a key, side effects
  kNearlyFree,  ///< memory-bound and cheap: norms, activations, casts
  kCompute,     ///< GEMM, attention
};

/// Work of one execution. `bytes` are those that cross memory when nothing is cached.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

/// The types of an op's operands and its attributes: all that inference and cost may look at.
struct OpTypes {
  std::string_view op;
  std::vector<TensorType> inputs;   ///< an absent optional input has rank 0
  std::vector<TensorType> outputs;  ///< empty during inference
  const Attrs& attrs;

  [[nodiscard]] bool has(size_t input) const {
    return input < inputs.size() && inputs[input].shape.rank() > 0;
  }
};

/// What an op's time goes to.
enum class WorkKind : uint8_t {
  kUnstated,     ///< of no op of the list
  kNone,         ///< no kernel runs
  kCopy,         ///< elements move as they are
  kProduct,      ///< one matrix product
  kAttention,    ///< products and the softmax between them
  kLossHead,     ///< products and the softmax of the loss, chunk by chunk
  kElementwise,  ///< each element of a result is computed by itself
  kReduction,    ///< a result depends on many elements of an operand
  kUpdate,       ///< parameters and optimizer states take their next values
};

/// What measured rates are looked up by.
struct WorkSize {
  std::string_view key;  ///< one of Work::keys
  /// Products: [m, k] x [k, n] as m, n, k. Attention: heads of all sequences, tokens, head_dim. Loss head:
  /// tokens of a chunk, classes, hidden size.
  std::array<double, 3> extents = {1, 1, 1};
};

/// The messages of a collective, of the rank that sends or receives most.
struct Traffic {
  int64_t messages = 0, message_bytes = 0;
  [[nodiscard]] double bytes() const {
    return static_cast<double>(messages) * static_cast<double>(message_bytes);
  }
};

/// What an op's time is estimated from.
struct Work {
  WorkKind kind = WorkKind::kUnstated;
  bool is_multi_tensor = false;  ///< one launch over any number of tensors
  /// The keys of `size`: calibration files have these words.
  std::vector<std::string_view> keys = {};
  /// Null: the time goes by the op's bytes, and the key is its name.
  WorkSize (*size)(const OpTypes&, double flops) = nullptr;
};

/// Collects cotangents while autodiff walks backwards.
class VjpContext {
 public:
  virtual ~VjpContext() = default;
  virtual Builder& builder() = 0;
  [[nodiscard]] virtual const Op& op() const = 0;
  /// Cotangent of an output; invalid where nothing depends on it.
  [[nodiscard]] virtual ValueId cotangent(size_t output) const = 0;
  /// True where the gradient with respect to that input is wanted.
  [[nodiscard]] virtual bool wants(size_t input) const = 0;
  /// Adds a contribution to the cotangent of an input.
  virtual void add(size_t input, ValueId contribution) = 0;
};

/// A dense tensor of the reference interpreter; integers are held exactly.
struct RefTensor {
  TensorType type;
  std::vector<double> data;
};
struct RefContext {
  const Op& op;
  std::vector<const RefTensor*> inputs;  ///< null where absent
  std::vector<RefTensor*> outputs;       ///< typed and sized
};

/// Output `output` shares the storage of input `input`. Void where that optional input is absent.
struct Alias {
  int32_t output = 0;
  int32_t input = 0;
  bool operator==(const Alias&) const = default;
};

/// Where a view's elements lie in the storage of its operand.
struct ViewPlace {
  int64_t offset = 0;  ///< elements from the operand's first
  Strides strides = {};
};

/// How an op touches the session's states.
enum class StateAccess : uint8_t { kNone, kRead, kAssign };

/// Where the elements of an op's results come from.
enum class Elements : uint8_t {
  kComputed,
  kSame,   ///< they are operand 0's, in another shape, place or dtype
  kRows,   ///< they are whole rows of operand 0
  kJoined  ///< they are all operands', one after the other
};

/// Attribute `attr` says in which dtype output `output` is stored.
struct OutputDtype {
  int32_t output = 0;
  std::string_view attr = {};
  int32_t follows = -1;  ///< the operand whose dtype it has where the attribute is absent; -1: another rule
};

/// What a norm is to the passes. The fused op is <with_add>(a, b, the norm's other operands) -> a + b, the
/// norm's outputs.
struct NormForm {
  int32_t y = -1;                  ///< the output that is normalised; -1: the op is no norm
  int32_t sum = -1;                ///< the output that is normed, where the op adds first
  std::string_view with_add = {};  ///< the op that does; empty: there is none
};

/// The op that adds another value to output 0 while it is written; that value is its operand `operand`, the
/// others are as they were.
struct AddedForm {
  std::string_view op = {};  ///< empty: there is none
  int32_t operand = 0;
};

struct AttrSpec {
  std::string_view name;
  enum class Kind : uint8_t { kBool, kInt, kFloat, kString, kInts } kind = Kind::kInt;
  bool required = true;
};

/// `min_inputs`..`max_inputs`: trailing inputs are optional; -1 is "any number".
struct OpDef {
  std::string_view name;
  std::string_view summary;
  Work work = {};
  int min_inputs = 0;
  int max_inputs = 0;
  std::vector<AttrSpec> attrs = {};

  /// Result types, or why the operands do not fit ("linear: inner dimensions differ: …").
  Result<std::vector<TensorType>> (*infer)(const OpTypes&) = nullptr;
  /// Vector-Jacobian product; null for what has no derivative.
  void (*vjp)(VjpContext&) = nullptr;
  Cost (*cost)(const OpTypes&) = nullptr;  ///< null: no arithmetic, every operand crosses memory once
  Traffic (*traffic)(const OpTypes&) =
      nullptr;  ///< of an op that exchanges bytes with other ranks; else null
  /// Slow, obvious, in double precision: the definition that kernels and passes are held against.
  void (*reference)(RefContext&) = nullptr;

  /// How recompute gives output `output` again from what is kept, where cloning the op is not the way
  /// (the normalised output of add_rms_norm comes from the kept sum). Null: clone the op.
  ValueId (*rebuild)(Builder&, const Op&, size_t output) = nullptr;

  AutocastClass autocast = AutocastClass::kAsInputs;
  RecomputeClass recompute = RecomputeClass::kCompute;
  std::vector<Alias> consumes = {};  ///< the output is written into the input's storage, always
  std::vector<Alias> (*consumes_variadic)(const Op&) =
      nullptr;  ///< the same for ops of any number of operands
  /// A reduction that goes on from what the input holds, and consumes it; where that is absent, from its
  /// first term.
  std::vector<Alias> accumulators = {};
  std::vector<Alias> in_place = {};  ///< the output may take the input's storage if that dies here

  // What passes and reports ask of an op, so that none of them keeps a table of names.
  Elements elements = Elements::kComputed;
  std::vector<OutputDtype> output_dtypes = {};
  /// Attribute `precision` says what the first so many operands are rounded to before they are multiplied.
  int rounded_operands = 0;
  NormForm norm = {};
  AddedForm with_add = {};
  std::string_view multi_tensor = {};  ///< the op that does the same to many tensors at once
  int32_t random = -1;  ///< the operand by which, with attribute `key`, draws are keyed; -1: none
  /// The operand whose columns are rows of the result: rows of the result are the op's on columns of that
  /// operand. -1: there is none. Null: never.
  int (*columns_to_rows)(const Attrs&) = nullptr;
  /// Of a view: where result `output` lies, of an operand with those strides; nothing where only a copy of
  /// the operand can be viewed so.
  std::optional<ViewPlace> (*view)(const OpTypes&, const Strides&, size_t output) = nullptr;
  StateAccess state = StateAccess::kNone;
  bool is_cast = false;          ///< result 0 is operand 0 in another dtype
  bool takes_any_view = false;   ///< its kernels read operands of any strides
  bool ends_copy = false;        ///< operand 0 is a copy under way, operand 1 its source; a view
  bool is_view = false;          ///< outputs are views of input 0; no kernel runs
  bool is_copy = false;          ///< a copy queue moves input 0 into output 0's space; no kernel runs
  bool has_effect = false;       ///< never removed, never merged
  bool is_loss = false;          ///< output 0 knows its cotangent
  bool begins_residual = false;  ///< its result is the first of a residual stream
  bool reads_gradients = false;  ///< its operands are the gradients of a step
};

/// Operand types of an op of a graph, as its OpDef's functions take them.
OpTypes op_types(const Graph& graph, const Op& op);
/// `consumes` and `accumulators` of an op, absent inputs left out.
std::vector<Alias> op_consumes(const Op& op);
/// The operand through which `op` continues output `output`, or -1.
int accumulator_operand(const Op& op, size_t output);
/// The attribute that says in which dtype output `output` is stored; null where there is none.
const OutputDtype* output_dtype(const OpDef& def, size_t output);
/// `def->cost`, or the default for it.
Cost op_cost(const Graph& graph, const Op& op);

/// All ops by name; the parser and the builder look up through it. Null when unknown.
using OpLookup = const OpDef* (*)(std::string_view name);

}  // namespace plimsoll::ir
