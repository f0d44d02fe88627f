// The oracle: runs a graph op by op with each op's own `reference`, in program order, one tensor a value.
// Slow and obvious; kernels, passes and the planned executor are compared with it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::reference {

/// What is kept of a result between two ops. Arithmetic within an op is in double either way, on operands of
/// products rounded to the op's precision and on short sums as they are stored.
enum class Precision {
  kF64,     ///< all of it
  kStored,  ///< results are rounded to their dtype
};

/// Holds the states of a session by name and runs programs over them.
class Interpreter {
 public:
  explicit Interpreter(Precision precision = Precision::kF64) : precision_(precision) {}

  /// Gives a state its value.
  void set(std::string_view state, ir::RefTensor value);
  /// A state's value; null where it has none yet.
  [[nodiscard]] const ir::RefTensor* find(std::string_view state) const;

  /// Walks the order. State reads take the value at that point of the program, `state_assign` replaces it.
  /// Errors: kInvalidArgument for a state that is read before it has a value, or has one of another type.
  Status run(const ir::Graph& graph);

  /// Values of the last run, by ValueId::index; empty data where the program did not make it.
  [[nodiscard]] const ir::RefTensor& value(ir::ValueId v) const {
    return values_[static_cast<size_t>(v.index)];
  }

 private:
  Status run_op(const ir::Graph& graph, const ir::Op& op);
  Status assign(const ir::Graph& graph, const ir::Op& op);
  void round(ir::RefTensor& tensor) const;

  Precision precision_;
  std::map<std::string, ir::RefTensor, std::less<>> states_;
  std::vector<ir::RefTensor> values_;
};

/// A tensor of that type and those values (a count other than the type's is a bug).
ir::RefTensor tensor(ir::TensorType type, std::vector<double> data);
/// A tensor of one repeated value.
ir::RefTensor constant(ir::TensorType type, double value);

}  // namespace plimsoll::reference
