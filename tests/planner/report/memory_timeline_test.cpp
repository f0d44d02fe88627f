// The timeline against the plan that it explains, to the byte, and against a count of its own.
#include "planner/report/memory_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "planner/report/report.h"
#include "planner/small_plan.h"

namespace plimsoll::planner {
namespace {

const SmallPlan kSmallPlans[] = {
    {},
    {.micro_batch_size = 1, .sequence_length = 7, .num_layers = 1},
    {.micro_batch_size = 5, .sequence_length = 60, .vocab_size = 3000},
    {.accumulate = true},
    {.micro_batch_size = 3, .num_layers = 4, .recompute = {.kind = passes::RecomputePolicy::Kind::kFull}},
    {.num_layers = 4, .accumulate = true, .recompute = {.kind = passes::RecomputePolicy::Kind::kSegments}}};

TEST(MemoryTimelineTest, ItsMostIsThePlansPeak) {
  for (const SmallPlan& options : kSmallPlans) {
    const TrainingPrograms programs = planned_small(options);
    PlanReport report;
    describe_session(programs.session, report);
    const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
    ASSERT_FALSE(timeline.points.empty());
    EXPECT_EQ(timeline.program, report.peak_program);
    EXPECT_EQ(timeline.at_peak().op, report.peak_op);
    EXPECT_EQ(timeline.at_peak().layer, report.peak_layer);
    EXPECT_EQ(timeline.at_peak().total_bytes, report.persistent_bytes + report.arena_bytes);
    for (const auto& [label, bytes] : report.classes) {
      size_t c = 0;
      while (c < kNumMemoryClasses && name(static_cast<MemoryClass>(c)) != label) ++c;
      ASSERT_LT(c, kNumMemoryClasses) << label;
      EXPECT_EQ(timeline.at_peak().bytes[c], bytes) << label;
    }
    for (const TimelinePoint& point : timeline.points) {
      EXPECT_EQ(total(point.bytes), point.total_bytes);
      EXPECT_LE(point.total_bytes, timeline.at_peak().total_bytes);
      EXPECT_GE(*std::min_element(point.bytes.begin(), point.bytes.end()), 0);
    }
  }
}

/// Each point, counted storage by storage.
TEST(MemoryTimelineTest, EachPointIsWhatIsAliveThere) {
  const TrainingPrograms programs = planned_small({.accumulate = true});
  for (size_t p = 0; p < programs.session.programs.size(); ++p) {
    const passes::Program& program = programs.session.programs[p];
    const MemoryTimeline timeline = memory_timeline(programs.session, p);
    for (const TimelinePoint& point : timeline.points) {
      int64_t alive = program.plan.device().fragmentation_bytes(), activations = 0;
      for (const passes::Storage& s : program.binding.storages) {
        if (s.state >= 0 || s.first < 0 || s.first > point.position || s.last < point.position) continue;
        alive += round_up(s.bytes, passes::kStorageAlignment);
        if (s.category == passes::Category::kActivations) activations += s.bytes;
      }
      EXPECT_EQ(point.total_bytes, programs.session.device().persistent + alive) << program.graph.name;
      EXPECT_EQ(of(point.bytes, MemoryClass::kActivations), activations);
    }
  }
}

TEST(MemoryTimelineTest, WhatIsAliveAtThePeakAddsUp) {
  const TrainingPrograms programs = planned_small({.vocab_size = 3000});
  const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
  ClassBytes bytes{};
  for (const TimelineTensor& tensor : timeline.alive) {
    bytes[static_cast<size_t>(tensor.memory_class)] += tensor.bytes;
    const int32_t at = timeline.at_peak().position;
    EXPECT_TRUE(tensor.first < 0 || (tensor.first <= at && tensor.last >= at)) << tensor.name;
  }
  for (const MemoryClass c : {MemoryClass::kPadding, MemoryClass::kFragmentation})
    bytes[static_cast<size_t>(c)] = of(timeline.at_peak().bytes, c);
  EXPECT_EQ(bytes, timeline.at_peak().bytes);
  const auto table = std::find_if(timeline.alive.begin(), timeline.alive.end(), [](const TimelineTensor& t) {
    return t.name == "model.embed_tokens.weight";
  });
  ASSERT_NE(table, timeline.alive.end());
  EXPECT_EQ(table->type, "f32[3000,40]");
  EXPECT_EQ(table->last, -1) << "always";
}

TEST(MemoryTimelineTest, GradientsHaveTheNamesOfTheirParameters) {
  const TrainingPrograms programs = planned_small({});
  const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
  std::vector<std::string> gradients, parameters;
  for (const TimelineTensor& tensor : timeline.alive) {
    if (tensor.memory_class == MemoryClass::kGradients) gradients.push_back(tensor.name);
    if (tensor.memory_class == MemoryClass::kParameters) parameters.push_back("grad." + tensor.name);
  }
  EXPECT_THAT(gradients, testing::Contains("grad.model.embed_tokens.weight"));
  EXPECT_THAT(gradients, testing::IsSubsetOf(parameters));
}

std::vector<std::string> phase_names(const MemoryTimeline& timeline) {
  std::vector<std::string> names;
  for (const TimelinePhase& p : timeline.phases)
    names.push_back(p.program + " " + std::string(name(p.phase)));
  return names;
}

TEST(MemoryTimelineTest, PhasesAreThoseOfAStep) {
  const auto of_program = [](const SmallPlan& options, passes::ProgramRole role) {
    const TrainingPrograms programs = planned_small(options);
    const auto index = static_cast<size_t>(programs.session.find_program({role}));
    return memory_timeline(programs.session, index);
  };
  const MemoryTimeline step = of_program({}, passes::ProgramRole::kStep);
  EXPECT_THAT(phase_names(step),
              testing::ElementsAre("step forward", "step loss", "step backward", "step update"));
  EXPECT_EQ(step.phases[1].peak.op, "head_loss");
  EXPECT_THAT(step.phases[3].peak.layer, "optimizer");
  int64_t most = 0, ops = 0;
  for (const TimelinePhase& phase : step.phases)
    most = std::max(most, phase.peak.total_bytes), ops += phase.num_ops;
  EXPECT_EQ(most, step.at_peak().total_bytes);
  EXPECT_EQ(ops, static_cast<int64_t>(step.points.size()));
  EXPECT_THAT(
      phase_names(of_program({.accumulate = true}, passes::ProgramRole::kMicroNext)),
      testing::ElementsAre("micro_next forward", "micro_next loss", "micro_next backward", "update update"));
  EXPECT_THAT(phase_names(of_program({}, passes::ProgramRole::kEval)),
              testing::ElementsAre("eval forward", "eval loss"));
}

TEST(MemoryTimelineTest, TheFormulaAndWhatItLeavesOutAreThePlan) {
  for (const SmallPlan& options : kSmallPlans) {
    const TrainingPrograms programs = planned_small(options);
    const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
    const MemoryFormula formula = memory_formula(programs.session, timeline, options.micro_batch_size,
                                                 {{"process", 1000}, {"nothing", 0}});
    EXPECT_EQ(formula.plan_bytes, timeline.at_peak().total_bytes + 1000);
    int64_t sum = formula.bytes();
    for (const auto& [label, bytes] : formula.left_out) {
      sum += bytes;
      EXPECT_NE(bytes, 0) << label;
    }
    EXPECT_EQ(sum, formula.plan_bytes);
    EXPECT_EQ(formula.parameters.bytes, 4 * formula.parameters.values);
    EXPECT_EQ(formula.optimizer_state.values, 2 * formula.parameters.values);
    EXPECT_GT(formula.activations.values, options.micro_batch_size * options.sequence_length * 40);
    EXPECT_EQ(formula.left_out.back().first, "process");
  }
}

TEST(MemoryTimelineTest, TheEventHasEachPointByClass) {
  const TrainingPrograms programs = planned_small({.vocab_size = 3000});
  const MemoryTimeline timeline = memory_timeline(programs.session, peak_program(programs.session));
  const io::Tree event = timeline_event(timeline, memory_formula(programs.session, timeline, 2, {}));
  EXPECT_EQ(event.find("event")->text, "memory_timeline");
  ASSERT_EQ(event.find("points")->items.size(), timeline.points.size());
  for (const io::Tree& point : event.find("points")->items) {
    int64_t sum = 0;
    for (const auto& [label, bytes] : point.find("bytes")->members) sum += bytes.integer;
    EXPECT_EQ(sum, point.find("total_bytes")->integer);
  }
  const io::Tree& peak = *event.find("peak");
  EXPECT_EQ(peak.find("total_bytes")->integer,
            event.find("persistent_bytes")->integer + event.find("arena_bytes")->integer);
  ASSERT_EQ(peak.find("tensors")->items.size(), 10U);
  const std::vector<io::Tree>& tensors = peak.find("tensors")->items;
  const auto table = std::find_if(tensors.begin(), tensors.end(), [](const io::Tree& t) {
    return t.find("name")->text == "model.embed_tokens.weight";
  });
  ASSERT_NE(table, tensors.end());
  EXPECT_EQ(table->find("dtype")->text + table->find("shape")->text, "f32[3000,40]");
  EXPECT_TRUE(table->find("from_op")->is_null());
}

}  // namespace
}  // namespace plimsoll::planner
