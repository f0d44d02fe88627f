// From a random forward program to one that trains: what the step's builder does, in small.
#pragma once

#include <string>
#include <vector>

#include "ops/update_rules.h"
#include "passes/pipeline.h"
#include "passes/training/accumulate.h"
#include "random_program.h"

namespace plimsoll::fixtures {

/// What follows backward.
enum class Tail {
  kGradients,   ///< "grad.<name>" takes each gradient
  kOptimizer,   ///< norm, clip and update of all parameters, by some rule
  kAccumulate,  ///< gradients go on from what "grad.<name>.<use>" holds
  kFirst,       ///< the same, assigned
};

struct Trained {
  Graph graph;
  std::vector<std::pair<ir::OpId, ir::Alias>> in_place;
  std::map<std::string, ir::RefTensor> states;
  std::vector<passes::PassTiming> timings;
};

inline void declare_like(RandomProgram& p, const std::string& name, ir::TensorType type, StateClass c,
                         double value) {
  p.graph.declare_state({.name = name, .type = type, .state_class = c});
  p.states[name] = reference::constant(type, value);
}

inline void append_optimizer(RandomProgram& p, Builder& b, const std::vector<ValueId>& grads) {
  const ops::UpdateRule& rule = ops::update_rules()[p.names.size() % ops::update_rules().size()];
  const ir::TensorType table{DType::kF32, Shape{2, rule.num_fields}};
  p.graph.declare_state({.name = "groups", .type = table, .state_class = StateClass::kScalars});
  std::vector<double> fields;
  for (int64_t i = 0; i < 2 * rule.num_fields; ++i) fields.push_back(1.0 - 0.1 * static_cast<double>(i % 7));
  p.states["groups"] = reference::tensor(table, fields);
  const auto scope = b.block(ir::kUpdateBlock, "optimizer");
  std::vector<ValueId> squares;
  for (const ValueId g : grads)
    if (g.valid()) squares.push_back(ops::sum_squares(b, g));
  // In half of the programs nothing but the norm, which a state takes, waits for all gradients.
  const bool clips = p.names.size() % 2 == 0;
  const ValueId norm = ops::global_norm(b, squares);
  declare_like(p, "norm", {DType::kF32, Shape{1}}, StateClass::kOutput, 0);
  b.assign("norm", norm);
  const ValueId clip = clips ? ops::clip_scale(b, norm, 0.5) : ops::fill(b, {1}, 1.0);
  const ValueId groups = b.read("groups");
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].valid()) continue;
    const std::string& name = p.names[i];
    const ir::TensorType type = p.graph.type(p.params[i]);
    std::vector<ValueId> states;
    for (const std::string_view state : rule.states) {
      declare_like(p, name + "." + std::string(state), type, StateClass::kOptimizerState, 0.5);
      states.push_back(b.read(name + "." + std::string(state)));
    }
    const auto next =
        ops::update(b, rule, b.read(name), grads[i], states, clip, groups, type.shape.rank() == 1 ? 1 : 0);
    b.assign(name, next[0]);
    for (size_t s = 0; s < states.size(); ++s)
      b.assign(name + "." + std::string(rule.states[s]), next[1 + s]);
  }
}

inline Status append_accumulation(RandomProgram& p, const passes::AutodiffReport& report, bool first) {
  std::vector<passes::Accumulation> list;
  for (size_t i = 0; i < p.names.size(); ++i)
    for (size_t use = 0; use < report.contributions[i].size(); ++use) {
      const ValueId g = report.contributions[i][use];
      const std::string name = "grad." + p.names[i] + "." + std::to_string(use);
      const auto& maker = p.graph.op(p.graph.value(g).producer);
      const bool can =
          ir::accumulator_operand(maker, static_cast<size_t>(p.graph.value(g).result_index)) >= 0;
      declare_like(p, name, p.graph.type(g), StateClass::kGradient, 0.75);
      list.push_back({g, name, first || !can});
    }
  return passes::accumulate(p.graph, list);
}

/// Runs the whole pipeline over the random program of `seed`.
inline Result<Trained> train_program(uint64_t seed, const passes::PipelineOptions& options, Tail tail,
                                     int64_t batch = 0) {
  RandomProgram p = random_program(seed, batch);
  passes::Pipeline pipeline(options);
  std::vector<ValueId> keep = p.params;
  keep.push_back(p.loss);
  PLIMSOLL_TRY(pipeline.forward(p.graph, keep));
  p.loss = keep.back();
  keep.pop_back();
  p.params = keep;
  PLIMSOLL_ASSIGN(auto report, pipeline.differentiate(p.graph, {.loss = p.loss, .wrt = p.params}));
  Builder b(p.graph, ops::find_op);
  declare_like(p, "loss", {DType::kF32, Shape{1}}, StateClass::kOutput, 0);
  b.assign("loss", p.loss);
  if (tail == Tail::kOptimizer) append_optimizer(p, b, report.cotangents);
  if (tail == Tail::kGradients)
    for (size_t i = 0; i < p.names.size(); ++i) {
      if (!report.cotangents[i].valid()) continue;
      declare_like(p, "grad." + p.names[i], p.graph.type(p.params[i]), StateClass::kGradient, 0);
      b.assign("grad." + p.names[i], report.cotangents[i]);
    }
  PLIMSOLL_TRY(b.status());
  if (tail == Tail::kAccumulate || tail == Tail::kFirst)
    PLIMSOLL_TRY(append_accumulation(p, report, tail == Tail::kFirst));
  PLIMSOLL_TRY(pipeline.backward(p.graph));
  PLIMSOLL_ASSIGN(auto places, pipeline.arrange(p.graph));
  return Trained{std::move(p.graph), std::move(places.aliases), std::move(p.states), pipeline.timings()};
}

/// Every pass off.
inline passes::PipelineOptions no_passes() {
  passes::PipelineOptions o;
  for (auto flag : {&passes::PipelineOptions::common_subexpressions, &passes::PipelineOptions::dead_code,
                    &passes::PipelineOptions::fuse_norms, &passes::PipelineOptions::fuse_activations,
                    &passes::PipelineOptions::fuse_attention, &passes::PipelineOptions::fuse_head_loss,
                    &passes::PipelineOptions::fuse_bias_grads, &passes::PipelineOptions::share_casts,
                    &passes::PipelineOptions::fuse_linear_adds, &passes::PipelineOptions::fuse_norm_grads,
                    &passes::PipelineOptions::fuse_embedding_grads, &passes::PipelineOptions::fuse_optimizer,
                    &passes::PipelineOptions::fuse_pointwise, &passes::PipelineOptions::optimizer_in_backward,
                    &passes::PipelineOptions::second_backward, &passes::PipelineOptions::recompute_cheap,
                    &passes::PipelineOptions::schedule, &passes::PipelineOptions::in_place})
    o.*flag = false;
  return o;
}

/// What is computed again, of any network of random_program.h: it has at least one block.
inline passes::RecomputePolicy some_policy(uint64_t number) {
  using Kind = passes::RecomputePolicy::Kind;
  switch (number % 6) {
    case 0:
      return {};
    case 1:
      return {.kind = Kind::kFull};
    case 2:
      return {.kind = Kind::kSegments, .count = 1};
    case 3:
      return {.kind = Kind::kEvery, .count = 1};
    case 4:
      return {.kind = Kind::kLayers, .layers = {"layers.0"}};
    default:
      return {.kind = Kind::kLayers, .layers = {"layers.?.?*"}};
  }
}

/// Each pass on or off by a bit of `mask`.
inline passes::PipelineOptions some_passes(uint64_t mask) {
  passes::PipelineOptions o;
  uint64_t bit = 1;
  for (const passes::PassEntry& entry : passes::pass_list()) {
    if (entry.enabled == nullptr) continue;
    o.*entry.enabled = (mask & bit) != 0;
    bit <<= 1;
  }
  o.recompute = some_policy(mask >> 7);
  return o;
}

/// The states after a run of the interpreter.
inline std::map<std::string, ir::RefTensor> interpret(const Trained& t, reference::Precision precision) {
  reference::Interpreter interpreter(precision);
  for (const auto& [name, value] : t.states) interpreter.set(name, value);
  const Status status = interpreter.run(t.graph);
  PLIMSOLL_CHECK(status.ok(), status.ok() ? "" : status.error().message());
  std::map<std::string, ir::RefTensor> after;
  for (const auto& [name, value] : t.states) after[name] = *interpreter.find(name);
  return after;
}

}  // namespace plimsoll::fixtures
