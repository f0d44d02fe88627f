// A value of the model: an input, a parameter, what an op makes of others. It holds no elements; it is 16
// bytes and is passed by value.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/json.h"
#include "plimsoll/trace.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

class Value {
 public:
  /// None: an operand that is left out.
  Value() = default;
  Value(detail::Trace* trace, pls_value id) : trace_(trace), id_(id) {}

  [[nodiscard]] bool is_none() const { return id_ == PLS_NONE; }
  [[nodiscard]] Shape shape() const {
    int64_t extents[PLS_MAX_RANK] = {};
    int rank = 0;
    if (trace_ != nullptr && !is_none()) {
      detail::check(trace_, detail::call([&](pls_error** error) {
                      return pls_value_type(trace_->builder.get(), id_, nullptr, extents, &rank, error);
                    }));
    }
    return Shape(extents, extents + rank);
  }

  [[nodiscard]] detail::Trace* trace() const { return trace_; }
  [[nodiscard]] pls_value id() const { return id_; }

 private:
  detail::Trace* trace_ = nullptr;
  pls_value id_ = PLS_NONE;
};
static_assert(sizeof(Value) <= 16);

namespace detail {

/// Appends the op; its results. Ops and their attributes are listed in plimsoll_c.h.
inline std::vector<Value> append(const char* name, std::span<const Value> inputs, const Json& attributes,
                                 size_t num_outputs) {
  Trace* trace = needed_trace(name);
  std::vector<Value> outputs(num_outputs, Value(trace, PLS_NONE));
  if (trace == nullptr || trace->error) return outputs;
  std::vector<pls_value> ids;
  for (const Value& input : inputs) {
    if (!input.is_none() && input.trace() != trace) {
      fail(
          trace,
          Error(
              ErrorKind::invalid_argument, std::string(name) + ": a value of another plan",
              "values live as long as the loss function runs; what is to outlive it is read from a session"));
      return outputs;
    }
    ids.push_back(input.id());
  }
  std::vector<pls_value> results(num_outputs, PLS_NONE);
  const std::string text = attributes.empty() ? std::string() : attributes.text();
  check(trace, call([&](pls_error** error) {
          return pls_op(trace->builder.get(), name, ids.data(), ids.size(),
                        attributes.empty() ? nullptr : text.c_str(), results.data(), results.size(), error);
        }));
  for (size_t i = 0; i < num_outputs; ++i) outputs[i] = Value(trace, results[i]);
  return outputs;
}

inline Value op(const char* name, std::initializer_list<Value> inputs, const Json& attributes = {}) {
  return append(name, std::span<const Value>(inputs.begin(), inputs.size()), attributes, 1).front();
}

}  // namespace detail

/// Elementwise, with a value of a shape that broadcasts as in numpy or with a number.
#define PLIMSOLL_BINARY(function, name)                                                 \
  inline Value function(Value a, Value b) { return detail::op(name, {a, b}); }          \
  inline Value function(Value a, double b) {                                            \
    return detail::op(name, {a}, detail::Json().set("scalar", b));                      \
  }                                                                                     \
  inline Value function(double a, Value b) {                                            \
    return detail::op(name, {b}, detail::Json().set("scalar", a).set("reverse", true)); \
  }
PLIMSOLL_BINARY(operator+, "add")
PLIMSOLL_BINARY(operator-, "sub")
PLIMSOLL_BINARY(operator*, "mul")
PLIMSOLL_BINARY(operator/, "div")
PLIMSOLL_BINARY(pow, "pow")
PLIMSOLL_BINARY(maximum, "maximum")
PLIMSOLL_BINARY(minimum, "minimum")
/// Comparisons give 0 or 1.
PLIMSOLL_BINARY(eq, "eq")
PLIMSOLL_BINARY(ne, "ne")
PLIMSOLL_BINARY(lt, "lt")
PLIMSOLL_BINARY(le, "le")
PLIMSOLL_BINARY(gt, "gt")
PLIMSOLL_BINARY(ge, "ge")
#undef PLIMSOLL_BINARY

#define PLIMSOLL_UNARY(function, name) \
  inline Value function(Value x) { return detail::op(name, {x}); }
PLIMSOLL_UNARY(operator-, "neg")
PLIMSOLL_UNARY(silu, "silu")
PLIMSOLL_UNARY(relu, "relu")
PLIMSOLL_UNARY(tanh, "tanh")
PLIMSOLL_UNARY(sigmoid, "sigmoid")
PLIMSOLL_UNARY(exp, "exp")
PLIMSOLL_UNARY(log, "log")
PLIMSOLL_UNARY(sqrt, "sqrt")
PLIMSOLL_UNARY(rsqrt, "rsqrt")
PLIMSOLL_UNARY(abs, "abs")
PLIMSOLL_UNARY(square, "square")
/// The same value, as a constant to the gradient.
PLIMSOLL_UNARY(detach, "detach")
#undef PLIMSOLL_UNARY

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
