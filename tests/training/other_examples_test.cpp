// A task whose examples are no tokens goes from its files through loader and feeder, the planner and training
// steps on the CPU to a checkpoint and final weights, and counts pictures everywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "picture_run.h"
#include "planner/report/headline.h"

namespace plimsoll::training {
namespace {

using OtherExamplesTest = PictureRun;

TEST_F(OtherExamplesTest, ThePlanCountsThem) {
  const auto prepared = prepare(config());
  ASSERT_TRUE(prepared) << prepared.error().message();
  const planner::PlanReport& report = prepared->report;
  EXPECT_TRUE(report.fits);
  EXPECT_EQ(report.units, kBatch);
  EXPECT_THAT(planner::headline(report), testing::HasSubstr(" pictures/s"));
  EXPECT_THAT(planner::plan_head(report),
              testing::HasSubstr("A step: micro-batch 3 x 2 accumulation steps, 6 pictures, 2 threads"));
  EXPECT_THAT(io::to_json(planner::plan_event(report)), testing::HasSubstr("\"pictures\": 6"));
  const passes::SessionState* pixels = prepared->programs.session.find_state("batch.pixels");
  ASSERT_NE(pixels, nullptr);
  EXPECT_EQ(pixels->decl.type, (ir::TensorType{ir::DType::kU8, {3, 3, 5}}));
}

TEST_F(OtherExamplesTest, TheyTrainAModel) {
  const settings::RunConfig run = config();
  auto prepared = prepare(run);
  ASSERT_TRUE(prepared) << prepared.error().message();
  const auto files = preprocessing::unprepared_data(run, /*train=*/true);
  ASSERT_TRUE(files) << files.error().message();
  const auto trainer = Trainer::create(run, std::move(*prepared), *device_,
                                       {.data = *files, .model_files = checkpoints::ModelFileSet{}});
  ASSERT_TRUE(trainer) << trainer.error().message();
  std::vector<double> losses;
  for (int64_t step = 0; step < 20; ++step) {
    const auto weights = session_testing::read_state<float>((*trainer)->session(), kWeight);
    const auto event = (*trainer)->step();
    ASSERT_TRUE(event) << event.error().message();
    EXPECT_NEAR(event->loss, loss_of(weights, step * kBatch % kExamples), 1e-5) << "step " << step;
    EXPECT_EQ(event->units, kBatch);
    EXPECT_EQ(event->unit, "pictures");
    losses.push_back(event->loss);
  }
  EXPECT_LT(losses.back(), losses.front() / 4);
  EXPECT_EQ((*trainer)->units_trained(), 20 * kBatch);
  const auto eval = (*trainer)->evaluate();
  ASSERT_TRUE(eval && *eval) << "an evaluation";
  EXPECT_EQ((*eval)->counts(), "over 48 pictures");
  EXPECT_LT((*eval)->loss, losses.front() / 4);
  ASSERT_TRUE((*trainer)->start_checkpoint());
  ASSERT_TRUE((*trainer)->next_saved(/*wait=*/true));
  EXPECT_TRUE((*trainer)->save_final());
}

TEST_F(OtherExamplesTest, TheyAreDrawnForBenchmarks) {
  auto prepared = prepare(config());
  ASSERT_TRUE(prepared) << prepared.error().message();
  const auto trainer = Trainer::create(config(), std::move(*prepared), *device_, {.synthetic_data = true});
  ASSERT_TRUE(trainer) << trainer.error().message();
  const auto event = (*trainer)->step();
  ASSERT_TRUE(event) << event.error().message();
  EXPECT_EQ(event->units, kBatch);
  EXPECT_TRUE(std::isfinite(event->loss));
}

}  // namespace
}  // namespace plimsoll::training
