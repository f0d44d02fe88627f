// Ranks of a model with BatchNorm: each takes the statistics of its own micro-batches, and the running values
// are averaged over the ranks.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "image_run.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

constexpr const char* kResNet =
    "model:\n  config: {model_type: resnet, architectures: [ResNetForImageClassification], embedding_size: "
    "8, "
    "hidden_sizes: [8, 16], depths: [1, 1], layer_type: basic}\n"
    "data: {train: train, images: {size: 16}}\n"
    "training: {global_batch_size: 12, max_steps: 4, learning_rate: 0.01, lr_scheduler: constant, "
    "logging_steps: 1}\n"
    "runtime: {threads: 1}\noutput: {dir: out, save_steps: 2}\n";

class RanksOfBatchNorm : public testing::Test {
 protected:
  void SetUp() override {
    if (sanitized()) GTEST_SKIP() << "many processes";
    write_images(folder_, "train", 12);
    folder_.write("run.yaml", kResNet);
  }
  [[nodiscard]] Outcome train(int ranks, const std::string& more, const std::string& environment = "") const {
    const std::string command = "train run.yaml --json " + more;
    return folder_.run(ranks == 1 ? command : "launch --ranks " + std::to_string(ranks) + " -- " + command,
                       environment);
  }
  /// In a folder of its own.
  [[nodiscard]] Result trained(int ranks, const std::string& more = "",
                               const std::string& environment = "") const {
    for (const char* folder : {"out/final", "out/checkpoint-2", "out/checkpoint-4", "out"})
      std::filesystem::remove_all(folder_.path(folder));
    return result_of(folder_, train(ranks, more, environment));
  }
  Folder folder_;
};

/// The largest difference of tensors whose names end so, relative to their largest value.
double difference(const std::string& a, const std::string& b, const std::string& end) {
  const auto all = read_tensors(a), others = read_tensors(b);
  double most = 0;
  int compared = 0;
  for (const auto& [name, tensor] : all) {
    if (!name.ends_with(end)) continue;
    ++compared;
    double largest = 0, apart = 0;
    const std::vector<float> values = tensor.values(), other = others.at(name).values();
    for (size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(double{values[i]}));
      apart = std::max(apart, std::abs(double{values[i]} - double{other[i]}));
    }
    most = std::max(most, apart / largest);
  }
  EXPECT_GT(compared, 0) << end;
  return most;
}

/// One rank with as many micro-batches takes the same statistics; its running values follow them one after
/// the other.
TEST_F(RanksOfBatchNorm, LearnWhatOneRankLearnsOfTheSameMicroBatches) {
  for (const int ranks : {2, 3}) {
    const std::string micro = "training.micro_batch_size=" + std::to_string(12 / ranks);
    const Result alone = trained(1, micro + " training.max_steps=2");
    const Result several = trained(ranks, "training.max_steps=2");
    EXPECT_LT(difference(several.model, alone.model, "convolution.weight"), 1e-4) << ranks;
    EXPECT_GT(difference(several.model, alone.model, "running_var"), 1e-4) << "averaged, not in turn";
  }
}

/// As one rank with the whole batch.
TEST_F(RanksOfBatchNorm, LearnWhatOneRankLearnsOfTheWholeBatchWhereSynchronised) {
  const std::string synchronised = "model.norm_statistics=synchronised training.max_steps=2";
  const Result alone = trained(1, "training.max_steps=2");
  for (const int ranks : {2, 3}) {
    const Result several = trained(ranks, synchronised);
    for (const char* tensor : {"convolution.weight", "normalization.bias", "running_mean", "running_var"})
      EXPECT_LT(difference(several.model, alone.model, tensor), 1e-4) << ranks << tensor;
    const Result other = trained(ranks, synchronised + " memory.recompute=full runtime.threads=2");
    EXPECT_TRUE(other.model == several.model) << ranks;
  }
}

/// Of the same image over and over all micro-batches have the same statistics: their mean is what one rank
/// makes of one of them.
TEST_F(RanksOfBatchNorm, AverageTheRunningValues) {
  std::filesystem::remove_all(folder_.path("train"));
  for (const char* of : {"red", "blue"}) {
    std::filesystem::create_directories(folder_.path("train/" + std::string(of)));
    for (int i = 0; i < 12; ++i)
      std::ofstream(folder_.path("train/" + std::string(of) + "/" + std::to_string(i) + ".png"),
                    std::ios::binary)
          << corpora::png_of(16, 16, 200, 90, 30);
  }
  const Result one = trained(1, "training.global_batch_size=4 training.max_steps=1 output.save_steps=0");
  const Result three = trained(3, "training.max_steps=1 output.save_steps=0");
  for (const char* running : {"running_mean", "running_var"})
    EXPECT_LT(difference(three.model, one.model, running), 1e-5) << running;
}

TEST_F(RanksOfBatchNorm, HaveTheSameBitsHoweverTheRunIsCarriedOut) {
  for (const char* also : {"", "training.micro_batch_size=3 training.ema_decay=0.9",
                           "training.precision=bf16 model.norm_statistics=synchronised"}) {
    const std::string of(also);
    const Result expected = trained(2, of);
    EXPECT_FALSE(expected.model.empty());
    for (const char* how : {" memory.recompute=full runtime.threads=2", " distributed.mode=zero1",
                            " runtime.device=discrete runtime.discrete.seed=3"}) {
      const Result other = trained(2, of + how);
      EXPECT_TRUE(other.model == expected.model) << of << how;
      EXPECT_EQ(other.events, expected.events) << of << how;
    }
    (void)trained(2, of + " training.max_steps=2");
    std::filesystem::remove_all(folder_.path("out/final"));
    EXPECT_TRUE(result_of(folder_, train(2, of)).model == expected.model) << of << " resumed";
  }
}

/// On the simulated card.
TEST_F(RanksOfBatchNorm, LearnOnCardsWhatTheyLearnOnCpus) {
  const std::string card = "PLIMSOLL_CUDA_LIBRARIES=" PLIMSOLL_FAKE_CARD;
  for (const std::string statistics : {"batch", "synchronised"}) {
    const std::string of = "training.max_steps=2 model.norm_statistics=" + statistics;
    const Result cpus = trained(2, of), cards = trained(2, of + " runtime.device=cuda", card);
    for (const char* tensor : {"convolution.weight", "normalization.bias", "running_mean", "running_var"})
      EXPECT_LT(difference(cards.model, cpus.model, tensor), 1e-4) << statistics << tensor;
    for (const char* how : {"distributed.transport=nccl",
                            "distributed.mode=zero3 distributed.transport=nccl memory.recompute=full"})
      EXPECT_TRUE(trained(2, of + " runtime.device=cuda " + how, card).model == cards.model)
          << statistics << how;
  }
}

TEST_F(RanksOfBatchNorm, AShareOfWholeMicroBatchesIsNeeded) {
  const Outcome uneven = folder_.run("plan run.yaml training.global_batch_size=7 distributed.ranks=2");
  EXPECT_NE(uneven.exit_code, 0);
  EXPECT_THAT(uneven.err, HasSubstr("7, and 2 ranks compute 8: padding would count in the statistics"));
  const Outcome plan = folder_.run("plan run.yaml training.global_batch_size=8 distributed.ranks=2");
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("statistics of each rank's own micro-batch. Its size, 4,"));
}

TEST_F(RanksOfBatchNorm, GoOnWithTheSameMicroBatchAlone) {
  (void)trained(2, "training.max_steps=2");
  const Outcome other = train(3, "");
  EXPECT_NE(other.exit_code, 0);
  EXPECT_THAT(other.err, HasSubstr("training.micro_batch_size"));
  (void)trained(2, "training.max_steps=2 training.micro_batch_size=4 training.global_batch_size=24");
  const Outcome same = train(3, "training.micro_batch_size=4 training.global_batch_size=24");
  EXPECT_EQ(same.exit_code, 0) << same.err;
}

}  // namespace
}  // namespace plimsoll::e2e
