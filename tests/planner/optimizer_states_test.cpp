// What each optimizer's states take in a model's plan: to the byte what theory says (docs/memory.md).
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_target.h"
#include "models/selection.h"
#include "optimizers/optimizer_list.h"
#include "planner/programs/step_programs.h"
#include "tasks/task.h"

namespace plimsoll::planner {
namespace {

using models::Parameter;

bool is_matrix(const Parameter& p) { return p.kind != models::ParameterKind::kVector; }

int64_t all_of(const Parameter& p, int64_t bytes) { return bytes * p.shape.num_elements(); }

int64_t adam_bytes(const Parameter& p, int64_t moment) { return all_of(p, 2 * moment); }

/// A row of f32 an original tensor, and a column each.
int64_t factored_bytes(const Parameter& p) {
  if (!is_matrix(p)) return all_of(p, 4);
  return 4 * (p.shape.dim(0) + static_cast<int64_t>(p.views.size()) * p.shape.dim(1));
}

struct Row {
  const char* optimizer;
  bool momentum;
  /// Of a parameter whose moments take so many bytes.
  int64_t (*bytes)(const Parameter&, int64_t moment);
};
constexpr Row kRows[] = {
    {"adamw", false, adam_bytes},
    {"adam", false, adam_bytes},
    {"adam_l2", false, adam_bytes},
    {"sgd", false, [](const Parameter&, int64_t) -> int64_t { return 0; }},
    {"sgd", true, all_of},
    {"lion", false, all_of},
    {"adamw_8bit", false,
     [](const Parameter& p, int64_t moment) {
       const int64_t n = p.shape.num_elements();
       return n < 4096 ? adam_bytes(p, moment) : 2 * n + 8 * ((n + 255) / 256);
     }},
    {"adafactor", false, [](const Parameter& p, int64_t) { return factored_bytes(p); }},
    {"adafactor", true,
     [](const Parameter& p, int64_t moment) { return all_of(p, moment) + factored_bytes(p); }},
    {"muon", false,
     [](const Parameter& p, int64_t moment) {
       return is_matrix(p) && p.block != ir::kNoBlock ? all_of(p, moment) : adam_bytes(p, moment);
     }},
};

/// Matrices on both sides of 4,096 elements, of sizes that fill no block; stored as the optimizer wants them.
std::unique_ptr<models::Model> odd_llama(const char* optimizer) {
  const auto config = io::parse_config_json(
      R"({"model_type": "llama", "vocab_size": 211, "hidden_size": 44, "intermediate_size": 77,
          "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 22,
          "rms_norm_eps": 1e-5, "max_position_embeddings": 64, "tie_word_embeddings": false})",
      "config.json");
  EXPECT_TRUE(config.ok());
  auto model = models::make_model(*config);
  EXPECT_TRUE(model.ok());
  models::Selection selection;
  if (const auto lie_together = optimizers::find_optimizer(optimizer)->lie_together)
    selection.lie_together = lie_together;
  EXPECT_TRUE(models::select(**model, selection).ok());
  return std::move(*model);
}

int64_t planned_bytes(const Row& row, ir::DType moments) {
  static const std::unique_ptr<tasks::Task> task = tasks::make_causal_lm(/*documents=*/false);
  const cpu::CpuTarget target(1);
  StepOptions o;
  o.task = task.get();
  o.micro_batch_size = 1;
  o.sequence_length = 8;
  o.optimizer.name = row.optimizer;
  o.optimizer.momentum = row.momentum;
  o.optimizer.state.moments = moments;
  const auto programs = build_training_programs(*odd_llama(row.optimizer), o, target);
  EXPECT_TRUE(programs.ok()) << row.optimizer;
  if (!programs) return -1;
  return programs->session.class_bytes(ir::StateClass::kOptimizerState);
}

TEST(OptimizerStates, AreAsLargeAsTheTheorySays) {
  for (const Row& row : kRows)
    for (const ir::DType moments : {ir::DType::kF32, ir::DType::kBf16}) {
      const auto model = odd_llama(row.optimizer);
      int64_t expected = 0;
      for (const Parameter& p : model->parameters())
        expected += row.bytes(p, moments == ir::DType::kF32 ? 4 : 2);
      EXPECT_EQ(planned_bytes(row, moments), expected)
          << row.optimizer << (row.momentum ? " with momentum" : "") << ", " << ir::name(moments);
    }
}

/// gate and up have 3,388 elements each: side by side they would be one matrix of codes.
TEST(OptimizerStates, SmallTensorsHaveNoCodesWhateverLiesBesideThem) {
  const auto model = odd_llama("adamw_8bit");
  for (const Parameter& p : model->parameters())
    for (const models::ParameterView& view : p.views)
      EXPECT_EQ(p.shape.num_elements() < 4096, view.shape.num_elements() < 4096) << view.name;
}

TEST(OptimizerStates, EveryOptimizerHasARow) {
  for (const std::string_view name : optimizers::optimizer_names())
    EXPECT_TRUE(std::any_of(std::begin(kRows), std::end(kRows), [&](const Row& r) {
      return r.optimizer == name;
    })) << name;
}

}  // namespace
}  // namespace plimsoll::planner
