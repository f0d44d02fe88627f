#include "settings/best_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

Result<RunConfig> parse(const std::vector<std::string>& overrides) {
  return parse_run_config("{model: {preset: gpt2}, data: {train: a.npy}}", "run.yaml", overrides);
}

TEST(BestMetric, IsReadAsTransformersDoes) {
  struct Row {
    const char* said;
    const char* name;
    bool greater;
  };
  for (const Row& row : {Row{"", "loss", false}, Row{"loss", "loss", false}, Row{"eval_loss", "loss", false},
                         Row{"accuracy", "accuracy", true}, Row{"eval_f1", "f1", true},
                         Row{"eval_news_loss", "news_loss", false}, Row{"mse", "mse", false},
                         Row{"perplexity", "perplexity", false}, Row{"matthews", "matthews", true}}) {
    TrainingSettings training{.load_best_model_at_end = true, .metric_for_best_model = row.said};
    const auto metric = best_metric(training);
    ASSERT_TRUE(metric);
    EXPECT_EQ(metric->name, row.name);
    EXPECT_EQ(metric->greater_is_better, row.greater) << row.said;
    training.greater_is_better = !row.greater;
    EXPECT_EQ(best_metric(training)->greater_is_better, !row.greater);
  }
  EXPECT_EQ(best_metric({.metric_for_best_model = "eval_f1"})->otherwise, "f1_macro");
  EXPECT_EQ(best_metric({.metric_for_best_model = "news_f1"})->otherwise, "news_f1_macro");
  EXPECT_EQ(best_metric({.metric_for_best_model = "accuracy"})->otherwise, "");
  EXPECT_FALSE(best_metric({}));
  EXPECT_TRUE(best_metric({.early_stopping_patience = 2}));
}

TEST(CheckBestModel, NamesWhatContradicts) {
  struct Row {
    std::vector<std::string> overrides;
    const char* what;
    const char* hint;
  };
  const std::string best = "load_best_model_at_end=true", eval = "data.eval=b.npy";
  for (const Row& row :
       {Row{{best, "save_steps=10"}, "nothing is evaluated", "data.eval"},
        Row{{best, eval, "eval_strategy=no"}, "nothing is evaluated", "eval_strategy=steps"},
        Row{{best, eval, "save_steps=10"}, "one alone", "eval_steps"},
        Row{{best, eval, "eval_steps=10"}, "none is saved", "output.save_steps=10"},
        Row{{best, eval, "eval_steps=10", "save_steps=25"}, "no multiple", "output.save_steps=30"},
        Row{{"early_stopping_patience=2", eval}, "one alone", "eval_steps"},
        Row{{"early_stopping_patience=2"}, "nothing is evaluated", "data.eval"}}) {
    const auto refused = parse(row.overrides);
    ASSERT_FALSE(refused) << row.what;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().what, HasSubstr(row.what));
    EXPECT_THAT(refused.error().hint, HasSubstr(row.hint));
  }
  EXPECT_TRUE(parse({best, eval, "eval_steps=10", "save_steps=20", "early_stopping_patience=3",
                     "early_stopping_threshold=0.01", "metric_for_best_model=eval_loss"}));
  const auto idle = parse({"early_stopping_threshold=0.5"});
  ASSERT_TRUE(idle);
  EXPECT_THAT(idle->notes.back(), HasSubstr("early_stopping_threshold"));
}

/// Counted in steps once it is known how many sequences an epoch has.
TEST(SettleEpochs, CountsTheStepsOfAnEpoch) {
  const auto steps = [](std::vector<std::string> overrides, int64_t num_sequences) {
    overrides.insert(overrides.end(), {"data.eval=b.npy", "training.global_batch_size=32"});
    auto run = parse(overrides);
    EXPECT_TRUE(run) << run.error().message();
    settle_epochs(*run, num_sequences);
    return std::pair{run->training.eval_steps, run->output.save_steps};
  };
  using Steps = std::pair<int64_t, int64_t>;
  const std::string eval = "eval_strategy=epoch", save = "save_strategy=epoch";
  EXPECT_EQ(steps({eval, save}, 64), (Steps{2, 2}));
  EXPECT_EQ(steps({eval, save}, 65), (Steps{2, 2})) << "rounded down: there is room for what it counts";
  EXPECT_EQ(steps({eval, save}, 5), (Steps{1, 1}));
  EXPECT_EQ(steps({eval, "save_steps=7"}, 64), (Steps{2, 7}));
  EXPECT_EQ(steps({save}, 64), (Steps{0, 2}));
  EXPECT_EQ(steps({eval, "eval_steps=5"}, 64), (Steps{5, 0})) << "what comes later wins";
  const auto file = parse_run_config(
      "{model: {preset: gpt2}, data: {train: a.npy, eval: b.npy}, eval_strategy: epoch, eval_steps: 5}",
      "run.yaml");
  ASSERT_TRUE(file) << file.error().message();
  EXPECT_THAT(file->notes, testing::ElementsAre(HasSubstr("training.eval_steps has no effect")));
  EXPECT_EQ(file->training.eval_steps, 0);
  EXPECT_FALSE(parse({eval})) << "there is nothing to evaluate on";
  EXPECT_TRUE(parse({eval, save, "data.eval=b.npy", "load_best_model_at_end=true"}));
  for (const char* other : {"save_steps=10", "save_strategy=no"}) {
    const auto refused = parse({eval, other, "data.eval=b.npy", "load_best_model_at_end=true"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().hint, HasSubstr("output.save_strategy=epoch"));
  }
}

}  // namespace
}  // namespace plimsoll::settings
