#include "preprocessing/run_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::preprocessing {
namespace {

/// data.packing: auto: a side is packed where its own files say where documents end.
TEST(RunData, PackingIsChosenForEachSideApart) {
  settings::RunConfig config;
  config.data.train = {"a.txt"};
  config.data.eval.files = {"b.jsonl"};
  const auto mode = [&](bool eval) { return training_data_options(config, eval).pack.mode; };
  EXPECT_EQ(mode(false), datasets::PackMode::kStream);
  EXPECT_EQ(mode(true), datasets::PackMode::kBestFit);
  EXPECT_TRUE(packs_documents(config.data)) << "programs serve both sides";
  config.data.train = {"a.jsonl"};
  config.data.eval.files = {"b.txt"};
  EXPECT_EQ(mode(false), datasets::PackMode::kBestFit);
  EXPECT_EQ(mode(true), datasets::PackMode::kStream);
  config.data.packing = "pad";
  EXPECT_EQ(mode(true), datasets::PackMode::kPad) << "what is given holds for both";
  config.data = {};
  config.data.train = {"a.txt"};
  EXPECT_FALSE(packs_documents(config.data));
  config.data.eval_fraction = 0.1;
  EXPECT_EQ(mode(false), datasets::PackMode::kBestFit) << "documents are held out whole";
}

TEST(RunData, NamesTheDataThatIsNotThere) {
  const io::TemporaryFolder folder;
  settings::RunConfig config;
  config.data.train = {folder.write("a.jsonl", "{}"), folder.path() + "/gone.jsonl"};
  config.data.eval.files = {folder.path() + "/none-*.txt"};
  const auto lines = missing_data(config.data);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], testing::StartsWith("data.train: "));
  EXPECT_THAT(lines[0], testing::HasSubstr("gone.jsonl"));
  EXPECT_THAT(lines[1], testing::StartsWith("data.eval: "));
}

TEST(RunData, AFileThatIsNotThereIsAnErrorOfItsSetting) {
  const io::TemporaryFolder folder;
  settings::DataSettings data;
  data.train = {folder.write("a.jsonl", "{}")};
  EXPECT_TRUE(check_data_is_there(data, true).ok());
  data.eval.files = {"gone.jsonl"};
  const Status missing = check_data_is_there(data, true);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kBadData);
  EXPECT_EQ(missing.error().message(), "there is no such file: data.eval: gone.jsonl");
  EXPECT_THAT(missing.error().hint, testing::HasSubstr("begin at the working folder, /"));
  EXPECT_THAT(missing.error().hint, testing::HasSubstr("paths: run_file"));
  data.train = {folder.path() + "/gone.jsonl"};
  EXPECT_EQ(check_data_is_there(data, true).error().hint, "check the path");
  data.eval.files = {};
  EXPECT_TRUE(check_data_is_there(data, false).ok()) << "an evaluation reads no data.train";
}

}  // namespace
}  // namespace plimsoll::preprocessing
