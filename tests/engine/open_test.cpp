#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "telemetry/recording_sink.h"
#include "training/tiny_run.h"

namespace plimsoll::engine {
namespace {

TEST(EngineOpen, GivesARunWhoseStepsAreTheCallers) {
  const training::TinyRun run;
  telemetry::RecordingSink sink({.events = true});
  const auto opened = Engine(sink).open(run.config());
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(sink.names, std::vector<std::string>{"plan"});
  const auto step = (*opened)->trainer->step();
  ASSERT_TRUE(step);
  EXPECT_EQ(step->step, 1);
}

TEST(EngineOpen, DrawsTokensWhereTheRunNamesNoData) {
  const training::TinyRun run;
  settings::RunConfig config = run.config();
  config.data.train = {};
  telemetry::Sink nobody;
  const auto opened = Engine(nobody).open(config);
  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_TRUE((*opened)->trainer->step());
  EXPECT_FALSE(run.exists("out")) << "nothing is written";
}

TEST(EngineOpen, RefusesWhatDoesNotFit) {
  const training::TinyRun run;
  telemetry::Sink nobody;
  const auto opened = Engine(nobody).open(run.config({"memory.budget=1MiB"}));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kDoesNotFit);
}

}  // namespace
}  // namespace plimsoll::engine
