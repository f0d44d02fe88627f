// An evaluation's event: metrics, the confusion matrix of few classes, pairs of many, examples.
#include "telemetry/eval_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::telemetry {
namespace {

using testing::HasSubstr;
using testing::Not;

training::EvalEvent event_of() {
  return {.step = 7, .loss = 0.5, .units = 20, .targets = 19, .unit = "images", .has_perplexity = false};
}

TEST(EvalEvent, HasWhatTheTaskHas) {
  training::EvalEvent event = event_of();
  EXPECT_EQ(io::to_json(eval_event(event)),
            R"({"event": "eval", "step": 7, "loss": 0.5, "images": 20, "targets": 19})");
  event.metrics = {{"accuracy", 0.75}, {"matthews", std::nan("")}};
  EXPECT_THAT(io::to_json(eval_event(event)),
              HasSubstr(R"("metrics": {"accuracy": 0.75, "matthews": null}})"));
}

TEST(EvalEvent, HasTheMatrixOfFewClasses) {
  training::EvalEvent event = event_of();
  event.confusion = {{"a", "b"}, {5, 1, 0, 4}};
  EXPECT_THAT(io::to_json(eval_event(event)),
              HasSubstr(R"("confusion_matrix": {"labels": ["a", "b"], "counts": [[5, 1], [0, 4]]})"));
  event.confusion.names.clear();
  const size_t many = kMostClassesInEvents + 1;
  for (size_t i = 0; i < many; ++i) event.confusion.names.push_back(std::to_string(i));
  event.confusion.counts.assign(many * many, 0);
  event.confusion.counts[3 * many + 100] = 6;
  const std::string text = io::to_json(eval_event(event));
  EXPECT_THAT(text, Not(HasSubstr("confusion_matrix")));
  EXPECT_THAT(text, HasSubstr(R"("most_confused": [{"label": "3", "predicted": "100", "count": 6}])"));
}

TEST(EvalEvent, HasExamplesOfAllPartsOnce) {
  training::EvalEvent event = event_of();
  event.examples = {{"a.png", "cat", "dog", 0.75}};
  event.parts = {event_of()};
  event.parts[0].name = "held";
  event.parts[0].confusion = {{"a"}, {3}};
  EXPECT_EQ(io::to_json(eval_event(event)),
            R"({"event": "eval", "step": 7, "loss": 0.5, "images": 20, "targets": 19, )"
            R"("examples": [{"name": "a.png", "label": "cat", "predicted": "dog", "score": 0.75}], )"
            R"("sources": {"held": {"loss": 0.5, "images": 20, "targets": 19, )"
            R"("confusion_matrix": {"labels": ["a"], "counts": [[3]]}}}})");
}

}  // namespace
}  // namespace plimsoll::telemetry
