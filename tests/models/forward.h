// A model's logits, from a config in JSON: in double precision by the interpreter, and by the CPU backend
// from a planned session, with the forward passes over the graph or without them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/reference/interpreter.h"
#include "models/language_model.h"
#include "ops/op_list.h"
#include "passes/pipeline.h"
#include "passes/session_plan.h"
#include "runtime/session_testing.h"

namespace plimsoll::models {

inline std::unique_ptr<LanguageModel> model_of(const std::string& json) {
  const auto config = io::parse_config_json(json, "config.json");
  PLIMSOLL_CHECK(config.ok(), json);
  auto model = make_language_model(*config);
  PLIMSOLL_CHECK(model.ok(), model ? "" : model.error().message());
  return std::move(*model);
}

/// "model.norm.weight [60]" for every tensor of the checkpoint, in the model's order.
inline std::vector<std::string> tensor_list(const Model& model) {
  std::vector<std::string> lines;
  for (const Parameter& p : model.parameters())
    for (const ParameterView& view : p.views) lines.push_back(view.name + " " + to_string(view.shape));
  return lines;
}

/// Each storage is its views' rows, one after the other, without gap or overlap.
inline void expect_views_cover(const Model& model) {
  for (const Parameter& p : model.parameters()) {
    int64_t row = 0;
    for (const ParameterView& view : p.views) {
      EXPECT_EQ(view.row, row) << view.name;
      ir::Shape rest = view.shape;
      rest.set_dim(0, p.shape.dim(0));
      EXPECT_EQ(rest, p.shape) << view.name;
      row += view.shape.dim(0);
    }
    EXPECT_EQ(row, p.shape.dim(0)) << p.name;
  }
}

/// tokens i32[batch, length], and doc_start alike where sequences hold several documents -> state "logits".
struct ForwardGraph {
  ir::Graph graph;
  ir::ValueId logits;
  ir::TensorType type;
};

inline ForwardGraph forward_graph(const LanguageModel& model, int64_t batch, int64_t length,
                                  bool documents = false) {
  ForwardGraph f;
  ir::Builder b(f.graph, ops::find_op);
  const ir::TensorType tokens{ir::DType::kI32, ir::Shape{batch, length}};
  Forward forward{.tokens = b.state({"tokens", tokens, ir::StateClass::kInput})};
  if (documents) forward.doc_start = b.state({"doc_start", tokens, ir::StateClass::kInput});
  f.logits = model.logits(b, forward);
  PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
  f.type = b.type(f.logits);
  f.graph.declare_state({"logits", f.type, ir::StateClass::kOutput});
  b.assign("logits", f.logits);
  return f;
}

/// Values from -scale to scale that depend on the state's name and the element alone.
inline std::vector<float> some_values(const std::string& name, int64_t count, float scale) {
  uint32_t x = 1;
  for (const char c : name) x = x * 31 + static_cast<unsigned char>(c);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) {
    x = x * 1664525U + 1013904223U;
    v = scale * (static_cast<float>(x >> 8) / 8388608.0F - 1.0F);
  }
  return values;
}

/// Weights large enough that attention is far from even; norms around 1, biases not 0. The same for a tensor
/// in whatever storage it lies.
inline std::vector<float> weights_of(const Parameter& p) {
  std::vector<float> values;
  for (const ParameterView& view : p.views)
    for (const float v : some_values(view.name, view.shape.num_elements(), 0.3F)) values.push_back(v);
  if (p.init == Init::kOnes)
    for (float& v : values) v += 1.0F;
  return values;
}

inline std::vector<int32_t> some_tokens(const LanguageModel& model, int64_t batch, int64_t length) {
  std::vector<int32_t> tokens;
  for (const float v : some_values("tokens", batch * length, 0.5F))
    tokens.push_back(static_cast<int32_t>((v + 0.5F) * static_cast<float>(model.vocab_size() - 1)));
  return tokens;
}

inline std::vector<double> interpret(const LanguageModel& model, int64_t batch, int64_t length,
                                     const std::vector<int32_t>& tokens,
                                     const std::vector<int32_t>& doc_start = {}) {
  const ForwardGraph f = forward_graph(model, batch, length, !doc_start.empty());
  reference::Interpreter interpreter;
  const auto set = [&](const std::string& name, ir::DType dtype, const ir::Shape& shape, const auto& data) {
    interpreter.set(name, reference::tensor({dtype, shape}, {data.begin(), data.end()}));
  };
  for (const Parameter& p : model.parameters()) set(p.name, ir::DType::kF32, p.shape, weights_of(p));
  for (const Constant& c : model.constants()) set(c.name, ir::DType::kF32, c.shape, c.data);
  set("tokens", ir::DType::kI32, ir::Shape{batch, length}, tokens);
  if (!doc_start.empty()) set("doc_start", ir::DType::kI32, ir::Shape{batch, length}, doc_start);
  const Status status = interpreter.run(f.graph);
  PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
  return interpreter.find("logits")->data;
}

/// A session of the forward program alone, on two threads, with what is dead poisoned.
class CpuForward {
 public:
  CpuForward(const LanguageModel& model, int64_t batch, int64_t length, bool with_passes = true,
             bool documents = false)
      : CpuForward(model, forward_graph(model, batch, length, documents), with_passes) {}

  CpuForward(const Model& model, ForwardGraph f, bool with_passes) : device_(2) {
    std::vector<std::pair<ir::OpId, ir::Alias>> in_place;
    if (with_passes) in_place = run_passes(f.graph);
    auto program = session_testing::plan_program(std::move(f.graph), device_.target(), std::move(in_place));
    PLIMSOLL_CHECK(program.ok(), "bind");
    std::vector<passes::Program> programs;
    programs.push_back(std::move(*program));
    auto session_plan = passes::plan_session(std::move(programs));
    PLIMSOLL_CHECK(session_plan.ok(), "plan");
    auto session = runtime::Session::create(device_, std::move(*session_plan), {.poison = true});
    PLIMSOLL_CHECK(session.ok(), "session");
    session_ = std::move(*session);
    for (const Parameter& p : model.parameters()) write(p.name, weights_of(p));
    for (const Constant& c : model.constants()) write(c.name, c.data);
  }

  std::vector<float> operator()(const std::vector<int32_t>& tokens,
                                const std::vector<int32_t>& doc_start = {}) {
    write("tokens", tokens);
    if (!doc_start.empty()) write("doc_start", doc_start);
    return run();
  }

  /// A state that is no parameter.
  void write_buffer(const std::string& name, const std::vector<float>& data) { write(name, data); }
  /// An input of ids beside the tokens.
  void write_ids(const std::string& name, const std::vector<int32_t>& ids) { write(name, ids); }
  /// Of a graph with another input.
  std::vector<float> run_on(const std::string& input, const std::vector<float>& data) {
    write(input, data);
    return run();
  }

 private:
  std::vector<float> run() {
    PLIMSOLL_CHECK(session_->run(0).ok(), "run");
    return session_testing::read_state<float>(*session_, "logits");
  }
  static std::vector<std::pair<ir::OpId, ir::Alias>> run_passes(ir::Graph& graph) {
    passes::PipelineOptions options;
    options.grad = false;
    passes::Pipeline pipeline(options);
    PLIMSOLL_CHECK(pipeline.forward(graph, {}).ok(), "forward passes");
    auto places = pipeline.arrange(graph);
    PLIMSOLL_CHECK(places.ok(), "arrange");
    return std::move(places->aliases);
  }
  template <typename T>
  void write(const std::string& name, const std::vector<T>& data) {
    PLIMSOLL_CHECK(session_->type(name).num_elements() == static_cast<int64_t>(data.size()), name);
    session_testing::write_state(*session_, name, data);
  }

  cpu::CpuDevice device_;
  std::unique_ptr<runtime::Session> session_;
};

/// Logits are those of the interpreter to 1e-5 of their norm.
inline void expect_close(const std::vector<float>& logits, const std::vector<double>& expected) {
  ASSERT_EQ(logits.size(), expected.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    difference += std::pow(logits[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  EXPECT_GT(norm, 0);
  EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(norm));
}

/// The backend's logits are the interpreter's, with and without passes.
inline void expect_forward_agrees(const LanguageModel& model, int64_t batch, int64_t length) {
  const std::vector<int32_t> tokens = some_tokens(model, batch, length);
  const std::vector<double> expected = interpret(model, batch, length, tokens);
  for (const bool with_passes : {false, true}) {
    SCOPED_TRACE(with_passes ? "with passes" : "without passes");
    expect_close(CpuForward(model, batch, length, with_passes)(tokens), expected);
  }
}

/// Positions [batch, length] at which any logit changes when the token at (`row`, `position`) does.
inline std::vector<bool> positions_influenced(const LanguageModel& model, int64_t batch, int64_t length,
                                              int64_t row, int64_t position) {
  CpuForward forward(model, batch, length);
  std::vector<int32_t> tokens = some_tokens(model, batch, length);
  const std::vector<float> before = forward(tokens);
  int32_t& token = tokens[static_cast<size_t>(row * length + position)];
  token = (token + 1) % static_cast<int32_t>(model.vocab_size());
  const std::vector<float> after = forward(tokens);
  std::vector<bool> changed;
  for (auto a = before.begin(), b = after.begin(); a != before.end();
       a += model.vocab_size(), b += model.vocab_size())
    changed.push_back(!std::equal(a, a + model.vocab_size(), b));
  return changed;
}

/// Exactly the positions [position, position + reach) of that row change.
inline void expect_influence(const LanguageModel& model, int64_t batch, int64_t length, int64_t row,
                             int64_t position, int64_t reach) {
  const std::vector<bool> changed = positions_influenced(model, batch, length, row, position);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t t = 0; t < length; ++t)
      EXPECT_EQ(changed[static_cast<size_t>(b * length + t)],
                b == row && t >= position && t < position + reach)
          << "token " << position << " of sequence " << row << " on token " << t << " of sequence " << b;
}

}  // namespace plimsoll::models
