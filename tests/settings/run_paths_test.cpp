// Run files whose paths start from the file.
#include "settings/run_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "settings/settings.h"

namespace plimsoll::settings {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RunConfig with_paths() {
  RunConfig run;
  run.model.path = "org/name";  // of the hub: no such folder
  run.data.train = {"data/a.txt", "/absolute/b.txt", "../c/*.txt"};
  run.data.eval = {"held/out.txt"};
  run.output.dir = "runs/one";
  return run;
}

TEST(RunPaths, GoOutAndComeBack) {
  const RunConfig saved = with_paths_from(with_paths(), "runs/one");
  EXPECT_EQ(saved.paths, PathBase::kRunFile);
  EXPECT_EQ(saved.model.path, "org/name");
  EXPECT_EQ(saved.data.tokenizer, "auto");
  EXPECT_EQ(saved.output.dir, ".");
  EXPECT_EQ(saved.data.train.front(), "../../data/a.txt");
  EXPECT_EQ(saved.data.train.back(), "../../../c/*.txt");
  EXPECT_EQ(saved.data.eval.files.front(), "../../held/out.txt");

  RunConfig read = saved;
  resolve_paths(read, "runs/one");
  EXPECT_EQ(read.model.path, "org/name");
  EXPECT_EQ(read.data.train.front(), "data/a.txt");
  EXPECT_EQ(read.data.train.back(), "../c/*.txt");
}

TEST(RunPaths, AreWrittenForAFolderAndReadFromThere) {
  const std::string text = run_config_yaml(with_paths(), "runs/one");
  EXPECT_THAT(text, HasSubstr("paths: run_file"));
  const auto run = parse_run_config(text, "elsewhere/runs/one/run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_EQ(run->data.train.front(), "elsewhere/data/a.txt");
  EXPECT_EQ(run->paths, PathBase::kWorkingFolder);
}

TEST(RunPaths, OfAPlainRunFileStayAsTheyAre) {
  const auto run = parse_run_config("data: {train: ./a.txt}\nmodel: {path: ../m}\n", "folder/run.yaml");
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(run->data.train, ElementsAre("./a.txt"));
  EXPECT_EQ(run->model.path, "../m");
}

TEST(RunPaths, OfOverridesStartFromTheWorkingFolder) {
  const std::vector<std::string> overrides = {"data.train=./a.txt"};
  const auto run = parse_run_config("paths: run_file\nmodel: {path: ../m}\n", "folder/run.yaml", overrides);
  ASSERT_TRUE(run) << run.error().message();
  EXPECT_THAT(run->data.train, ElementsAre("./a.txt"));
  EXPECT_EQ(run->model.path, "m");
  const std::vector<std::string> late = {"paths=run_file"};
  EXPECT_FALSE(parse_run_config("model: {path: m}\n", "run.yaml", late));
}

}  // namespace
}  // namespace plimsoll::settings
