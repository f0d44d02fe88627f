// A whole training by the engine, as a library's caller has it: a sink, a request to stop, and nothing
// printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/engine.h"
#include "telemetry/recording_sink.h"
#include "training/tiny_run.h"

namespace plimsoll::engine {
namespace {

using telemetry::RecordingSink;
using testing::ElementsAre;
using testing::HasSubstr;

class EngineTrain : public testing::Test {
 protected:
  void SetUp() override {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
  }
  void TearDown() override {
    EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
  /// Without warnings: a sanitizer's memory is in no plan.
  [[nodiscard]] std::vector<std::string> reported() const {
    std::vector<std::string> names;
    for (const std::string& name : sink_.names)
      if (name != "warning") names.push_back(name);
    return names;
  }
  const training::TinyRun run_;
  RecordingSink sink_{{.events = true}};
};

TEST_F(EngineTrain, ReportsPlanStepsFinalModelAndSummary) {
  const Status done = Engine(sink_).train(run_.config());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(reported(), ElementsAre("plan", "step", "step", "checkpoint", "summary"));
  EXPECT_TRUE(run_.exists("out/final/model.safetensors"));
  EXPECT_EQ(sink_.texts, "") << "text is for people, and there are none";
}

TEST_F(EngineTrain, AFinishedRunIsSaidToBeOne) {
  ASSERT_TRUE(Engine(sink_).train(run_.config()));
  sink_.names.clear();
  sink_.messages.clear();
  const Status done = Engine(sink_).train(run_.config(), {.snapshot = run_.path("memory.pickle")});
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(sink_.names, ElementsAre("plan", "summary"));
  EXPECT_THAT(sink_.messages, testing::Contains(HasSubstr("nothing is left to do")));
  EXPECT_THAT(sink_.messages, testing::Contains("note: no snapshot is written: no program has run"));
}

TEST_F(EngineTrain, StopsAndGoesOn) {
  const auto config = run_.config({"training.max_steps=3"});
  const Stop stop = [&] { return std::ranges::count(sink_.names, "step") == 2 ? "the caller" : ""; };
  const Status stopped = Engine(sink_, stop).train(config);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kInterrupted);
  EXPECT_THAT(stopped.error().what, HasSubstr("stopped by the caller after step 2"));
  sink_.names.clear();
  ASSERT_TRUE(Engine(sink_).train(config));
  EXPECT_THAT(reported(), ElementsAre("plan", "step", "checkpoint", "summary"));
}

TEST_F(EngineTrain, APlanThatDoesNotFitIsReportedAndRefused) {
  const Status done = Engine(sink_).train(run_.config({"memory.budget=1MiB"}));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kDoesNotFit);
  ASSERT_THAT(sink_.names, ElementsAre("plan"));
  EXPECT_THAT(sink_.lines[0], HasSubstr("\"fits\": false"));
  EXPECT_FALSE(run_.exists("out"));
}

TEST_F(EngineTrain, WritesASnapshotOfWhatRan) {
  ASSERT_TRUE(Engine(sink_).train(run_.config(), {.snapshot = run_.path("memory.pickle")}));
  EXPECT_TRUE(run_.exists("memory.pickle"));
  EXPECT_THAT(sink_.messages, testing::Contains(HasSubstr("note: wrote " + run_.path("memory.pickle"))));
}

TEST_F(EngineTrain, AMemoryTableComesWhenItIsAskedFor) {
  int asked = 0;
  ASSERT_TRUE(Engine(sink_).train(run_.config(), {.memory_asked = [&] { return ++asked == 2; }}));
  EXPECT_EQ(asked, 2) << "after each step";
  EXPECT_EQ(std::ranges::count(sink_.names, "memory"), 1);
}

}  // namespace
}  // namespace plimsoll::engine
