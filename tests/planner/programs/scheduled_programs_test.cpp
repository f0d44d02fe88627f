// Estimates without graphs, against the same programs written and bound.
#include "planner/programs/scheduled_programs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "backends/discrete/discrete_target.h"
#include "memory/random.h"
#include "models/lora.h"
#include "models/model.h"
#include "models/quantize.h"
#include "models/selection.h"
#include "planner/cost/known_profiles.h"
#include "planner/programs/step_programs.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;
using passes::OffloadClass;

std::unique_ptr<models::Model> small_llama(bool adapters, bool quantized) {
  const auto config = io::parse_config_json(
      R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 192, "num_attention_heads": 2,
          "num_key_value_heads": 1, "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
          "tie_word_embeddings": false, "num_hidden_layers": 6, "vocab_size": 4001})",
      "config.json");
  EXPECT_TRUE(config.ok());
  auto model = models::make_model(*config);
  EXPECT_TRUE(model.ok());
  if (adapters) {
    EXPECT_TRUE(models::add_adapters(**model, {.r = 4}, "llama").ok());
    EXPECT_TRUE(models::select(**model, {}).ok());
  }
  if (quantized) {
    EXPECT_TRUE(models::quantize(**model, {ir::DType::kNf4Double}).ok());
  }
  return std::move(*model);
}

passes::OffloadOptions some_offload(memory::Random& random) {
  const auto upto = [&](int64_t n) {
    return static_cast<int64_t>(random.next() * static_cast<double>(n + 1));
  };
  passes::OffloadOptions offload;
  constexpr MemorySpace kSpaces[] = {MemorySpace::kDevice, MemorySpace::kHostPinned, MemorySpace::kDisk};
  offload.num_blocks = 6;
  for (size_t c = 0; c < passes::kNumOffloadClasses; ++c) {
    offload.spaces[c] = kSpaces[upto(2)];
    offload.blocks[c] = upto(1) == 0 ? passes::kAllBlocks : static_cast<int32_t>(1 + upto(5));
  }
  // Something of the updates is elsewhere in any case: all of these sketches stream them.
  MemorySpace& optimizer = offload.spaces[static_cast<size_t>(OffloadClass::kOptimizer)];
  if (optimizer == MemorySpace::kDevice) optimizer = MemorySpace::kHostPinned;
  offload.slack_part = (upto(2) - 1) * 8;
  offload.window_elements = 1 << (12 + upto(4));
  offload.updates_on_host = upto(1) == 1;
  return offload;
}

struct Case {
  bool adapters = false, quantized = false, accumulate = false, masters = false, in_backward = false,
       recompute = false;
};

class ScheduledProgramsTest : public testing::TestWithParam<Case> {};

/// Bytes of each space to the byte, seconds to what adding in another order leaves.
TEST_P(ScheduledProgramsTest, SayWhatThePlanHolds) {
  const Case& c = GetParam();
  const auto model = small_llama(c.adapters, c.quantized);
  const auto task = tasks::make_causal_lm(/*documents=*/false);
  const discrete::DiscreteTarget target(2, Bytes(0));
  MachineProfile profile = generic_cpu(target.instruction_set());
  profile.copy_in_bandwidth = 3e8, profile.copy_out_bandwidth = 2e8;
  profile.disk_read_bandwidth = 1e8, profile.disk_write_bandwidth = 5e7;
  profile.copy_in_beside_kernels = 2e8, profile.disk_kernel_seconds = 0.25;
  const CostModel costs(profile, 2);
  StepOptions options;
  options.task = task.get();
  options.micro_batch_size = 2, options.sequence_length = 48;
  options.accumulate = c.accumulate;
  options.optimizer_in_backward = c.in_backward;
  if (c.in_backward) options.optimizer.max_grad_norm = {};
  if (c.recompute) options.pipeline.recompute = {passes::RecomputePolicy::Kind::kFull};
  if (c.masters) {
    model->keep_in(ir::DType::kBf16);
    options.pipeline.precision = ops::Precision::kBf16;
    options.optimizer.state.masters = true;
  }
  options.costs = &costs;
  std::optional<ScheduledPrograms> scheduled;
  memory::Random random(7);
  int moved = 0;
  for (int i = 0; i < 24; ++i) {
    options.pipeline.offload = i > 0 ? some_offload(random) : passes::OffloadOptions{};
    ProgramCache cache;
    const auto written = estimate_training_programs(*model, options, target, cache);
    if (i < 2) {  // with nothing offloaded, then with updates that are streamed
      auto made = ScheduledPrograms::create(*model, options, target, cache);
      ASSERT_TRUE(made.ok());
      scheduled.emplace(std::move(*made));
    }
    const auto outlined = scheduled->estimate(options.pipeline.offload);
    ASSERT_TRUE(written.ok() && outlined.ok()) << i << (written ? "" : written.error().message());
    int64_t ops = 0;
    for (size_t p = 0; p < written->session.programs.size(); ++p) {
      const passes::Program &a = written->session.programs[p], &b = outlined->session.programs[p];
      ops += static_cast<int64_t>(a.graph.order().size());
      moved += passes::bytes_moved(a.graph).in > 0 ? 1 : 0;
      ASSERT_EQ(a.graph.name, b.graph.name);
      for (size_t s = 0; s < ir::kNumSpaces; ++s) {
        const std::string where = fmt::format("{} {} {}", i, a.graph.name, name(static_cast<MemorySpace>(s)));
        EXPECT_EQ(a.plan.pools[s].lower_bound_bytes, b.plan.pools[s].lower_bound_bytes) << where;
        EXPECT_EQ(a.plan.pools[s].arena_bytes, b.plan.pools[s].arena_bytes) << where;
      }
    }
    for (size_t s = 0; s < ir::kNumSpaces; ++s)
      EXPECT_EQ(written->session.pools[s].total(), outlined->session.pools[s].total()) << i << " " << s;
    EXPECT_EQ(written->session.staging_bytes, outlined->session.staging_bytes) << i;
    EXPECT_NEAR(static_cast<double>(outlined->unwritten_ops), static_cast<double>(ops),
                (i == 0 ? 0 : 0.05) * static_cast<double>(ops))
        << i;
    const StepCost &a = written->cost, &b = outlined->cost;
    EXPECT_NEAR(a.seconds.total(), b.seconds.total(), 1e-9 * a.seconds.total()) << i;
    EXPECT_NEAR(a.update_seconds.total(), b.update_seconds.total(), 1e-9 * a.update_seconds.total()) << i;
    EXPECT_EQ(a.recompute_flops, b.recompute_flops) << i;
  }
  EXPECT_GT(moved, 15);
}

INSTANTIATE_TEST_SUITE_P(All, ScheduledProgramsTest,
                         testing::Values(Case{}, Case{.accumulate = true}, Case{.adapters = true},
                                         Case{.adapters = true, .quantized = true, .recompute = true},
                                         Case{.accumulate = true, .masters = true, .recompute = true},
                                         Case{.in_backward = true}, Case{.recompute = true}));

}  // namespace
}  // namespace plimsoll::planner
