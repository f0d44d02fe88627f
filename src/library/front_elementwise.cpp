// Arithmetic element by element. What is one op of the graph, with kernels and fusions of its own, becomes
// that; all else is an expression.
#include <fmt/format.h>

#include <cmath>

#include "io/tree.h"
#include "library/front_ops.h"
#include "ops/elementwise.h"
#include "ops/structure.h"

namespace plimsoll::library {
namespace {

using ir::DType;
using ir::ValueId;

/// A number as expressions spell it.
std::string number(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return io::number_text(value);
}

bool is_float(const OpCall& call, size_t input) { return ir::is_floating(call.type(input).dtype); }

/// f(a, b), f(a, scalar) or f(scalar, a).
Result<Values> binary(OpCall& call, std::string_view function) {
  if (call.has(1) == call.attrs.has("scalar"))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: takes two operands, or one and attribute scalar", function)};
  const bool reversed = call.attrs.flag("reverse");
  if (!call.has(1)) {
    const std::string scalar = number(call.attrs.number("scalar"));
    const std::string text =
        reversed ? fmt::format("{}({},x0)", function, scalar) : fmt::format("{}(x0,{})", function, scalar);
    return Values{call.pointwise(text, {call.inputs[0]})};
  }
  return Values{call.pointwise(fmt::format("{}({})", function, reversed ? "x1,x0" : "x0,x1"),
                               {call.inputs[0], call.inputs[1]})};
}

Values both(const OpCall& call) { return {call.inputs[0], call.inputs[1]}; }

bool has_bias_shape(const OpCall& call) {
  const ir::Shape &x = call.type(size_t{0}).shape, &bias = call.type(1).shape;
  return x.rank() >= 2 && bias.rank() == 1 && bias.dim(0) == x.dim(-1) &&
         call.trace.find_parameter(call.inputs[1]) != nullptr;
}

Result<Values> build_add(OpCall& call) {
  if (!call.has(1) || !is_float(call, 0) || !is_float(call, 1)) return binary(call, "add");
  if (call.type(size_t{0}).shape == call.type(1).shape)
    return Values{
        call.elementwise(both(call), [&](const Values& v) { return ops::add(call.b, v[0], v[1]); })};
  if (has_bias_shape(call)) return Values{ops::bias_add(call.b, call.inputs[0], call.inputs[1])};
  return binary(call, "add");
}

Result<Values> build_mul(OpCall& call) {
  if (call.has(1) && is_float(call, 0) && is_float(call, 1) &&
      call.type(size_t{0}).shape == call.type(1).shape)
    return Values{
        call.elementwise(both(call), [&](const Values& v) { return ops::mul(call.b, v[0], v[1]); })};
  return binary(call, "mul");
}

Result<Values> build_silu(OpCall& call) {
  if (!is_float(call, 0)) return Values{call.pointwise("silu(x0)", {call.inputs[0]})};
  return Values{call.elementwise({call.inputs[0]}, [&](const Values& v) { return ops::silu(call.b, v[0]); })};
}

Result<Values> build_gelu(OpCall& call) {
  const std::string form = call.attrs.word("approximate", {"none", "tanh"});
  return Values{call.elementwise({call.inputs[0]}, [&](const Values& v) {
    return ops::gelu(call.b, v[0], form == "tanh" ? ops::Gelu::kTanh : ops::Gelu::kErf);
  })};
}

/// After a norm of images relu is a part of it (front_norms.cpp).
Result<Values> build_relu(OpCall& call) {
  if (const ValueId fused = norm_with_relu(call, call.inputs[0]); fused.valid()) return Values{fused};
  return Values{call.pointwise("relu(x0)", {call.inputs[0]})};
}

Result<Values> build_square(OpCall& call) { return Values{call.pointwise("mul(x0,x0)", {call.inputs[0]})}; }

Result<Values> build_where(OpCall& call) {
  return Values{call.pointwise("where(x0,x1,x2)", {call.inputs.begin(), call.inputs.end()})};
}

Result<Values> build_clamp(OpCall& call) {
  const auto bound = [&](std::string_view name, std::string_view none) {
    return call.attrs.has(name) ? number(call.attrs.number(name)) : std::string(none);
  };
  return Values{call.pointwise(fmt::format("clamp(x0,{},{})", bound("min", "-inf"), bound("max", "inf")),
                               {call.inputs[0]})};
}

Result<Values> build_expression(OpCall& call) {
  return Values{call.pointwise(call.attrs.text("expression"), {call.inputs.begin(), call.inputs.end()})};
}

Result<Values> build_cast(OpCall& call) {
  const std::string word = call.attrs.word("dtype", {"float32", "bfloat16", "float16"});
  const DType dtype = word == "float32" ? DType::kF32 : word == "float16" ? DType::kF16 : DType::kBf16;
  if (!is_float(call, 0)) {  // integers become f32 by an expression
    const ValueId wide = call.pointwise("add(x0,0)", {call.inputs[0]});
    return Values{ops::cast(call.b, wide, dtype)};
  }
  return Values{
      call.elementwise({call.inputs[0]}, [&](const Values& v) { return ops::cast(call.b, v[0], dtype); })};
}

template <size_t kLength>
struct Word {
  constexpr Word(const char (&text)[kLength]) {  // NOLINT: implicit by design
    for (size_t i = 0; i < kLength; ++i) letters[i] = text[i];
  }
  char letters[kLength] = {};
};

/// An op that is a function of expressions by itself.
template <Word kFunction>
Result<Values> build_binary(OpCall& call) {
  return binary(call, kFunction.letters);
}
template <Word kFunction>
Result<Values> build_unary(OpCall& call) {
  return Values{call.pointwise(fmt::format("{}(x0)", kFunction.letters), {call.inputs[0]})};
}

FrontOp binary_op(std::string_view name, std::string_view summary, Result<Values> (*build)(OpCall&)) {
  return {name, summary, {"a", "b?"}, {{"scalar", "null"}, {"reverse", "false"}}, build};
}
FrontOp unary_op(std::string_view name, std::string_view summary, Result<Values> (*build)(OpCall&)) {
  return {name, summary, {"x"}, {}, build};
}

}  // namespace

FrontGroup front_elementwise() {
  static const std::vector<FrontOp> kOps = {
      binary_op("add", "a + b", build_add),
      binary_op("sub", "a - b", build_binary<"sub">),
      binary_op("mul", "a * b", build_mul),
      binary_op("div", "a / b", build_binary<"div">),
      binary_op("pow", "a to the power b", build_binary<"pow">),
      binary_op("maximum", "the larger of a and b", build_binary<"max">),
      binary_op("minimum", "the smaller of a and b", build_binary<"min">),
      binary_op("eq", "1 where a = b, else 0", build_binary<"eq">),
      binary_op("ne", "1 where a differs from b, else 0", build_binary<"ne">),
      binary_op("lt", "1 where a < b, else 0", build_binary<"lt">),
      binary_op("le", "1 where a <= b, else 0", build_binary<"le">),
      binary_op("gt", "1 where a > b, else 0", build_binary<"gt">),
      binary_op("ge", "1 where a >= b, else 0", build_binary<"ge">),
      unary_op("neg", "-x", build_unary<"neg">),
      unary_op("exp", "e to the power x", build_unary<"exp">),
      unary_op("log", "natural logarithm", build_unary<"log">),
      unary_op("sqrt", "square root", build_unary<"sqrt">),
      unary_op("rsqrt", "1 / square root", build_unary<"rsqrt">),
      unary_op("abs", "absolute value", build_unary<"abs">),
      unary_op("sign", "-1, 0 or 1", build_unary<"sign">),
      unary_op("square", "x * x", build_square),
      unary_op("relu", "max(x, 0)", build_relu),
      unary_op("tanh", "hyperbolic tangent", build_unary<"tanh">),
      unary_op("sigmoid", "1 / (1 + exp(-x))", build_unary<"sigmoid">),
      unary_op("softplus", "log(1 + exp(x))", build_unary<"softplus">),
      unary_op("erf", "the error function", build_unary<"erf">),
      unary_op("silu", "x * sigmoid(x)", build_silu),
      {"gelu", "x * Phi(x)", {"x"}, {{"approximate", R"("none")"}}, build_gelu},
      {"where", "a where the condition is not 0, else b", {"condition", "a", "b"}, {}, build_where},
      {"clamp", "x within [min, max]", {"x"}, {{"min", "null"}, {"max", "null"}}, build_clamp},
      {"pointwise", "an expression over x0, x1, …", {"x..."}, {{"expression"}}, build_expression},
      {"cast", "another floating type", {"x"}, {{"dtype"}}, build_cast},
  };
  return kOps;
}

}  // namespace plimsoll::library
