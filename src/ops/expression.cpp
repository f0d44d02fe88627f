// Nodes of expressions: what is there already is found again, constants are folded.
#include "ops/expression.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace plimsoll::ops {
namespace {

constexpr size_t kNumFunctions = static_cast<size_t>(Function::kClamp) + 1;

/// By Function.
constexpr std::array<FunctionInfo, kNumFunctions> kFunctions = {{
    {"x", 0, 0},          {"", 0, 0},      {"neg", 1, 1},         {"abs", 1, 1},
    {"sign", 1, 2},       {"sqrt", 1, 2},  {"rsqrt", 1, 3, true}, {"exp", 1, 8, true},
    {"log", 1, 10, true}, {"tanh", 1, 10}, {"sigmoid", 1, 8},     {"softplus", 1, 16, true},
    {"erf", 1, 12},       {"relu", 1, 1},  {"add", 2, 1},         {"sub", 2, 1},
    {"mul", 2, 1},        {"div", 2, 1},   {"pow", 2, 20, true},  {"max", 2, 1},
    {"min", 2, 1},        {"lt", 2, 1},    {"le", 2, 1},          {"gt", 2, 1},
    {"ge", 2, 1},         {"eq", 2, 1},    {"ne", 2, 1},          {"where", 3, 1},
    {"clamp", 3, 2},
}};

double larger(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double smaller(double a, double b) { return a < b || std::isnan(a) ? a : b; }

double value_of_one(Function function, double a) {
  using enum Function;
  switch (function) {
    case kNeg:
      return -a;
    case kAbs:
      return std::abs(a);
    case kSign:
      return static_cast<double>((a > 0) - (a < 0));
    case kSqrt:
      return std::sqrt(a);
    case kRsqrt:
      return 1 / std::sqrt(a);
    case kExp:
      return std::exp(a);
    case kLog:
      return std::log(a);
    case kTanh:
      return std::tanh(a);
    case kSigmoid:
      return a < 0 ? std::exp(a) / (1 + std::exp(a)) : 1 / (1 + std::exp(-a));
    case kSoftplus:
      return larger(a, 0) + std::log1p(std::exp(-std::abs(a)));
    case kErf:
      return std::erf(a);
    case kRelu:
      return a <= 0 ? 0 : a;
    default:
      return a;
  }
}

double value_of_two(Function function, double a, double b) {
  using enum Function;
  switch (function) {
    case kAdd:
      return a + b;
    case kSub:
      return a - b;
    case kMul:
      return a * b;
    case kDiv:
      return a / b;
    case kPow:
      return std::pow(a, b);
    case kMax:
      return larger(a, b);
    case kMin:
      return smaller(a, b);
    case kLt:
      return static_cast<double>(a < b);
    case kLe:
      return static_cast<double>(a <= b);
    case kGt:
      return static_cast<double>(a > b);
    case kGe:
      return static_cast<double>(a >= b);
    case kEq:
      return static_cast<double>(a == b);
    default:
      return static_cast<double>(a != b);
  }
}

bool same(const Expression::Node& a, const Expression::Node& b) {
  return a.function == b.function && a.args == b.args &&
         ((a.number == b.number && std::signbit(a.number) == std::signbit(b.number)) ||
          (std::isnan(a.number) && std::isnan(b.number)));
}

}  // namespace

const FunctionInfo& info(Function function) { return kFunctions[static_cast<size_t>(function)]; }

int function_arity(std::string_view name) {
  for (const FunctionInfo& f : kFunctions)
    if (f.arity > 0 && f.name == name) return f.arity;
  return 0;
}

double value_of(Function function, double a, double b, double c) {
  if (function == Function::kWhere) return a != 0 ? b : c;
  if (function == Function::kClamp) return a < b ? b : a > c ? c : a;
  return info(function).arity == 2 ? value_of_two(function, a, b) : value_of_one(function, a);
}

int Expression::add(const Node& node) {
  for (int i = 0; i < size_; ++i)
    if (same(at(i), node)) return i;
  if (size_ == kMaxNodes) {
    is_full_ = true;
    return kNone;
  }
  nodes_[static_cast<size_t>(size_)] = node;
  return size_++;
}

int Expression::input(int number) {
  Node node;
  node.args[0] = static_cast<int16_t>(number);
  return add(node);
}

int Expression::number(double value) {
  Node node;
  node.function = Function::kNumber;
  node.number = value;
  return add(node);
}

bool Expression::is_number(int node, double value) const {
  return node != kNone && at(node).function == Function::kNumber && at(node).number == value;
}

/// x to a constant: products and roots where those are exact, as PyTorch has them.
int Expression::power(int base, double exponent) {
  using enum Function;
  if (exponent == 0) return number(1);
  if (exponent == 1) return base;
  if (exponent == 2) return apply(kMul, base, base);
  if (exponent == 3) return apply(kMul, apply(kMul, base, base), base);
  if (exponent == 0.5) return apply(kSqrt, base);
  if (exponent == -0.5) return apply(kRsqrt, base);
  if (exponent == -1) return apply(kDiv, number(1), base);
  if (exponent == -2) return apply(kDiv, number(1), apply(kMul, base, base));
  return kNone;
}

/// The node that has the same value without the function; kNone where there is none.
int Expression::simplified(Function function, int a, int b) {
  using enum Function;
  switch (function) {
    case kNeg:
      return at(a).function == kNeg ? at(a).args[0] : kNone;
    case kSub:
      return is_number(b, 0) ? a : kNone;
    case kMul:
      return is_number(a, 1) ? b : is_number(b, 1) ? a : kNone;
    case kDiv:
      return is_number(b, 1) ? a : kNone;
    case kPow:
      return at(b).function == kNumber ? power(a, at(b).number) : kNone;
    default:
      return kNone;
  }
}

int Expression::apply(Function function, int a, int b, int c) {
  const std::array<int, 3> args = {a, b, c};
  const auto arity = static_cast<size_t>(info(function).arity);
  is_stored_f32_ = is_stored_f32_ || info(function).is_stored_f32;
  if (arity == 0) return a;
  bool constant = true;
  std::array<double, 3> values{};
  for (size_t i = 0; i < arity; ++i) {
    if (args[i] == kNone) return kNone;  // there was no room for it
    constant = constant && at(args[i]).function == Function::kNumber;
    values[i] = at(args[i]).number;
  }
  if (constant) return number(value_of(function, values[0], values[1], values[2]));
  if (const int simple = simplified(function, a, b); simple != kNone) return simple;
  Node node;
  node.function = function;
  for (size_t i = 0; i < arity; ++i) node.args[i] = static_cast<int16_t>(args[i]);
  return add(node);
}

void Expression::finish(int result) {
  std::array<bool, kMaxNodes> needed{};
  if (result != kNone) needed[static_cast<size_t>(result)] = true;
  for (int i = size_ - 1; i >= 0; --i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    for (int arg = 0; arg < info(at(i).function).arity; ++arg)
      needed[static_cast<size_t>(at(i).args[static_cast<size_t>(arg)])] = true;
  }
  std::array<int16_t, kMaxNodes> moved{};
  int kept = 0;
  for (int i = 0; i <= result; ++i) {
    if (!needed[static_cast<size_t>(i)]) continue;
    Node node = at(i);
    for (int arg = 0; arg < info(node.function).arity; ++arg) {
      int16_t& n = node.args[static_cast<size_t>(arg)];
      n = moved[static_cast<size_t>(n)];
    }
    moved[static_cast<size_t>(i)] = static_cast<int16_t>(kept);
    nodes_[static_cast<size_t>(kept++)] = node;
  }
  size_ = is_full_ ? 0 : kept;
}

int Expression::num_inputs() const {
  int count = 0;
  for (const Node& node : nodes())
    if (node.function == Function::kInput) count = std::max(count, node.args[0] + 1);
  return count;
}

bool Expression::reads(int input) const {
  return std::ranges::any_of(
      nodes(), [&](const Node& n) { return n.function == Function::kInput && n.args[0] == input; });
}

int Expression::flops() const {
  int flops = 0;
  for (const Node& node : nodes()) flops += info(node.function).flops;
  return flops;
}

Expression Expression::renumbered(std::span<const int> numbers) const {
  Expression renumbered;
  std::array<int, kMaxInputs> operands{};
  for (int i = 0; i < num_inputs(); ++i)
    if (reads(i)) operands[static_cast<size_t>(i)] = renumbered.input(numbers[static_cast<size_t>(i)]);
  renumbered.finish(append_to(renumbered, operands));
  renumbered.is_stored_f32_ = is_stored_f32_;
  return renumbered;
}

int Expression::append_to(Expression& into, std::span<const int> operands) const {
  std::array<int, kMaxNodes> there{};
  int last = kNone;
  for (int i = 0; i < size_; ++i) {
    const Node& node = at(i);
    const auto arg = [&](size_t k) {
      return node.args[k] == kNone ? kNone : there[static_cast<size_t>(node.args[k])];
    };
    last = node.function == Function::kInput    ? operands[static_cast<size_t>(node.args[0])]
           : node.function == Function::kNumber ? into.number(node.number)
                                                : into.apply(node.function, arg(0), arg(1), arg(2));
    there[static_cast<size_t>(i)] = last;
  }
  return last;
}

double Expression::evaluate(std::span<const double> inputs) const {
  PLIMSOLL_CHECK(is_complete());
  std::array<double, kMaxNodes> values;
  for (int i = 0; i < size_; ++i) {
    const Node& node = at(i);
    const auto arg = [&](size_t k) {
      return node.args[k] == kNone ? 0 : values[static_cast<size_t>(node.args[k])];
    };
    values[static_cast<size_t>(i)] =
        node.function == Function::kInput    ? inputs[static_cast<size_t>(node.args[0])]
        : node.function == Function::kNumber ? node.number
                                             : value_of(node.function, arg(0), arg(1), arg(2));
  }
  return values[static_cast<size_t>(result())];
}

}  // namespace plimsoll::ops
