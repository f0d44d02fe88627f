// A small ResNet over steps: its bits do not depend on how a step runs, it goes on from checkpoints, and a
// frozen backbone takes the memory of an evaluation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "picture_run.h"

namespace plimsoll::training {
namespace {

constexpr int64_t kSteps = 5;
using State = std::map<std::string, std::vector<std::byte>>;

class ResNetRun : public PictureRun {
 protected:
  ResNetRun() {
    model_config_ = R"({"model_type": "resnet", "architectures": ["ResNetForImageClassification"],
      "num_channels": 3, "embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 2], "layer_type": "basic",
      "hidden_act": "relu", "downsample_in_first_stage": false, "num_labels": 4})";
  }
  [[nodiscard]] std::string folder(const std::string& name) const {
    return "output.dir=" + folder_.path(name);
  }
  /// Weights and running statistics.
  static State state_of(Trainer& trainer) {
    State state;
    const auto add = [&](const std::string& name) {
      std::vector<std::byte>& bytes = state[name];
      bytes.resize(static_cast<size_t>(trainer.session().type(name).bytes().count));
      EXPECT_TRUE(trainer.session().read(name, bytes));
    };
    for (const models::Parameter& p : trainer.prepared().model->parameters()) add(p.name);
    for (const models::Buffer& buffer : trainer.prepared().model->buffers())
      if (!buffer.is_count) add(buffer.name);
    return state;
  }
  State state_after(const std::vector<std::string>& overrides, int64_t steps = kSteps) {
    const auto run = trainer(config(overrides));
    if (run == nullptr) return {};
    for (int64_t step = 0; step < steps; ++step) {
      const auto event = run->step();
      EXPECT_TRUE(event) << (event ? "" : event.error().message());
    }
    return state_of(*run);
  }
  /// Names of what differs.
  static std::vector<std::string> differing(const State& a, const State& b) {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : a)
      if (!b.contains(name) || b.at(name) != bytes) names.push_back(name);
    return names;
  }
};

TEST_F(ResNetRun, BitsDoNotDependOnHowAStepRuns) {
  for (const char* precision : {"fp32", "bf16"}) {
    const std::string in = std::string("training.precision=") + precision;
    int count = 0;
    const auto run = [&](std::vector<std::string> overrides) {
      overrides.insert(overrides.begin(), {in, folder(precision + std::to_string(++count))});
      return state_after(overrides);
    };
    const State plain = run({});
    EXPECT_TRUE(differing(plain, run({"memory.recompute=full"})).empty()) << "recompute";
    EXPECT_TRUE(differing(plain, run({"debug.verify_steps=1"})).empty()) << "each op twice";
    EXPECT_TRUE(differing(plain, run({"debug.plan=separate", "debug.poison=true"})).empty()) << "the plan";
    for (const int threads : {1, 7}) {
      device_ = *devices::make_device({.num_threads = threads});
      EXPECT_TRUE(differing(plain, run({"runtime.threads=" + std::to_string(threads)})).empty()) << threads;
    }
    device_ = *devices::make_device({.kind = devices::DeviceKind::kDiscrete,
                                     .num_threads = 2,
                                     .discrete = {.memory = Bytes(1 << 26), .seed = 3}});
    const State offloaded =
        run({"runtime.device=discrete",
             "memory.offload={activations: host, optimizer: host, parameters: host, gradients: host}"});
    EXPECT_THAT(differing(plain, offloaded), testing::IsEmpty());
    device_ = *devices::make_device({.num_threads = 2});
  }
}

TEST_F(ResNetRun, GoesOnFromACheckpoint) {
  {
    const auto run = trainer(config({folder("a")}));
    ASSERT_NE(run, nullptr);
    for (int64_t step = 0; step < 2; ++step) ASSERT_TRUE(run->step());
    ASSERT_TRUE(run->start_checkpoint());
    ASSERT_TRUE(run->next_saved(/*wait=*/true));
  }
  const auto run = trainer(config({folder("a")}));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->steps_done(), 2);
  for (int64_t step = 2; step < kSteps; ++step) ASSERT_TRUE(run->step());
  EXPECT_THAT(differing(state_of(*run), state_after({folder("b")})), testing::IsEmpty());
}

/// The last stage has one pixel.
TEST_F(ResNetRun, OneValuePerChannelIsRefusedBeforeTheFirstStep) {
  const auto prepared = prepare(config({"training.micro_batch_size=1"}));
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(prepared.error().message(), testing::HasSubstr("more than 1 value per channel"));
  EXPECT_TRUE(prepare(config({"training.micro_batch_size=1", "training.freeze=['resnet.*']"})));
}

TEST_F(ResNetRun, AFrozenBackboneTakesTheMemoryOfAnEvaluation) {
  const std::vector<std::string> frozen = {"training.freeze=['resnet.*']", "training.micro_batch_size=6",
                                           folder("frozen")};
  const auto prepared = prepare(config(frozen));
  ASSERT_TRUE(prepared) << prepared.error().message();
  EXPECT_FALSE(prepared->model->couples_micro_batch());
  std::map<std::string, int64_t> arena;
  for (const planner::PhaseBytes& phase : prepared->report.phases) arena[phase.name] = phase.arena_bytes;
  EXPECT_LE(static_cast<double>(arena.at("step")), 1.1 * static_cast<double>(arena.at("eval")));
  const auto run = trainer(config(frozen));
  ASSERT_NE(run, nullptr);
  const State before = state_of(*run);
  for (int64_t step = 0; step < kSteps; ++step) ASSERT_TRUE(run->step());
  EXPECT_THAT(differing(before, state_of(*run)),
              testing::ElementsAre("classifier.1.bias", "classifier.1.weight"));
}

}  // namespace
}  // namespace plimsoll::training
