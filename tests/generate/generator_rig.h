// A model's programs of generation on a session of their own, for tests.
#pragma once

#include <gtest/gtest.h>

#include <bit>

#include "generate/generator.h"
#include "models/changed_config.h"
#include "models/forward.h"
#include "planner/programs/generation_programs.h"
#include "runtime/session_testing.h"

namespace plimsoll::generate {

using models::LanguageModel;
using Ids = std::vector<int32_t>;

/// The samples of all families with a vocabulary of 97, and two that have more to keep apart. By name.
inline const std::map<std::string, std::string>& families() {
  static const std::map<std::string, std::string> kAll = [] {
    std::map<std::string, std::string> all = {
        {"llama with biases",
         R"({"model_type": "llama", "vocab_size": 97, "hidden_size": 36, "intermediate_size": 52,
        "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
        "max_position_embeddings": 200, "attention_bias": true, "mlp_bias": true})"},
        {"smollm3 that slides",
         R"({"model_type": "smollm3", "vocab_size": 97, "hidden_size": 32, "intermediate_size": 52,
        "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "no_rope_layers": [1, 0, 1],
        "use_sliding_window": true, "sliding_window": 9, "max_position_embeddings": 200,
        "pad_token_id": null})"}};
    for (const auto family : models::kLanguageFamilies)
      all[std::string(family().model_type)] =
          io::to_json(models::changed(family().sample, R"({"vocab_size": 97})").fields());
    return all;
  }();
  return kAll;
}

struct Shape {
  int64_t batch = 1, cache = 64, chunk = 16;
  int threads = 2;
  ops::Precision precision = ops::Precision::kF32;
};

/// Those weights in what the state keeps, to nearest even.
inline void write_weights(runtime::Session& session, const std::string& name,
                          const std::vector<float>& data) {
  if (session.plan().find_state(name) == nullptr) return;
  if (session.type(name).dtype == ir::DType::kF32) return session_testing::write_state(session, name, data);
  std::vector<uint16_t> halves;
  for (const float x : data) {
    const auto bits = std::bit_cast<uint32_t>(x);
    halves.push_back(static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16));
  }
  session_testing::write_state(session, name, halves);
}

/// A model's programs on a session of their own, with the weights of tests/models/forward.h.
class Rig {
 public:
  Rig(const LanguageModel& model, const Shape& shape) : device_(shape.threads) {
    planner::GenerationOptions options{
        .batch_size = shape.batch, .cache_tokens = shape.cache, .chunk_tokens = shape.chunk};
    options.pipeline.precision = shape.precision;
    auto programs = planner::build_generation_programs(model, options, device_.target());
    PLIMSOLL_CHECK(programs.ok(), programs ? "" : programs.error().message());
    auto session = runtime::Session::create(device_, std::move(programs->session), {.poison = true});
    PLIMSOLL_CHECK(session.ok());
    session_ = std::move(*session);
    for (const models::Parameter& p : model.parameters())
      write_weights(*session_, p.name, models::weights_of(p));
    for (const models::Constant& c : model.constants()) write_weights(*session_, c.name, c.data);
  }

  Ids generate(const Ids& prompt, const GeneratorOptions& options) {
    return generate(std::vector<Ids>{prompt}, options)[0];
  }
  std::vector<Ids> generate(const std::vector<Ids>& prompts, const GeneratorOptions& options,
                            uint32_t first_index = 0) {
    Generator generator(*session_, options);
    std::vector<Sequence> sequences;
    for (const Ids& p : prompts)
      sequences.push_back({.ids = p,
                           .prompt_tokens = static_cast<int64_t>(p.size()),
                           .index = first_index + static_cast<uint32_t>(sequences.size())});
    logits_.assign(prompts.size(), {});
    const auto keep_logits = [&](const Sequence& s, int32_t id) {
      if (id < 0) return true;
      const auto row = static_cast<size_t>(s.index - first_index);
      const auto all = session_testing::on_cpu<float>(*session_, planner::kNextLogitsState);
      const auto vocab = static_cast<size_t>(session_->type(planner::kNextLogitsState).shape.dim(-1));
      const float* mine = all.data() + row * vocab;
      logits_[row].insert(logits_[row].end(), mine, mine + vocab);
      return true;
    };
    const Status status = generator.run(sequences, keep_logits, [] { return false; });
    PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message());
    std::vector<Ids> results;
    for (const Sequence& s : sequences) {
      const auto ids = s.new_ids();
      results.emplace_back(ids.begin(), ids.end());
      finishes_.push_back(s.finish);
    }
    return results;
  }
  /// Of the last generation, by row: logits of each step.
  [[nodiscard]] const std::vector<std::vector<float>>& logits() const { return logits_; }
  [[nodiscard]] Finish last_finish() const { return finishes_.back(); }
  [[nodiscard]] const runtime::Session& session() const { return *session_; }

 private:
  cpu::CpuDevice device_;
  std::unique_ptr<runtime::Session> session_;
  std::vector<std::vector<float>> logits_;
  std::vector<Finish> finishes_;
};

}  // namespace plimsoll::generate
