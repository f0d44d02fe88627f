#include "settings/best_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll {
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
                         Row{"accuracy", "accuracy", true}, Row{"eval_f1", "f1_macro", true},
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

}  // namespace
}  // namespace plimsoll
