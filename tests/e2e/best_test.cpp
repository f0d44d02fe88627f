// The best model of a run, early stopping, and both across a resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "checkpoint_names.h"
#include "io/json.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// Learns fast and then far too far: the best evaluation lies before the end.
const std::string kBestRun =
    "train run.yaml --json training.eval_steps=1 output.save_steps=1 training.load_best_model_at_end=true ";

void prepare(const Folder& folder) {
  folder.write("train.txt", some_text(12'000));
  folder.write("eval.txt", some_text(700) + " and quite other words, such as stand in no other text\n");
  folder.write(
      "run.yaml",
      run_file(
          "training: {global_batch_size: 4, max_steps: 9, learning_rate: 2.0e-2, lr_scheduler: constant}\n"));
}

struct Evaluated {
  std::vector<double> losses;
  int64_t best = 0;  ///< step, from 1
};
Evaluated evaluated(const std::string& out) {
  Evaluated result;
  for (size_t begin = 0, end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto event = io::parse_json(std::string_view(out).substr(begin, end - begin));
    if (!event || event->find("event")->text != "eval") continue;
    result.losses.push_back(event->find("loss")->number);
    if (result.best == 0 || result.losses.back() < result.losses[static_cast<size_t>(result.best - 1)])
      result.best = static_cast<int64_t>(result.losses.size());
  }
  return result;
}

TEST(Best, IsKeptWhateverTheLimitAndLeavesAsFinal) {
  const Folder folder;
  prepare(folder);
  const Outcome run = folder.run(kBestRun + "output.save_total_limit=1");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Evaluated seen = evaluated(run.out);
  ASSERT_EQ(seen.losses.size(), 9U);
  ASSERT_LT(seen.best, 9) << "the run is to get worse in the end";
  const std::string best = "checkpoint-" + std::to_string(seen.best);
  EXPECT_EQ(checkpoint_names(folder), (std::set<std::string>{best, "checkpoint-9"}));
  const std::string final = folder.read("out/final/model.safetensors");
  EXPECT_TRUE(final == folder.read("out/" + best + "/model.safetensors"));
  EXPECT_FALSE(final == folder.read("out/checkpoint-9/model.safetensors"));
  EXPECT_THAT(folder.read("out/final/README.md"), HasSubstr("at step " + std::to_string(seen.best)));
  const Outcome again = folder.run(kBestRun + "output.save_total_limit=1");
  EXPECT_THAT(again.err, HasSubstr("nothing is left to do"));
  std::filesystem::remove_all(folder.path("out/final"));
  ASSERT_EQ(folder.run(kBestRun + "output.save_total_limit=1").exit_code, 0);
  EXPECT_TRUE(final == folder.read("out/final/model.safetensors"));
  std::filesystem::remove_all(folder.path("out/final"));
  std::filesystem::remove_all(folder.path("out/" + best));
  const Outcome lost = folder.run(kBestRun);
  EXPECT_EQ(lost.exit_code, 65);
  EXPECT_THAT(lost.err, HasSubstr("load_best_model_at_end=false"));
}

TEST(Best, StopsWhereARunThatWasNeverInterruptedStops) {
  const std::string stopping = kBestRun + "training.early_stopping_patience=2 ";
  const Folder whole, parts;
  prepare(whole);
  prepare(parts);
  const Outcome once = whole.run(stopping);
  ASSERT_EQ(once.exit_code, 0) << once.err;
  const Evaluated seen = evaluated(once.out);
  ASSERT_LT(seen.losses.size(), 9U) << "it is to stop early";
  ASSERT_EQ(static_cast<int64_t>(seen.losses.size()), seen.best + 2);
  EXPECT_THAT(once.err, HasSubstr("stopped early after step"));
  // Interrupted between the best evaluation and the end of patience.
  const std::string begin = stopping + "training.max_steps=" + std::to_string(seen.best + 1);
  ASSERT_EQ(parts.run(begin).exit_code, 0);
  const Outcome rest = parts.run(stopping);
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_TRUE(events_of(once.out).ends_with(events_of(rest.out)));
  EXPECT_TRUE(whole.read("out/final/model.safetensors") == parts.read("out/final/model.safetensors"));
  // It stays stopped; with more patience it goes on.
  EXPECT_THAT(parts.run(stopping).err, HasSubstr("nothing is left to do"));
  const Outcome more = parts.run(kBestRun + "training.early_stopping_patience=8");
  EXPECT_EQ(evaluated(more.out).losses.size(), 9 - seen.losses.size());
}

}  // namespace
}  // namespace plimsoll::e2e
