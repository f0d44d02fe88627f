// What the tests of ops share: run an op or a composition through the reference interpreter in double, hold a
// derivative against central differences, collect an operand error.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/reference/interpreter.h"
#include "ir/builder.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/philox.h"

namespace plimsoll::ops_testing {

using ir::Attrs;
using ir::Builder;
using ir::DType;
using ir::RefTensor;
using ir::Shape;
using ir::TensorType;
using ir::ValueId;
using Tensors = std::vector<RefTensor>;
using Build = std::function<std::vector<ValueId>(Builder&, const std::vector<ValueId>&)>;

// ---- operands
// ----------------------------------------------------------------------------------------------------

/// Normals that depend on the shape and `salt` alone.
inline RefTensor normal(Shape shape, uint32_t salt = 0) {
  RefTensor t = reference::constant({DType::kF32, shape}, 0);
  for (size_t i = 0; i < t.data.size(); ++i) {
    const auto words =
        ops::random_words({.seed_low = static_cast<uint32_t>(t.data.size()), .op_key = salt}, i);
    t.data[i] = ops::normal_pair(words[0], words[1])[0];
  }
  return t;
}
/// Normals' magnitudes plus `least`.
inline RefTensor positive(Shape shape, double least, uint32_t salt = 0) {
  RefTensor t = normal(shape, salt);
  for (double& v : t.data) v = std::abs(v) + least;
  return t;
}
inline RefTensor values(Shape shape, std::vector<double> data) {
  return reference::tensor({DType::kF32, shape}, std::move(data));
}
/// What losses are scaled by.
inline const RefTensor kLossScale = values({1}, {0.3});
inline RefTensor ints(Shape shape, std::vector<double> data) {
  return reference::tensor({DType::kI32, shape}, std::move(data));
}
/// Integers in [0, limit).
inline RefTensor ids(Shape shape, uint32_t limit, uint32_t salt = 0) {
  RefTensor t = reference::constant({DType::kI32, shape}, 0);
  for (size_t i = 0; i < t.data.size(); ++i) t.data[i] = ops::random_words({.op_key = salt}, i)[2] % limit;
  return t;
}
inline RefTensor absent() { return {}; }

// ---- evaluation
// --------------------------------------------------------------------------------------------------

/// Builds a program over `inputs`, verifies it, runs it in double.
inline Tensors evaluate(const Tensors& inputs, const Build& build) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  reference::Interpreter interpreter;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].data.empty()) {
      operands.emplace_back();
      continue;
    }
    const std::string name = fmt::format("in{}", i);
    interpreter.set(name, inputs[i]);
    operands.push_back(b.state({name, inputs[i].type, ir::StateClass::kInput}));
  }
  const std::vector<ValueId> results = build(b, operands);
  for (const Status& status : {b.status(), ir::verify(graph), interpreter.run(graph)})
    if (!status) throw std::runtime_error(status.error().message());
  Tensors out;
  for (const ValueId v : results) out.push_back(v.valid() ? interpreter.value(v) : RefTensor{});
  return out;
}

inline Tensors evaluate(std::string_view op, const Tensors& inputs, const Attrs& attrs = {}) {
  return evaluate(inputs, [&](Builder& b, const auto& operands) { return b.ops(op, operands, attrs); });
}

/// The largest difference relative to the largest magnitude; infinite where shapes differ.
inline double distance(const RefTensor& a, const RefTensor& b) {
  if (a.type != b.type || a.data.size() != b.data.size()) return INFINITY;
  double largest = 1e-30;
  double difference = 0;
  for (size_t i = 0; i < a.data.size(); ++i) {
    largest = std::max({largest, std::abs(a.data[i]), std::abs(b.data[i])});
    difference = std::max(difference, std::abs(a.data[i] - b.data[i]));
    if (std::isnan(a.data[i]) != std::isnan(b.data[i])) return INFINITY;
  }
  return difference / largest;
}
inline double distance(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return INFINITY;
  double d = 0;
  for (size_t i = 0; i < a.size(); ++i) d = std::max(d, distance(a[i], b[i]));
  return d;
}

// ---- derivatives
// -------------------------------------------------------------------------------------------------

/// One row of a table of derivatives.
struct DerivativeCase {
  std::string name;
  std::string op;
  Tensors inputs;
  Attrs attrs = {};
  std::vector<size_t> outputs = {0};   ///< those that the scalar depends on
  int loss_scale = -1;                 ///< the input that is the loss's cotangent by contract
  std::vector<size_t> constants = {};  ///< floating inputs without a derivative
};

class SingleOpVjp final : public ir::VjpContext {
 public:
  SingleOpVjp(Builder& b, ir::Op op, std::vector<ValueId> cotangents, std::vector<bool> wanted)
      : builder_(b),
        op_(std::move(op)),
        cotangents_(std::move(cotangents)),
        wanted_(std::move(wanted)),
        sums_(op_.inputs.size()) {}
  Builder& builder() override { return builder_; }
  [[nodiscard]] const ir::Op& op() const override { return op_; }
  [[nodiscard]] ValueId cotangent(size_t output) const override { return cotangents_[output]; }
  [[nodiscard]] bool wants(size_t input) const override { return input < wanted_.size() && wanted_[input]; }
  void add(size_t input, ValueId v) override {
    sums_[input] = sums_[input].valid() ? ops::add(builder_, sums_[input], v) : v;
  }
  [[nodiscard]] const std::vector<ValueId>& sums() const { return sums_; }

 private:
  Builder& builder_;
  ir::Op op_;
  std::vector<ValueId> cotangents_;
  std::vector<bool> wanted_;
  std::vector<ValueId> sums_;
};

/// Weights of the outputs in the scalar; empty for outputs that it does not depend on.
inline Tensors weights_of(const DerivativeCase& c, const Tensors& outputs) {
  Tensors weights(outputs.size());
  for (const size_t k : c.outputs) weights[k] = normal(outputs[k].type.shape, 77 + static_cast<uint32_t>(k));
  if (c.loss_scale >= 0) weights[0] = c.inputs[static_cast<size_t>(c.loss_scale)];
  return weights;
}

/// Gradients by the op's vjp; empty where it gives none.
inline Tensors gradients(const DerivativeCase& c, const Tensors& weights, const std::vector<bool>& wanted) {
  Tensors all = c.inputs;
  all.insert(all.end(), weights.begin(), weights.end());
  return evaluate(all, [&](Builder& b, const std::vector<ValueId>& v) {
    const auto split = v.begin() + static_cast<std::ptrdiff_t>(c.inputs.size());
    const auto results = b.ops(c.op, {v.begin(), split}, c.attrs);
    if (!b.status()) throw std::runtime_error(b.status().error().message());
    SingleOpVjp vjp(b, b.graph().op(b.graph().value(results[0]).producer), {split, v.end()}, wanted);
    vjp.op().def->vjp(vjp);
    return vjp.sums();
  });
}

inline double scalar(const DerivativeCase& c, const Tensors& inputs, const Tensors& weights) {
  const Tensors outputs = evaluate(c.op, inputs, c.attrs);
  double sum = 0;
  for (size_t k = 0; k < outputs.size(); ++k)
    for (size_t i = 0; i < weights[k].data.size(); ++i) sum += weights[k].data[i] * outputs[k].data[i];
  return sum;
}

/// The op's derivative against central differences: the largest relative difference over all inputs.
inline double derivative_error(const DerivativeCase& c) {
  constexpr double kStep = 1e-5;  // error of order step^2 and 1e-16 / step: about 1e-10
  std::vector<bool> wanted;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    wanted.push_back(!c.inputs[i].data.empty() && c.inputs[i].type.dtype == DType::kF32 &&
                     static_cast<int>(i) != c.loss_scale &&
                     std::count(c.constants.begin(), c.constants.end(), i) == 0);
  const Tensors weights = weights_of(c, evaluate(c.op, c.inputs, c.attrs));
  const Tensors found = gradients(c, weights, wanted);
  double worst = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!wanted[i]) continue;
    RefTensor expected = c.inputs[i];
    Tensors inputs = c.inputs;
    for (size_t e = 0; e < expected.data.size(); ++e) {
      double& x = inputs[i].data[e];
      const double centre = x;
      x = centre + kStep;
      const double above = scalar(c, inputs, weights);
      x = centre - kStep;
      const double below = scalar(c, inputs, weights);
      x = centre;
      expected.data[e] = (above - below) / (2 * kStep);
    }
    worst = std::max(worst, distance(found[i], expected));
  }
  return worst;
}
inline constexpr double kDerivativeTolerance = 1e-6;

// ---- errors
// ------------------------------------------------------------------------------------------------------

/// One row of a table of operands that do not fit.
struct ErrorCase {
  std::string op;
  std::vector<TensorType> inputs;  ///< rank 0: absent
  Attrs attrs;
  std::string what;
};

inline TensorType f32(Shape shape) { return {DType::kF32, shape}; }
inline TensorType i32(Shape shape) { return {DType::kI32, shape}; }

/// What the builder says of them; empty if they fit.
inline std::string operand_error(const ErrorCase& c) {
  ir::Graph graph;
  Builder b(graph, ops::find_op);
  std::vector<ValueId> operands;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    operands.push_back(c.inputs[i].shape.rank() == 0 ? ValueId{}
                                                     : b.state({fmt::format("in{}", i), c.inputs[i], {}}));
  b.ops(c.op, operands, c.attrs);
  const Status status = b.status();
  if (status) return "";
  return status.error().code == ErrorCode::kInvalidArgument ? status.error().what : "wrong code";
}

}  // namespace plimsoll::ops_testing
