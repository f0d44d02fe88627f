// The steps of transformers' Trainer._determine_best_metric and EarlyStoppingCallback.on_evaluate, by hand;
// tests/interop/final_compare.py replays a run through them.
#include "training/best_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plimsoll::training {
namespace {

using testing::HasSubstr;

EvalEvent evaluation(int64_t step, double loss) {
  EvalEvent event;
  event.step = step;
  event.loss = loss;
  return event;
}

TEST(BestModel, PatienceCountsWhatIsNoProgressBeyondTheThreshold) {
  BestModel best({.early_stopping_patience = 3, .early_stopping_threshold = 0.1});
  struct Row {
    double loss;
    int64_t best_step, waited;
  };
  // 0.95 is the best, and not by enough; 0.8 is measured against it; what is not a number is no progress.
  const std::vector<Row> rows = {{1.0, 1, 0},  {0.95, 2, 1},         {0.80, 3, 0},
                                 {0.85, 3, 1}, {std::nan(""), 3, 2}, {0.79, 6, 3}};
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_FALSE(best.stops());
    ASSERT_TRUE(best.add(evaluation(static_cast<int64_t>(i + 1), rows[i].loss)));
    EXPECT_EQ(best.state()->step, rows[i].best_step) << i;
    EXPECT_EQ(best.state()->waited, rows[i].waited) << i;
  }
  EXPECT_TRUE(best.stops());
}

TEST(BestModel, KeepsTheBestOfThoseThatAreSaved) {
  BestModel best({.load_best_model_at_end = true});
  EXPECT_TRUE(best.text().empty());
  for (const auto& [step, loss] :
       std::vector<std::pair<int64_t, double>>{{2, 3.0}, {4, 1.0}, {6, 2.0}, {8, 2.5}}) {
    ASSERT_TRUE(best.add(evaluation(step, loss)));
    if (step != 4) best.set_saved();
  }
  EXPECT_EQ(best.state()->step, 4);
  EXPECT_EQ(best.state()->saved_step, 6);
  EXPECT_EQ(best.text(), "eval_loss 2 at step 6");
  EXPECT_FALSE(best.stops()) << "without patience";
}

TEST(BestModel, GoesOnFromACheckpoint) {
  BestModel best({.metric_for_best_model = "accuracy", .early_stopping_patience = 2});
  EvalEvent event = evaluation(5, 1.0);
  event.metrics = {{"accuracy", 0.5}};
  ASSERT_TRUE(best.add(event));
  BestModel next({.metric_for_best_model = "eval_accuracy", .early_stopping_patience = 2});
  EXPECT_TRUE(next.resume(best.state()));
  event.metrics = {{"accuracy", 0.4}};
  ASSERT_TRUE(next.add(event));
  ASSERT_TRUE(next.add(event));
  EXPECT_TRUE(next.stops());
  BestModel other({.early_stopping_patience = 2});
  EXPECT_FALSE(other.resume(next.state())) << "another metric";
  EXPECT_FALSE(other.stops());
  EXPECT_TRUE(other.resume(std::nullopt));
}

EvalEvent with_metrics(int64_t step, std::vector<metrics::Value> values) {
  EvalEvent event = evaluation(step, 1.0);
  event.metrics = std::move(values);
  return event;
}

TEST(BestModel, F1IsThatOfClassOneOfTwoClassesElseTheMean) {
  BestModel two({.load_best_model_at_end = true, .metric_for_best_model = "f1"});
  ASSERT_TRUE(two.add(with_metrics(1, {{"f1", 0.5}, {"f1_macro", 0.9}})));
  ASSERT_TRUE(two.add(with_metrics(2, {{"f1", 0.6}, {"f1_macro", 0.1}})));
  EXPECT_EQ(two.state()->step, 2);
  EXPECT_EQ(two.state()->metric, "f1");
  BestModel three({.load_best_model_at_end = true, .metric_for_best_model = "f1"});
  ASSERT_TRUE(three.add(with_metrics(1, {{"f1_macro", 0.9}})));
  EXPECT_EQ(three.state()->value, 0.9);
  BestModel next({.load_best_model_at_end = true, .metric_for_best_model = "f1"});
  EXPECT_TRUE(next.resume(three.state()));
  ASSERT_TRUE(next.add(with_metrics(2, {{"f1_macro", 0.8}})));
  EXPECT_EQ(next.state()->step, 1) << "the checkpoint's is better";
  BestModel anew({.load_best_model_at_end = true, .metric_for_best_model = "f1"});
  EXPECT_TRUE(anew.resume(three.state()));
  ASSERT_TRUE(anew.add(with_metrics(2, {{"f1", 0.3}, {"f1_macro", 0.8}})));
  EXPECT_EQ(anew.state()->step, 2) << "a checkpoint's f1_macro is not compared with f1";
}

TEST(BestModel, NamesAFigureThatEvaluationsLack) {
  BestModel best({.metric_for_best_model = "f1"});
  const auto refused = best.add(evaluation(1, 1.0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().what, HasSubstr("metric_for_best_model is f1,"));
  EXPECT_THAT(refused.error().hint, HasSubstr("loss, perplexity"));
  EXPECT_TRUE(BestModel({}).add(evaluation(1, 1.0))) << "nothing is compared";
}

}  // namespace
}  // namespace plimsoll::training
