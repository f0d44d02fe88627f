// Devices that are not there, sizes without a unit.
#include "settings/run_config_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "settings/run_config.h"

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

Result<RunConfig> read_with(const std::vector<std::string>& overrides) {
  return parse_run_config("{model: {preset: gpt2}, data: {train: a.npy}}", "run.yaml", overrides);
}

TEST(CheckDevice, SaysWhatIsThereInstead) {
  const std::pair<const char*, const char*> rows[] = {{"cuda:0,1", "a run has one card"},
                                                      {"gpu", "runtime.device=cuda"},
                                                      {"mps", "backends for CPUs and NVIDIA cards"},
                                                      {"rocm", "backends for CPUs and NVIDIA cards"},
                                                      {"quantum", "runtime.device=cpu"}};
  for (const auto& [device, hint] : rows) {
    const auto run = read_with({std::string("runtime.device='") + device + "'"});
    ASSERT_FALSE(run) << device;
    EXPECT_THAT(run.error().hint, HasSubstr(hint)) << device;
  }
}

TEST(CheckBudgets, AsksForTheUnit) {
  const auto small = read_with({"memory.budget=6"});
  ASSERT_TRUE(small);
  EXPECT_EQ(small->memory.budget.bytes, 6) << "sizes without a unit are bytes";
  EXPECT_THAT(small->notes, testing::ElementsAre(HasSubstr("did you mean 6GiB?")));
  EXPECT_TRUE(read_with({"memory.budget=6GiB"})->notes.empty());
  EXPECT_TRUE(read_with({"memory.budget=6000000000"})->notes.empty());
}

TEST(CheckDump, OperandsOfBucketsHaveSeveralShapes) {
  const std::vector<std::string> buckets = {"data.packing=pad", "data.buckets=2", "debug.dump_dir=dump"};
  const auto with = [&](const char* kinds) {
    std::vector<std::string> overrides = buckets;
    overrides.push_back(std::string("debug.dump=") + kinds);
    return read_with(overrides);
  };
  EXPECT_TRUE(with("[loss, gradients, logits]"));
  for (const char* kinds : {"[quantized]", "[operands]"}) {
    const auto run = with(kinds);
    ASSERT_FALSE(run) << kinds;
    EXPECT_EQ(run.error().hint, "set data.buckets=null");
  }
}

TEST(WrongValues, AreMeantWithoutQuotes) {
  const auto quoted = read_with({"training.learning_rate='3e-4'"});
  ASSERT_FALSE(quoted);
  EXPECT_EQ(quoted.error().hint, "write it without quotes: training.learning_rate: 3e-4");
  EXPECT_THAT(read_with({"training.max_steps=\"12\""}).error().hint, HasSubstr("without quotes"));
  EXPECT_THAT(read_with({"data.shuffle='true'"}).error().hint, HasSubstr("without quotes"));
  EXPECT_THAT(read_with({"training.learning_rate=much"}).error().hint, testing::Not(HasSubstr("quotes")));
}

}  // namespace
}  // namespace plimsoll::settings
