// The ops that front ends append to a trace. They have torch's names, and each appends ops of the graph
// (ops/). One list declares operands and attributes; the checks and pls_ops read it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "library/attributes.h"
#include "library/trace.h"

namespace plimsoll::library {

/// One op being appended.
struct OpCall {
  Trace& trace;
  ir::Builder& b;
  std::span<const ir::ValueId> inputs;
  Attributes& attrs;

  [[nodiscard]] const ir::TensorType& type(ir::ValueId v) const { return b.type(v); }
  [[nodiscard]] const ir::TensorType& type(size_t input) const { return b.type(inputs[input]); }
  [[nodiscard]] bool has(size_t input) const { return input < inputs.size() && inputs[input].valid(); }
  /// Elementwise by an expression of ops/expression.h over the operands x0, x1, …
  [[nodiscard]] ir::ValueId pointwise(std::string expression, Values operands) const;
  /// What `make` appends, an elementwise op over the operands. Images go through it with their channels last.
  template <class Make>
  [[nodiscard]] ir::ValueId elementwise(const Values& operands, Make make) const {
    const std::optional<Values> images = as_images(operands);
    const ir::ValueId y = make(images ? *images : operands);
    return images ? channels_first(y) : y;
  }
  [[nodiscard]] ir::ValueId reshape(ir::ValueId x, std::vector<int64_t> shape) const;
  [[nodiscard]] ir::ValueId permute(ir::ValueId x, std::vector<int64_t> axes) const;
  /// Over `axes`; `kind` is sum, mean or max.
  [[nodiscard]] ir::ValueId reduce(std::string_view kind, ir::ValueId x, std::vector<int64_t> axes,
                                   bool keeps) const;
  /// The mean over all elements, [1].
  [[nodiscard]] ir::ValueId mean_of_all(ir::ValueId x) const;

  // Images (front_layout.cpp). Front ends see [N, C, H, W], as torch has it; ops of images want [N, H, W, C].
  // A trace knows both forms of a value, so that nothing is turned between two ops of images.

  /// x [N, C, H, W] as [N, H, W, C].
  [[nodiscard]] ir::ValueId channels_last(ir::ValueId x) const;
  /// y [N, H, W, C] as [N, C, H, W].
  [[nodiscard]] ir::ValueId channels_first(ir::ValueId y) const;
  /// Whether the trace knows x with its channels last.
  [[nodiscard]] bool is_image(ir::ValueId x) const;
  /// The operands of an elementwise op with their channels last; nothing where none is an image, or one
  /// broadcasts by other axes.
  [[nodiscard]] std::optional<Values> as_images(const Values& operands) const;
};

/// Counts a negative axis from the end. Errors: kInvalidArgument.
Result<int64_t> axis_of(const OpCall& call, std::string_view name, int64_t axis, int rank);
std::vector<int64_t> extents(const ir::Shape& shape);

/// The axes by which [N, C, H, W] becomes [N, H, W, C], and back.
inline const std::vector<int64_t> kToLast{0, 2, 3, 1}, kToFirst{0, 3, 1, 2};

struct FrontOp {
  std::string_view name;
  std::string_view summary;
  /// "x?" may be left out, "x..." stands for one or more.
  std::vector<std::string_view> operands = {};
  std::vector<AttributeSpec> attributes = {};
  /// Errors: kInvalidArgument; the builder's and the attributes' are looked at by whoever calls.
  Result<Values> (*build)(OpCall& call) = nullptr;
};

/// Null where there is none of that name.
const FrontOp* find_front_op(std::string_view name);
Error unknown_front_op(std::string_view name);
/// Errors: kInvalidArgument where operands are missing, or too many.
Status check_operands(const FrontOp& op, std::span<const ir::ValueId> inputs);
/// What pls_ops returns.
std::string front_ops_json();

/// relu(x) as a part of the batch norm that makes x, or of the one whose sum with a residual x is; invalid
/// where x is neither.
ir::ValueId norm_with_relu(const OpCall& call, ir::ValueId x);

// Each file front_<group>.cpp exports its ops.
using FrontGroup = std::span<const FrontOp>;
FrontGroup front_elementwise();
FrontGroup front_images();
FrontGroup front_layers();
FrontGroup front_losses();
FrontGroup front_norms();
FrontGroup front_reductions();
FrontGroup front_shapes();

}  // namespace plimsoll::library
