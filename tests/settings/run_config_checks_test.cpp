// Devices that are not there, sizes without a unit, shares of masked tokens that are more than all.
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

TEST(CheckMasking, SharesOfTheMaskedTokensAreAtMostAll) {
  const auto defaults = read_with({"task=masked_lm"});
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->mlm.probability, 0.15);
  EXPECT_EQ(defaults->mlm.mask, 0.8);
  EXPECT_EQ(defaults->mlm.random, 0.1);
  EXPECT_FALSE(defaults->mlm.whole_word);
  EXPECT_EQ(defaults->mlm.mask_token, std::nullopt);
  for (const char* shares :
       {"mlm={mask: 1, random: 0}", "mlm={mask: 0, random: 1}", "mlm={mask: 0, random: 0}",
        "mlm={mask: 0.9, random: 0.1}", "mlm={mask: 0.7, random: 0.3}", "mlm={mask: 0.58, random: 0.42}"})
    EXPECT_TRUE(read_with({"task=masked_lm", shares})) << shares;
  const auto more = read_with({"task=masked_lm", "mlm.mask=0.8", "mlm.random=0.25"});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(more.error().message(), HasSubstr("mlm.mask and mlm.random are 1.05 together"));
  EXPECT_THAT(more.error().hint, HasSubstr("at most 1"));
  EXPECT_FALSE(read_with({"task=masked_lm", "mlm.mask=0.95"})) << "with the default of the other";
}

TEST(CheckMasking, ValuesBeyondTheirRangeAreNamed) {
  for (const char* wrong :
       {"mlm.probability=0", "mlm.probability=0.95", "mlm.mask=-0.1", "mlm.mask=1.5", "mlm.random=2",
        "mlm.mask_token=-1", "mlm.mask_token=1.5", "mlm.whole_word=maybe", "mlm.probability=null"}) {
    const auto run = read_with({"task=masked_lm", wrong});
    ASSERT_FALSE(run) << wrong;
    EXPECT_THAT(run.error().message(), HasSubstr(std::string(wrong).substr(0, std::string(wrong).find('='))));
  }
  EXPECT_EQ(read_with({"task=masked_lm", "mlm.mask_token=103"})->mlm.mask_token, 103);
  EXPECT_EQ(read_with({"task=masked_lm", "mlm.mask_token=auto"})->mlm.mask_token, std::nullopt);
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
