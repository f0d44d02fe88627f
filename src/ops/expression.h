// Expressions of the op `pointwise`: a small text over the elements of its operands.
//
//   t0=sigmoid(x0);mul(x0,t0)         operands x0 ... x11, numbers (0.5, -1e-3, inf), named parts t0, t1, ...
//
// In memory an expression is a list of nodes, each after those that it reads and none twice. It holds no heap
// memory, so that kernels may parse one at each launch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::ops {

enum class Function : uint8_t {
  kInput,   ///< an operand; alone, a copy of it
  kNumber,  ///< a constant
  kNeg,
  kAbs,
  kSign,
  kSqrt,
  kRsqrt,
  kExp,
  kLog,
  kTanh,
  kSigmoid,
  kSoftplus,  ///< log(1 + exp(x))
  kErf,
  kRelu,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kMax,
  kMin,
  kLt,  ///< comparisons give 1 or 0
  kLe,
  kGt,
  kGe,
  kEq,
  kNe,
  kWhere,  ///< (condition, a, b): a where the condition is not 0
  kClamp   ///< (x, low, high)
};

struct FunctionInfo {
  std::string_view name;
  int arity = 0;
  int flops = 0;               ///< for the cost model, about as many as the vector functions take
  bool is_stored_f32 = false;  ///< one of those whose results PyTorch's autocast keeps in f32
};
const FunctionInfo& info(Function function);
/// Operands of the function of that name; 0 where there is none.
int function_arity(std::string_view name);
/// Its value in double.
double value_of(Function function, double a, double b = 0, double c = 0);

class Expression {
 public:
  static constexpr int kMaxNodes = 512;
  static constexpr int kMaxInputs = 12;
  /// In place of a node: there is none, or there was no room for it.
  static constexpr int kNone = -1;

  struct Node {
    Function function = Function::kInput;
    std::array<int16_t, 3> args = {kNone, kNone, kNone};  ///< nodes; of an input its number
    double number = 0;
  };

  /// The expression of a text, with constants folded and nothing that its result does not need.
  static Result<Expression> parse(std::string_view text);
  /// The same expression as a text: what is used twice has a name.
  [[nodiscard]] std::string text() const;

  // Nodes for an expression that code builds; the same one again where it is there already.
  int input(int number);
  int number(double value);
  int apply(Function function, int a, int b = kNone, int c = kNone);
  /// Ends building: the result, and what is not needed for it goes.
  void finish(int result);

  [[nodiscard]] std::span<const Node> nodes() const { return {nodes_.data(), static_cast<size_t>(size_)}; }
  /// The node of the result; the last one.
  [[nodiscard]] int result() const { return size_ - 1; }
  /// Nothing was left out for want of room.
  [[nodiscard]] bool is_complete() const { return size_ > 0; }
  /// Something was, before `finish`.
  [[nodiscard]] bool is_full() const { return is_full_; }
  /// One more than the largest number of an input.
  [[nodiscard]] int num_inputs() const;
  [[nodiscard]] bool reads(int input) const;
  [[nodiscard]] int flops() const;
  [[nodiscard]] bool is_stored_f32() const { return is_stored_f32_; }
  /// With operand i called `numbers[i]`.
  [[nodiscard]] Expression renumbered(std::span<const int> numbers) const;
  /// Its nodes appended to `into`, operand i being node `operands[i]` there; the node of the result.
  int append_to(Expression& into, std::span<const int> operands) const;

  /// In double, for one element of each operand.
  [[nodiscard]] double evaluate(std::span<const double> inputs) const;

 private:
  int add(const Node& node);
  [[nodiscard]] const Node& at(int node) const { return nodes_[static_cast<size_t>(node)]; }
  [[nodiscard]] bool is_number(int node, double value) const;
  int simplified(Function function, int a, int b);
  int power(int base, double exponent);

  std::array<Node, kMaxNodes> nodes_{};
  int size_ = 0;
  bool is_full_ = false;
  bool is_stored_f32_ = false;
};

/// cotangent * d f / d input, an expression over f's operands and its cotangent, operand `cotangent`. Nothing
/// where f does not depend on that operand, or by steps alone. Where several derivatives could be meant it is
/// PyTorch's: relu and abs have slope 0 at 0, max and min give half to each of equal operands, clamp has
/// slope 0 at its limits (PyTorch before 2.15: 1).
std::optional<Expression> derivative(const Expression& f, int input, int cotangent);

}  // namespace plimsoll::ops
