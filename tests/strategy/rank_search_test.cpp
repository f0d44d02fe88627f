// What ranks hide behind computation and keep gathered, and where.
#include "strategy/rank_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/report/report_parts.h"
#include "settings/settings.h"
#include "strategy/plan_rates.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

constexpr const char* kPlannedRun =
    "model: {config: {model_type: llama, vocab_size: 4096, hidden_size: 256, intermediate_size: 512, "
    "num_hidden_layers: 8, num_attention_heads: 4, num_key_value_heads: 4, max_position_embeddings: 256, "
    "tie_word_embeddings: false}}\n"
    "data: {sequence_length: 256}\n"
    "training: {global_batch_size: 4, max_steps: 2}\n"
    "distributed: {ranks: 4}\n"
    "runtime: {threads: 1}\n";
constexpr const char* kPlannedNetwork = "distributed.topology={intra: 200MB/s, latency: 10us}";

class RanksPlanned : public testing::Test {
 protected:
  Prepared prepared(const std::string& mode, std::vector<std::string> more,
                    PlanRequest request = PlanRequest::kReport) {
    more.push_back(rates_.setting());
    more.push_back("distributed.mode=" + mode);
    const auto config = settings::parse_run_config(kPlannedRun, "run.yaml", more);
    EXPECT_TRUE(config);
    auto prepared = prepare_before_data(*config, *make_target(*config, 1), {.request = request});
    EXPECT_TRUE(prepared);
    return std::move(*prepared);
  }
  bool has_program(const std::string& mode, std::vector<std::string> more, passes::ProgramRole role) {
    more.emplace_back("memory.budget=4GiB");
    return prepared(mode, std::move(more), PlanRequest::kPrograms).programs.session.find_program({role}) >= 0;
  }
  /// Whether each step gathers what the one before has updated.
  bool gathers_late(const std::string& mode, std::vector<std::string> more) {
    return has_program(mode, std::move(more), passes::ProgramRole::kGather);
  }
  const RatesFile rates_{planner::generic_cpu("avx2")};
};

class OverlappedRanks : public RanksPlanned, public testing::WithParamInterface<const char*> {
 protected:
  planner::PlanReport plan(std::vector<std::string> more) {
    const planner::PlanReport report = prepared(GetParam(), std::move(more)).report;
    EXPECT_TRUE(report.fits);
    return report;
  }
};

TEST_P(OverlappedRanks, HideWhatANetworkMoves) {
  const planner::PlanReport report = plan({"memory.budget=4GiB", kPlannedNetwork});
  const double exposed = planner::exposed_seconds(report), hidden = planner::hidden_seconds(report);
  EXPECT_GT(hidden, 0.1 * (exposed + hidden));
  EXPECT_GT(exposed, 0) << "the last gradient has nothing to hide behind";
  EXPECT_NE(planner::network_line(report).find(" s overlapped"), std::string::npos);
}

TEST_P(OverlappedRanks, HideNothingWhereTheProcessorMovesTheBytesItself) {
  const planner::PlanReport report = plan({"memory.budget=4GiB"});
  EXPECT_LT(planner::hidden_seconds(report), 0.01 * planner::exposed_seconds(report));
  EXPECT_EQ(planner::network_line(report).find(" s overlapped"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Modes, OverlappedRanks, testing::Values("ddp", "zero1", "zero2", "zero3"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_F(RanksPlanned, GatherBehindTheNextForwardWhatTheyUpdate) {
  for (const char* mode : {"zero1", "zero2"}) {
    EXPECT_TRUE(gathers_late(mode, {kPlannedNetwork})) << mode;
    EXPECT_FALSE(gathers_late(mode, {})) << mode << ": nothing is hidden";
    EXPECT_FALSE(gathers_late(mode, {kPlannedNetwork, "training.ema_decay=0.9"}))
        << mode << ": averages read it";
  }
  EXPECT_FALSE(gathers_late("ddp", {kPlannedNetwork})) << "nothing is shared";
  EXPECT_FALSE(gathers_late("zero3", {kPlannedNetwork})) << "nothing is whole";
}

/// Of several micro-batches the last one's backward hides what ranks sum, and moves as many bytes.
TEST_F(RanksPlanned, SumInTheLastMicroBatchWhereThatHidesIt) {
  const std::vector<std::string> split = {"training.micro_batch_size=1", "training.global_batch_size=16",
                                          "memory.budget=4GiB"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), split.begin(), split.end());
    return more;
  };
  for (const char* mode : {"ddp", "zero1"}) {
    EXPECT_TRUE(has_program(mode, with({kPlannedNetwork}), passes::ProgramRole::kMicroLast)) << mode;
    EXPECT_FALSE(has_program(mode, with({}), passes::ProgramRole::kMicroLast))
        << mode << ": nothing is hidden";
    EXPECT_FALSE(has_program(mode, with({kPlannedNetwork, "memory.offload={optimizer: disk}"}),
                             passes::ProgramRole::kMicroLast))
        << mode << ": what is copied elsewhere is summed behind";
    const planner::PlanReport hides = prepared(mode, with({kPlannedNetwork})).report,
                              waits = prepared(mode, with({})).report;
    EXPECT_NEAR(hides.network_bytes, waits.network_bytes, 1) << mode;
    const double hidden = planner::hidden_seconds(hides), exposed = planner::exposed_seconds(hides);
    EXPECT_GT(hidden, 0.25 * (hidden + exposed)) << mode;
  }
  for (const char* mode : {"zero2", "zero3"})
    EXPECT_FALSE(has_program(mode, with({kPlannedNetwork}), passes::ProgramRole::kMicroLast))
        << mode << ": each micro-batch sums";
  EXPECT_FALSE(has_program("ddp", {kPlannedNetwork}, passes::ProgramRole::kMicroLast)) << "one is a step";
}

/// The gather of the first of several micro-batches is once a step.
TEST_F(RanksPlanned, CountWhatTheyGatherLateOnce) {
  const auto bytes = [&](std::vector<std::string> more) {
    more.emplace_back("memory.budget=4GiB");
    more.emplace_back("training.micro_batch_size=1");
    more.emplace_back("training.global_batch_size=16");
    return prepared("zero1", std::move(more)).report.network_bytes;
  };
  EXPECT_NEAR(bytes({kPlannedNetwork}), bytes({}), 1);
}

/// Gathered parameters take the memory that is left, and layers that are recomputed give way where that saves
/// more.
TEST_F(RanksPlanned, KeepParametersGatheredFromForwardToBackward) {
  const auto plan = [&](const std::string& budget) {
    return prepared("zero3", {"memory.budget=" + budget}).report;
  };
  const planner::PlanReport ample = plan("4GiB");
  EXPECT_EQ(ample.gathered_layers, 8);
  double seconds = ample.seconds_estimated;
  int between = 0;
  bool is_none = false;
  for (int64_t mib = ample.process_peak_bytes() >> 20; mib > 0; mib -= 2) {
    const planner::PlanReport report = plan(std::to_string(mib) + "MiB");
    if (!report.fits) break;
    EXPECT_GE(report.seconds_estimated, 0.999 * seconds) << mib << " MiB: less memory is not faster";
    seconds = report.seconds_estimated;
    between += report.gathered_layers > 0 && report.gathered_layers < 8 ? 1 : 0;
    is_none = is_none || report.gathered_layers == 0;
  }
  EXPECT_GT(between, 0);
  EXPECT_TRUE(is_none);
  EXPECT_GT(seconds, ample.seconds_estimated);
}

}  // namespace
}  // namespace plimsoll::strategy
