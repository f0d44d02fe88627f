#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "telemetry/recording_sink.h"
#include "training/tiny_run.h"

namespace plimsoll::engine {
namespace {

using telemetry::RecordingSink;
using testing::ElementsAre;
using testing::HasSubstr;

class EngineEvaluate : public testing::Test {
 protected:
  [[nodiscard]] settings::RunConfig config() const { return run_.config({run_.held_out()}); }
  const training::TinyRun run_;
};

TEST_F(EngineEvaluate, WithoutWeightsRandomOnesAreEvaluatedAndItIsSaid) {
  RecordingSink sink({.events = true});
  const Status done = Engine(sink).evaluate(config());
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_THAT(sink.names, ElementsAre("plan", "eval"));
  EXPECT_THAT(sink.messages,
              testing::Contains("note: there are no weights to read: random ones are evaluated"));
  EXPECT_FALSE(run_.exists("out")) << "an evaluation writes no run";
}

TEST_F(EngineEvaluate, PeopleGetFiguresAndThePeak) {
  RecordingSink sink;
  ASSERT_TRUE(Engine(sink).evaluate(config()));
  EXPECT_TRUE(sink.names.empty());
  EXPECT_THAT(sink.texts, HasSubstr("loss 5."));
  EXPECT_THAT(sink.texts, HasSubstr("tokens/s\npeak memory: planned "));
}

TEST_F(EngineEvaluate, ARequestToStopEndsItBeforeThereIsAFigure) {
  RecordingSink sink({.events = true});
  bool planned = false;
  const Status done =
      Engine(sink, [&] {
        planned = planned || !sink.names.empty();
        return planned &&
                       std::ranges::count(sink.messages,
                                          "note: there are no weights to read: random ones are evaluated") > 0
                   ? "SIGTERM"
                   : "";
      }).evaluate(config());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(done.error().what, "stopped by SIGTERM before the evaluation was finished");
  EXPECT_THAT(sink.names, ElementsAre("plan"));
}

TEST_F(EngineEvaluate, NeedsDataToEvaluateOn) {
  telemetry::Sink nobody;
  const Status done = Engine(nobody).evaluate(run_.config());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plimsoll::engine
