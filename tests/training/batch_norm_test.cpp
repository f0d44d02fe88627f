// BatchNorm through whole runs: running statistics follow the micro-batches once each, whatever is
// recomputed, dumped or resumed; the size of the micro-batch is part of the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "io/safetensors_reader.h"
#include "picture_run.h"
#include "planner/report/report.h"
#include "training/run_loop.h"

namespace plimsoll::training {
namespace {

using testing::HasSubstr;

constexpr double kMomentum = 0.1;
constexpr const char *kMean = "norm.running_mean", *kVariance = "norm.running_var";

struct Running {
  std::vector<double> mean = std::vector<double>(kChannels, 0), variance = std::vector<double>(kChannels, 1);
};

class BatchNormRun : public PictureRun {
 protected:
  BatchNormRun() { has_norm_ = true; }

  /// The running values after one more micro-batch, in double precision, as torch.nn.BatchNorm2d has them.
  void follow(Running& running, int64_t first, int64_t count) const {
    const auto rows = static_cast<double>(count * kPixels / kChannels);
    for (int64_t c = 0; c < kChannels; ++c) {
      double sum = 0, squares = 0;
      for (int64_t i = first; i < first + count; ++i)
        for (int64_t p = c; p < kPixels; p += kChannels)
          sum += static_cast<uint8_t>(records_[static_cast<size_t>(i * kRecord + p)]);
      for (int64_t i = first; i < first + count; ++i)
        for (int64_t p = c; p < kPixels; p += kChannels)
          squares +=
              std::pow(static_cast<uint8_t>(records_[static_cast<size_t>(i * kRecord + p)]) - sum / rows, 2);
      const auto at = static_cast<size_t>(c);
      running.mean[at] += kMomentum * (sum / rows - running.mean[at]);
      running.variance[at] += kMomentum * (squares / (rows - 1) - running.variance[at]);
    }
  }
  static void expect_running(Trainer& trainer, const Running& expected) {
    const auto mean = session_testing::read_state<float>(trainer.session(), kMean);
    const auto variance = session_testing::read_state<float>(trainer.session(), kVariance);
    for (size_t c = 0; c < kChannels; ++c) {
      EXPECT_NEAR(mean[c], expected.mean[c], 1e-6);
      EXPECT_NEAR(variance[c], expected.variance[c], 1e-6);
    }
  }
  /// Everything that the session keeps: weights and running statistics.
  static std::vector<float> state_of(Trainer& trainer) {
    std::vector<float> all;
    for (const char* name : {kWeight, "norm.weight", "norm.bias", kMean, kVariance}) {
      const auto values = session_testing::read_state<float>(trainer.session(), name);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  int devices_ = 0;
  std::vector<float> state_after(const std::vector<std::string>& overrides, int64_t steps) {
    const auto run = trainer(config(overrides));
    if (run == nullptr) return {};
    for (int64_t step = 0; step < steps; ++step) {
      const auto event = run->step();
      EXPECT_TRUE(event) << (event ? "" : event.error().message());
    }
    return state_of(*run);
  }
};

TEST_F(BatchNormRun, RunningValuesFollowEachMicroBatchOnce) {
  for (const char* recompute : {"none", "full"})
    for (const int64_t micro : {6, 3}) {
      SCOPED_TRACE(testing::Message() << recompute << " " << micro);
      const auto run = trainer(config({"training.micro_batch_size=" + std::to_string(micro),
                                       std::string("memory.recompute=") + recompute,
                                       "output.dir=" + folder_.path(recompute + std::to_string(micro))}));
      ASSERT_NE(run, nullptr);
      Running expected;
      for (int64_t step = 0; step < 10; ++step) {
        ASSERT_TRUE(run->step());
        for (int64_t at = 0; at < kBatch; at += micro)
          follow(expected, step * kBatch % kExamples + at, micro);
      }
      expect_running(*run, expected);
    }
}

TEST_F(BatchNormRun, BitsDoNotDependOnHowAStepRuns) {
  const auto folder = [&](const char* name) { return "output.dir=" + folder_.path(name); };
  const std::vector<float> plain = state_after({folder("a"), "training.micro_batch_size=6"}, 6);
  const auto expect_same = [&](const std::vector<std::string>& overrides) {
    const std::vector<float> other = state_after(overrides, 6);
    ASSERT_EQ(other.size(), plain.size());
    EXPECT_EQ(std::memcmp(other.data(), plain.data(), plain.size() * sizeof(float)), 0) << overrides.back();
  };
  expect_same({folder("b"), "training.micro_batch_size=6", "memory.recompute=full"});
  expect_same({folder("c"), "training.micro_batch_size=6", "debug.verify_steps=1"});
  expect_same({folder("d"), "training.micro_batch_size=6", "memory.optimizer_in_backward=true",
               "memory.second_backward=true"});
  expect_same({folder("e"), "training.micro_batch_size=6", "debug.poison=true"});
  expect_same({folder("f"), "training.micro_batch_size=auto", "memory.budget=8GiB"});
}

TEST_F(BatchNormRun, BitsDoNotDependOnTheDevice) {
  const std::vector<float> plain = state_after({"output.dir=" + folder_.path("cpu")}, 6);
  const auto expect_same = [&](const devices::DeviceSpec& spec, std::vector<std::string> overrides) {
    auto device = devices::make_device(spec);
    ASSERT_TRUE(device) << device.error().message();
    device_ = std::move(*device);
    overrides.push_back("output.dir=" + folder_.path("device" + std::to_string(++devices_)));
    const std::vector<float> other = state_after(overrides, 6);
    ASSERT_EQ(other.size(), plain.size());
    EXPECT_EQ(std::memcmp(other.data(), plain.data(), plain.size() * sizeof(float)), 0) << overrides.front();
  };
  expect_same({.num_threads = 1}, {"runtime.threads=1"});
  expect_same({.num_threads = 7}, {"runtime.threads=7"});
  const devices::DeviceSpec discrete{.kind = devices::DeviceKind::kDiscrete,
                                     .num_threads = 2,
                                     .discrete = {.memory = Bytes(1 << 24), .seed = 3}};
  expect_same(discrete, {"runtime.device=discrete"});
  expect_same(discrete, {"memory.offload={optimizer: host, parameters: host, activations: host}",
                         "runtime.device=discrete"});
}

TEST_F(BatchNormRun, TheWholeBatchIsComputedAtOnceWhereNothingElseIsAskedFor) {
  const auto prepared = prepare(config({"training.micro_batch_size=auto", "memory.budget=1MiB"}));
  ASSERT_TRUE(prepared) << prepared.error().message();
  EXPECT_EQ(prepared->split.micro_batch_size, kBatch) << "a small budget is no reason to split it";
  EXPECT_FALSE(prepared->report.fits);
  const std::string table = planner::plan_table(prepared->report);
  EXPECT_THAT(table, HasSubstr("1 layer takes statistics of the micro-batch. Its size, 6, changes"));
  EXPECT_THAT(table, HasSubstr("model.norm_statistics=frozen"));
  EXPECT_THAT(io::to_json(planner::plan_event(prepared->report)),
              HasSubstr("\"norm_statistics\": {\"batch\": 1, \"frozen\": 0}"));
  EXPECT_GT(prepared->programs.session.class_bytes(ir::StateClass::kBuffer), 0);
}

TEST_F(BatchNormRun, FrozenStatisticsStayAndTheBatchMayBeSplit) {
  const std::vector<std::string> frozen = {"training.freeze=[norm.*]", "output.dir=" + folder_.path("g")};
  const auto run = trainer(config(frozen));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->prepared().report.frozen_norms, 1);
  for (int64_t step = 0; step < 3; ++step) ASSERT_TRUE(run->step());
  expect_running(*run, {});
  std::vector<float> weights = session_testing::read_state<float>(run->session(), kWeight);
  const auto whole = trainer(
      config({"training.freeze=[norm.*]", "training.micro_batch_size=6", "output.dir=" + folder_.path("h")}));
  ASSERT_NE(whole, nullptr);
  for (int64_t step = 0; step < 3; ++step) ASSERT_TRUE(whole->step());
  EXPECT_EQ(weights, session_testing::read_state<float>(whole->session(), kWeight));
}

TEST_F(BatchNormRun, GoesOnFromACheckpointWithTheSameMicroBatchAlone) {
  const std::string dir = "output.dir=" + folder_.path("resumed");
  {
    const auto run = trainer(config({dir}));
    ASSERT_NE(run, nullptr);
    for (int64_t step = 0; step < 4; ++step) ASSERT_TRUE(run->step());
    ASSERT_TRUE(run->start_checkpoint());
    ASSERT_TRUE(run->next_saved(/*wait=*/true));
  }
  const auto file = io::SafetensorsFile::open(folder_.path("resumed/checkpoint-4/model.safetensors"));
  ASSERT_TRUE(file) << file.error().message();
  const io::SafetensorsTensor* count = file->find("norm.num_batches_tracked");
  ASSERT_NE(count, nullptr);
  EXPECT_EQ(count->dtype, "I64");
  EXPECT_TRUE(count->shape.empty());
  int64_t value = 0;
  ASSERT_TRUE(file->read(*count, 0, {reinterpret_cast<std::byte*>(&value), sizeof value}));
  EXPECT_EQ(value, 8) << "two micro-batches a step";
  auto run = trainer(config({dir, "debug.dump_dir=" + folder_.path("dumps"), "debug.dump=[buffers]"}));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->steps_done(), 4);
  for (int64_t step = 4; step < 6; ++step) ASSERT_TRUE(run->step());
  EXPECT_EQ(state_of(*run), state_after({"output.dir=" + folder_.path("never")}, 6));
  ASSERT_TRUE(run->save_final());
  const auto dump = io::SafetensorsFile::open(folder_.path("dumps/step-000006.safetensors"));
  ASSERT_TRUE(dump) << dump.error().message();
  const io::SafetensorsTensor* mean = dump->find("buffer.norm.running_mean");
  ASSERT_NE(mean, nullptr);
  std::vector<float> dumped(kChannels);
  ASSERT_TRUE(dump->read(*mean, 0, std::as_writable_bytes(std::span(dumped))));
  EXPECT_EQ(dumped, session_testing::read_state<float>(run->session(), kMean));
  run.reset();  // it holds the folder
  const settings::RunConfig other = config({dir, "training.micro_batch_size=2"});
  auto prepared = prepare(other);
  ASSERT_TRUE(prepared);
  const auto refused = Trainer::create(
      other, std::move(*prepared), *device_,
      {.data = *preprocessing::unprepared_data(other, true), .model_files = checkpoints::ModelFileSet{}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message(), HasSubstr("training.micro_batch_size is 2, but the"));
}

}  // namespace
}  // namespace plimsoll::training
