// What several ranks allow beside them, and the share of one of them.
#include "settings/distributed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

constexpr const char* kRunOfRanks =
    "model: {preset: smollm-135m}\n"
    "data: {train: a.txt, sequence_length: 64}\n"
    "training: {max_steps: 1}\n";

Result<RunConfig> parse_ranks(const std::vector<std::string>& overrides) {
  return parse_run_config(kRunOfRanks, "run.yaml", overrides);
}

std::string refusal_of_ranks(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), "distributed.ranks=2");
  const auto config = parse_ranks(overrides);
  EXPECT_FALSE(config) << overrides.back();
  return config ? "" : config.error().what;
}

TEST(Distributed, WhatRanksCannotHaveIsRefused) {
  EXPECT_TRUE(parse_ranks({"distributed.ranks=2", "distributed.rank=1"}));
  EXPECT_THAT(refusal_of_ranks({"distributed.rank=2"}), HasSubstr("distributed.rank is 2, of 2 ranks"));
  EXPECT_THAT(refusal_of_ranks({"debug.dump_dir=dump"}), HasSubstr("debug.dump_dir"));
  EXPECT_THAT(refusal_of_ranks({"memory.optimizer_in_backward=true", "training.max_grad_norm=0"}),
              HasSubstr("the ranks add their gradients first"));
  EXPECT_THAT(refusal_of_ranks({"distributed.mode=zero2", "training.state.accumulators=bf16"}),
              HasSubstr("training.state.accumulators is bf16"));
  EXPECT_TRUE(parse_ranks({"distributed.ranks=2", "training.state.accumulators=bf16"}));
  for (const char* recipe : {"delayed", "current", "block", "mxfp8", "nvfp4"})
    EXPECT_TRUE(parse_ranks(
        {"distributed.ranks=2", "training.precision=fp8", std::string("training.fp8.recipe=") + recipe}));
  EXPECT_THAT(refusal_of_ranks({"training.global_batch_size=auto"}), HasSubstr("global_batch_size is auto"));
  EXPECT_TRUE(parse_ranks({"debug.dump_dir=dump", "distributed.ranks=1"})) << "one rank may have all";
}

TEST(Distributed, ANetworkIsDescribedByItsLinks) {
  const auto config =
      parse_ranks({"distributed.ranks=16",
                   "distributed.topology={per_node: 8, intra: 450GB/s, inter: 50GB/s, latency: 2.5us}"});
  ASSERT_TRUE(config) << config.error().what;
  const TopologySettings& topology = config->distributed.topology;
  EXPECT_EQ(topology.per_node, 8);
  EXPECT_EQ(topology.intra.bytes_per_second, 450e9);
  EXPECT_EQ(topology.inter.bytes_per_second, 50e9);
  EXPECT_DOUBLE_EQ(topology.latency.seconds, 2.5e-6);
  EXPECT_THAT(run_config_yaml(*config), HasSubstr("latency: 2.5us"));
  const auto lacking = parse_ranks({"distributed.ranks=16", "distributed.topology.per_node=8"});
  ASSERT_FALSE(lacking);
  EXPECT_THAT(lacking.error().what, HasSubstr("nothing says how fast the machines are connected"));
  EXPECT_TRUE(parse_ranks({"distributed.ranks=8", "distributed.topology.per_node=8"}));
  for (const char* wrong : {"5", "-1us", "2s", "us", "nanus", "[5us]", "5 us"})
    EXPECT_FALSE(parse_ranks({std::string("distributed.topology.latency=") + wrong})) << wrong;
}

TEST(Distributed, EachIsRefusedOnce) {
  for (const char* setting : {"debug.dump_dir=dump", "training.global_batch_size=auto"}) {
    auto config = parse_ranks({setting});
    ASSERT_TRUE(config) << config.error().what;
    config->distributed.ranks = 2;
    EXPECT_EQ(check_distributed(*config).size(), 1U) << setting;
  }
}

TEST(Distributed, ASharedUpdateMayHaveAll) {
  EXPECT_TRUE(parse_ranks({"distributed.ranks=2", "distributed.mode=zero1", "training.precision=bf16",
                           "training.state={weights: bf16, master_weights: true}",
                           "training.load_best_model_at_end=true", "data.eval=b.npy", "training.eval_steps=2",
                           "output.save_steps=2"}));
  for (const char* mode : {"distributed.mode=zero2", "distributed.mode=zero3"})
    EXPECT_TRUE(parse_ranks({"distributed.ranks=2", mode, "memory.offload={optimizer: disk}"})) << mode;
  const auto shared =
      parse_ranks({"distributed.ranks=2", "distributed.mode=zero1", "training.ema_decay=0.9"});
  ASSERT_TRUE(shared) << shared.error().message();
  EXPECT_EQ(updating_ranks(shared->distributed), 2);
  EXPECT_EQ(updating_ranks(parse_ranks({"distributed.ranks=2"})->distributed), 1);
}

TEST(Distributed, TheProductOfASplitCountsRanks) {
  EXPECT_TRUE(parse_ranks({"distributed.ranks=3", "training.micro_batch_size=2",
                           "training.gradient_accumulation_steps=4", "training.global_batch_size=24"}));
  EXPECT_THAT(refusal_of_ranks({"training.micro_batch_size=2", "training.gradient_accumulation_steps=4",
                                "training.global_batch_size=8"}),
              HasSubstr("times 2 ranks is not training.global_batch_size (8)"));
  const auto product = parse_ranks(
      {"distributed.ranks=3", "training.micro_batch_size=2", "training.gradient_accumulation_steps=4"});
  ASSERT_TRUE(product);
  EXPECT_EQ(product->training.global_batch_size, 24);
}

TEST(Distributed, ARanksShareIsRoundedUpToItsSplit) {
  TrainingSettings training;
  training.global_batch_size = 7;
  EXPECT_EQ(training_of_rank(training, 1).global_batch_size, 7);
  EXPECT_EQ(training_of_rank(training, 2).global_batch_size, 4);
  EXPECT_EQ(training_of_rank(training, 9).global_batch_size, 1);
  training.micro_batch_size = 3;
  EXPECT_EQ(training_of_rank(training, 2).global_batch_size, 6);
  const auto split = fixed_batch_split(training_of_rank(training, 2));
  ASSERT_TRUE(split);
  EXPECT_EQ(*split, (BatchSplit{3, 2}));
}

}  // namespace
}  // namespace plimsoll::settings
