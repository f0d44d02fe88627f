// Derivatives of expressions: a walk over the nodes backwards, which gives expressions again.
#include <array>
#include <cmath>
#include <numbers>

#include "ops/expression.h"

namespace plimsoll::ops {
namespace {

class Derivative {
 public:
  Derivative(const Expression& f, int input, int cotangent) : f_(f), input_(input) {
    adjoints_.fill(Expression::kNone);
    leads_.fill(false);
    std::array<int, Expression::kMaxInputs> operands{};
    for (int i = 0; i < f.num_inputs(); ++i)
      if (f.reads(i)) operands[static_cast<size_t>(i)] = d_.input(i);
    copy_nodes(operands);
    adjoints_[static_cast<size_t>(f.result())] = d_.input(cotangent);
  }

  std::optional<Expression> run() {
    for (int i = f_.result(); i >= 0; --i) {
      const int g = adjoints_[static_cast<size_t>(i)];
      if (g == Expression::kNone) continue;
      const Expression::Node& node = f_.nodes()[static_cast<size_t>(i)];
      if (node.function == Function::kInput && node.args[0] == input_) {
        d_.finish(g);
        return d_;
      }
      if (leads_[static_cast<size_t>(i)]) visit(node, i, g);
    }
    if (!d_.is_full()) return std::nullopt;
    d_.finish(Expression::kNone);
    return d_;
  }

 private:
  using enum Function;

  /// f's nodes in the derivative, and which of them depend on the input by a slope.
  void copy_nodes(std::span<const int> operands) {
    for (size_t i = 0; i < f_.nodes().size(); ++i) {
      const Expression::Node& node = f_.nodes()[i];
      if (node.function == kInput) {
        here_[i] = operands[static_cast<size_t>(node.args[0])];
        leads_[i] = node.args[0] == input_;
        continue;
      }
      here_[i] = node.function == kNumber ? d_.number(node.number)
                                          : d_.apply(node.function, arg(node, 0), arg(node, 1), arg(node, 2));
      const bool has_slope = node.function != kSign && (node.function < kLt || node.function > kNe);
      for (size_t k = node.function == kWhere ? 1 : 0; has_slope && k < arity(node); ++k)
        leads_[i] = leads_[i] || leads_[static_cast<size_t>(node.args[k])];
    }
  }

  static size_t arity(const Expression::Node& node) { return static_cast<size_t>(info(node.function).arity); }
  [[nodiscard]] int arg(const Expression::Node& node, size_t k) const {
    return node.args[k] == Expression::kNone ? Expression::kNone : here_[static_cast<size_t>(node.args[k])];
  }
  int number(double value) { return d_.number(value); }
  int mul(int a, int b) { return d_.apply(kMul, a, b); }
  int div(int a, int b) { return d_.apply(kDiv, a, b); }
  int sub(int a, int b) { return d_.apply(kSub, a, b); }
  int neg(int a) { return d_.apply(kNeg, a); }
  int where(int condition, int a, int b) { return d_.apply(kWhere, condition, a, b); }
  int compare(Function how, int a, int b) { return d_.apply(how, a, b); }

  /// Adds `value` to the cotangent of the node's operand k, where that leads to the input.
  void give(const Expression::Node& node, size_t k, int value) {
    int& sum = adjoints_[static_cast<size_t>(node.args[k])];
    sum = sum == Expression::kNone ? value : d_.apply(kAdd, sum, value);
  }
  [[nodiscard]] bool wants(const Expression::Node& node, size_t k) const {
    return leads_[static_cast<size_t>(node.args[k])];
  }

  void visit(const Expression::Node& node, int place, int g) {
    const int y = here_[static_cast<size_t>(place)];
    if (arity(node) == 1) return give(node, 0, slope_of_one(node.function, arg(node, 0), y, g));
    for (size_t k = 0; k < arity(node); ++k) {
      if (!wants(node, k)) continue;
      if (node.function == kWhere) {
        if (k > 0) give(node, k, where_part(node, k, g));
      } else if (node.function == kClamp) {
        give(node, k, clamp_part(node, k, g));
      } else {
        give(node, k, slope_of_two(node.function, k, arg(node, 0), arg(node, 1), y, g));
      }
    }
  }

  int slope_of_one(Function function, int x, int y, int g) {
    switch (function) {
      case kNeg:
        return neg(g);
      case kAbs:
        return mul(g, d_.apply(kSign, x));
      case kSqrt:
        return div(mul(number(0.5), g), y);
      case kRsqrt:
        return mul(mul(number(-0.5), g), mul(mul(y, y), y));
      case kExp:
        return mul(g, y);
      case kLog:
        return div(g, x);
      case kTanh:
        return mul(g, sub(number(1), mul(y, y)));
      case kSigmoid:
        return mul(mul(g, y), sub(number(1), y));
      case kSoftplus:
        return mul(g, d_.apply(kSigmoid, x));
      case kErf:
        return mul(mul(g, number(2 / std::sqrt(std::numbers::pi))), d_.apply(kExp, neg(mul(x, x))));
      default:  // relu
        return where(compare(kGt, x, number(0)), g, number(0));
    }
  }

  int slope_of_two(Function function, size_t k, int a, int b, int y, int g) {
    switch (function) {
      case kAdd:
        return g;
      case kSub:
        return k == 0 ? g : neg(g);
      case kMul:
        return mul(g, k == 0 ? b : a);
      case kDiv:
        return k == 0 ? div(g, b) : neg(mul(g, div(y, b)));
      case kPow:
        return k == 0 ? power_of(a, b, g) : exponent_of(a, b, y, g);
      default: {  // max, min
        const Function wins = (function == kMax) == (k == 0) ? kGt : kLt;
        const int half = where(compare(kEq, a, b), mul(number(0.5), g), number(0));
        return where(compare(wins, a, b), g, half);
      }
    }
  }

  /// b a^(b-1); 0 where b is 0.
  int power_of(int a, int b, int g) {
    const int slope = mul(g, mul(b, d_.apply(kPow, a, sub(b, number(1)))));
    const bool is_constant = d_.nodes()[static_cast<size_t>(b)].function == kNumber;
    return is_constant ? slope : where(compare(kEq, b, number(0)), number(0), slope);
  }
  /// a^b log(a); 0 at a = 0, where that is a limit.
  int exponent_of(int a, int b, int y, int g) {
    const int at_zero = mul(compare(kEq, a, number(0)), compare(kGe, b, number(0)));
    return where(at_zero, number(0), mul(g, mul(y, d_.apply(kLog, a))));
  }

  int where_part(const Expression::Node& node, size_t k, int g) {
    const int condition = arg(node, 0);
    return k == 1 ? where(condition, g, number(0)) : where(condition, number(0), g);
  }
  int clamp_part(const Expression::Node& node, size_t k, int g) {
    const int x = arg(node, 0), low = arg(node, 1), high = arg(node, 2);
    const int passes = k == 0   ? mul(compare(kGt, x, low), compare(kLt, x, high))
                       : k == 1 ? compare(kLe, x, low)
                                : compare(kGe, x, high);
    return where(passes, g, number(0));
  }

  const Expression& f_;
  int input_;
  Expression d_;
  std::array<int, Expression::kMaxNodes> here_{};      ///< f's nodes in d_
  std::array<int, Expression::kMaxNodes> adjoints_{};  ///< nodes of d_, by f's nodes
  std::array<bool, Expression::kMaxNodes> leads_{};    ///< by f's nodes: to the input, by slopes
};

}  // namespace

std::optional<Expression> derivative(const Expression& f, int input, int cotangent) {
  return Derivative(f, input, cotangent).run();
}

}  // namespace plimsoll::ops
