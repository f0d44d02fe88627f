// An encoder's scores of padded sequences: by the interpreter, and by the CPU backend.
#pragma once

#include <string>
#include <vector>

#include "forward.h"
#include "models/language_model.h"

namespace plimsoll::models {

/// Sequences of some lengths in rows of `length` tokens. What is behind a sequence is a document of its own.
struct PaddedBatch {
  int64_t length = 0;
  std::vector<int32_t> tokens = {}, doc_start = {}, token_types = {};

  [[nodiscard]] int64_t batch() const { return static_cast<int64_t>(tokens.size()) / length; }
};

/// Each sequence's tokens and types depend on its index alone, padding on `length`.
inline PaddedBatch padded_batch(const LanguageModel& model, const std::vector<int64_t>& lengths,
                                int64_t length) {
  PaddedBatch batch{.length = length};
  const int64_t kinds = std::max<int64_t>(model.num_token_types(), 1);
  for (size_t s = 0; s < lengths.size(); ++s)
    for (int64_t t = 0; t < length; ++t) {
      const bool is_padding = t >= lengths[s];
      const int64_t drawn = (static_cast<int64_t>(s) * 31 + t * 17 + (is_padding ? length : 0)) % 191;
      batch.tokens.push_back(static_cast<int32_t>(drawn + 2));
      batch.doc_start.push_back(is_padding ? static_cast<int32_t>(lengths[s]) : 0);
      batch.token_types.push_back(is_padding ? 0 : static_cast<int32_t>(2 * t / lengths[s] % kinds));
    }
  return batch;
}

/// Which of the inputs a graph takes beside the tokens.
struct EncoderInputs {
  bool documents = true, types = true;
};

/// tokens, doc_start, token_types i32[batch, length] -> state "logits" [batch, 1, labels].
inline ForwardGraph encoder_graph(const LanguageModel& model, int64_t batch, int64_t length,
                                  const EncoderInputs& inputs = {}) {
  ForwardGraph f;
  ir::Builder b(f.graph, ops::find_op);
  const auto input = [&](const char* name, bool is_taken) {
    const ir::TensorType type{ir::DType::kI32, {batch, length}};
    return is_taken ? b.state({name, type, ir::StateClass::kInput}) : ir::ValueId{};
  };
  const Forward forward{.tokens = input("tokens", true),
                        .doc_start = input("doc_start", inputs.documents),
                        .token_types = input("token_types", inputs.types && model.num_token_types() > 0)};
  f.logits = model.pooled_logits(b, forward, {});
  PLIMSOLL_CHECK(b.status().ok(), b.status() ? "" : b.status().error().message());
  f.type = b.type(f.logits);
  f.graph.declare_state({"logits", f.type, ir::StateClass::kOutput});
  b.assign("logits", f.logits);
  return f;
}

inline std::vector<double> interpret_encoder(const LanguageModel& model, const PaddedBatch& batch,
                                             const EncoderInputs& inputs = {}) {
  const ForwardGraph f = encoder_graph(model, batch.batch(), batch.length, inputs);
  reference::Interpreter interpreter;
  const auto set = [&](const std::string& name, ir::DType dtype, const ir::Shape& shape, const auto& data) {
    interpreter.set(name, reference::tensor({dtype, shape}, {data.begin(), data.end()}));
  };
  for (const Parameter& p : model.parameters()) set(p.name, ir::DType::kF32, p.shape, weights_of(p));
  for (const Constant& c : model.constants()) set(c.name, ir::DType::kF32, c.shape, c.data);
  const ir::Shape shape{batch.batch(), batch.length};
  set("tokens", ir::DType::kI32, shape, batch.tokens);
  set("doc_start", ir::DType::kI32, shape, batch.doc_start);
  set("token_types", ir::DType::kI32, shape, batch.token_types);
  const Status status = interpreter.run(f.graph);
  PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
  return interpreter.find("logits")->data;
}

/// The backend's, in fp32.
inline std::vector<float> compute_encoder(const LanguageModel& model, const PaddedBatch& batch,
                                          const EncoderInputs& inputs = {}, bool with_passes = true) {
  CpuForward forward(model, encoder_graph(model, batch.batch(), batch.length, inputs), with_passes);
  if (inputs.types && model.num_token_types() > 0) forward.write_ids("token_types", batch.token_types);
  return forward(batch.tokens, inputs.documents ? batch.doc_start : std::vector<int32_t>{});
}

}  // namespace plimsoll::models
