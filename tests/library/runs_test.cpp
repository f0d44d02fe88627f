#include "library/runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "io/file.h"
#include "library/c_model.h"
#include "settings/settings.h"
#include "training/tiny_run.h"

namespace plimsoll::library {
namespace {

struct Heard {
  std::vector<std::string> names;
  int stop_at = -1;  ///< the step whose event asks to stop
  int steps = 0;
};

int hear(const char* event, void* user) {
  auto& heard = *static_cast<Heard*>(user);
  const auto tree = io::parse_json(event);
  EXPECT_TRUE(tree) << event;
  if (!tree) return 0;
  heard.names.push_back(tree->find("event")->text);
  if (heard.names.back() == "step") ++heard.steps;
  return heard.steps == heard.stop_at ? 1 : 0;
}

class Runs : public ::testing::Test {
 protected:
  /// The run's file as text, with its output in `folder`.
  std::string text(const std::string& folder) const {
    settings::RunConfig config = run_.config({"training.max_steps=4"});
    config.output.dir = run_.path(folder);
    return settings::run_config_yaml(config);
  }
  testing::Failure train(const std::string& settings, Heard& heard) {
    pls_error* error = nullptr;
    const int code = pls_train(nullptr, settings.c_str(), nullptr, 0, nullptr, hear, &heard, &error);
    return testing::failure(code, error);
  }
  std::string weights(const std::string& folder) const {
    const auto read = io::read_small_file(run_.path(folder + "/final/model.safetensors"), int64_t{1} << 30);
    EXPECT_TRUE(read);
    return read ? *read : std::string();
  }
  const training::TinyRun run_;
};

TEST_F(Runs, TellWhatHappensAndStopWhenAsked) {
  Heard whole, first, second;
  ASSERT_EQ(train(text("whole"), whole).code, PLS_OK);
  EXPECT_EQ(whole.steps, 4);
  EXPECT_EQ(whole.names.back(), "summary");
  first.stop_at = 2;
  EXPECT_EQ(train(text("parts"), first).code, PLS_INTERRUPTED);
  EXPECT_EQ(first.steps, 2);
  ASSERT_EQ(train(text("parts"), second).code, PLS_OK);
  EXPECT_EQ(second.steps, 2);
  EXPECT_EQ(weights("parts"), weights("whole"));
}

TEST_F(Runs, ArePlanned) {
  pls_plan* plan = nullptr;
  pls_error* error = nullptr;
  const std::string settings = text("out");
  testing::ok(pls_plan_run(nullptr, settings.c_str(), nullptr, 0, &plan, &error), error);
  EXPECT_EQ(pls_plan_fits(plan), 1);
  EXPECT_GT(pls_plan_peak_bytes(plan), 0);
  EXPECT_NE(std::string(pls_plan_json(plan)).find("optimizer_state"), std::string::npos);
  pls_session* session = nullptr;
  EXPECT_EQ(testing::failure(pls_session_create(plan, nullptr, &session, &error), error).code,
            PLS_INVALID_ARGUMENT);
  pls_plan_free(plan);
  const char* small[] = {"memory.budget=1MiB"};
  testing::ok(pls_plan_run(nullptr, settings.c_str(), small, 1, &plan, &error), error);
  EXPECT_EQ(pls_plan_fits(plan), 0);
  pls_plan_free(plan);
}

TEST_F(Runs, WhatDoesNotFitHasItsLeastBudget) {
  const std::string settings = text("out");
  const auto trained_within = [&](int64_t bytes) {
    const std::string budget = "memory.budget=" + std::to_string(bytes);
    const char* overrides[] = {budget.c_str()};
    pls_error* error = nullptr;
    return testing::failure(
        pls_train(nullptr, settings.c_str(), overrides, 1, nullptr, nullptr, nullptr, &error), error);
  };
  const testing::Failure failed = trained_within(int64_t{1} << 20);
  ASSERT_EQ(failed.code, PLS_DOES_NOT_FIT) << failed.message;
  ASSERT_NE(failed.json.find("least_bytes"), nullptr);
  EXPECT_EQ(failed.json.find("budget_bytes")->integer, int64_t{1} << 20);
  const int64_t least = failed.json.find("least_bytes")->integer;
  EXPECT_EQ(trained_within(least - 1).code, PLS_DOES_NOT_FIT);
  EXPECT_EQ(trained_within(least).code, PLS_OK);
}

TEST_F(Runs, WhatIsWrongIsSaid) {
  Heard heard;
  const testing::Failure wrong = train("training: {lerning_rate: 1}", heard);
  EXPECT_EQ(wrong.code, PLS_INVALID_ARGUMENT);
  EXPECT_NE((wrong.message + wrong.hint).find("learning_rate"), std::string::npos);
  pls_error* error = nullptr;
  EXPECT_EQ(
      testing::failure(pls_train(nullptr, nullptr, nullptr, 0, nullptr, nullptr, nullptr, &error), error)
          .code,
      PLS_INVALID_ARGUMENT);
  EXPECT_EQ(testing::failure(pls_generate(R"({"modle": "x"})", nullptr, nullptr, &error), error).code,
            PLS_INVALID_ARGUMENT);
  EXPECT_NE(
      testing::failure(pls_generate(R"({"model": "/none", "prompts": "a"})", nullptr, nullptr, &error), error)
          .code,
      PLS_OK);
}

}  // namespace
}  // namespace plimsoll::library
