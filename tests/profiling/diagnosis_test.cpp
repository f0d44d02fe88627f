#include "profiling/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "profiling/step_waits.h"

namespace plimsoll::profiling {
namespace {

/// Ops by what they are, in the order of `Planted::seconds`.
enum : size_t { kProduct, kOddProduct, kFewRows, kMemoryBound, kCopy, kAdamw, kRecomputed };

/// Four steps in which nothing stands out: 1 s of products at 1000 operations a second and little else.
struct Planted {
  double seconds[7] = {1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1};
  double host = 0.1, taken = 0.05;
  double waits[4] = {0.1, 0.1, 0.1, 0.1};
  int64_t tokens = 100, read_bytes = 0;
  images::LoadTimes images = {};
  int num_threads = 2;
  double idle_cpus = 0, saving = 0, bf16_gain = 1;

  [[nodiscard]] Profile profile() const {
    Profile p;
    p.padded_units = 100;
    p.num_threads = num_threads, p.num_cpus = 2, p.bf16_gain = bf16_gain;
    p.facts = {{.op = "linear", .is_product = true, .flops = 1000, .bytes = 10, .dims = "[[64, 64]]"},
               {.op = "linear_dw", .is_product = true, .flops = 60, .bytes = 1, .dims = "[[17, 1003]]"},
               {.op = "linear_few", .is_product = true, .flops = 10, .bytes = 10},
               {.op = "rms_norm", .flops = 10, .bytes = 10},
               {.op = "copy_start", .copies = true, .bytes = 10},
               {.op = "adamw", .updates = true},
               {.op = "linear", .is_product = true, .recomputed = true, .flops = 1000, .bytes = 10}};
    for (const double wait : waits) {
      ProfiledStep step{.seconds = wait + host, .data_wait_seconds = wait, .units = tokens};
      for (size_t op = 0; op < p.facts.size(); ++op) {
        step.ops.push_back({op, 0, seconds[op]});
        step.seconds += seconds[op];
      }
      step.taken_seconds = taken, step.read_bytes = read_bytes, step.images = images,
      step.idle_cpus = idle_cpus;
      step.seconds += saving;
      step.spans = {{"save a checkpoint", SpanLane::kStep, 0, 0, saving},
                    {"write a checkpoint", SpanLane::kCheckpoint, 0, 0, 9}};
      p.steps.push_back(step);
    }
    return p;
  }
};

/// The first finding, once it is seen that all of a step is somewhere.
Finding first(const Planted& planted) {
  const auto findings = diagnose(planted.profile());
  double share = 0;
  for (const Finding& f : findings) {
    share += f.share;
    EXPECT_FALSE(f.hint.empty()) << f.what;
  }
  EXPECT_NEAR(share, 1, 1e-9);
  return findings.front();
}

/// Nothing is lost but what is below kSmallLoss.
Planted healthy() {
  return {.seconds = {1, 0, 0, 0.2, 0, 0.01, 0}, .host = 0.01, .taken = 0, .waits = {0.01, 0.01, 0.01, 0.01}};
}

TEST(Verdict, WithoutABottleneckTheWorkComesFirst) {
  const auto findings = diagnose(healthy().profile());
  EXPECT_EQ(findings[0].what, "matrix products and attention");
  EXPECT_EQ(findings[1].what, "memory-bound ops");
  ASSERT_GT(findings.size(), 2U);
  EXPECT_EQ(findings[1].kind, FindingKind::kWork);
  EXPECT_EQ(findings[2].kind, FindingKind::kSmallLoss);
}

TEST(Verdict, WorkIsNotAheadOfALoss) {
  Planted planted = healthy();
  planted.host = 0.1;
  const Finding f = first(planted);
  EXPECT_EQ(f.what, "host work between ops");
  EXPECT_EQ(f.kind, FindingKind::kLoss);
  EXPECT_LT(f.share, 0.1);
}

TEST(Verdict, Bf16IsNamedWhereItIsFaster) {
  Planted planted = healthy();
  EXPECT_EQ(first(planted).hint.find("bf16"), std::string::npos);
  planted.bf16_gain = 1.5;
  EXPECT_NE(first(planted).hint.find("the rate of training.precision=bf16 is 1.5 times as high"),
            std::string::npos);
}

TEST(Verdict, FewerThreadsThanCpus) {
  Planted planted = healthy();
  planted.num_threads = 1, planted.idle_cpus = 1;
  const Finding f = first(planted);
  EXPECT_EQ(f.what, "CPUs without a thread");
  EXPECT_NEAR(f.seconds, 1.21 / 2, 1e-9) << "half of what kernels compute";
  EXPECT_NE(f.hint.find("runtime.threads=2"), std::string::npos) << f.hint;
  planted.idle_cpus = 0;
  EXPECT_EQ(first(planted).what, "matrix products and attention") << "somebody else uses the CPU";
  planted.num_threads = 2, planted.idle_cpus = 1;
  EXPECT_EQ(first(planted).what, "matrix products and attention") << "each CPU has its thread";
}

TEST(Verdict, WhatTheProcessTakesFromItselfIsNotTheOthers) {
  Profile profile = Planted{.taken = 1}.profile();
  for (ProfiledStep& step : profile.steps) step.saving_seconds = 0.75;
  const auto findings = diagnose(profile);
  EXPECT_EQ(findings[0].what, "waiting for checkpoints");
  EXPECT_NEAR(findings[0].seconds, 0.75, 1e-9);
  EXPECT_EQ(findings[1].what, "CPUs taken by others");
  EXPECT_NEAR(findings[1].seconds, 0.25, 1e-9);
  for (ProfiledStep& step : profile.steps) step.loading_seconds = 0.75, step.saving_seconds = 0;
  EXPECT_EQ(diagnose(profile).front().what, "waiting for data: preparing it");
}

TEST(Verdict, CheckpointsAreNoHostWork) {
  const Finding f = first({.saving = 3});
  EXPECT_EQ(f.what, "waiting for checkpoints");
  EXPECT_NEAR(f.seconds, 3 - 0.05 * 3 / 4.7, 0.1) << "but for what others took of it";
}

TEST(Verdict, ASlowDisk) {
  const Finding f = first({.waits = {2, 2, 2, 2}, .read_bytes = 400});
  EXPECT_EQ(f.what, "waiting for data: storage");
  EXPECT_NEAR(f.seconds, 2, 1e-9);
}

TEST(Verdict, OneWorkerWithASlowTemplate) {
  // A stray page from storage does not make it the disk's fault.
  const Finding f = first({.waits = {2, 2, 2, 2}, .read_bytes = 5});
  EXPECT_EQ(f.what, "waiting for data: preparing it");
  EXPECT_NE(f.hint.find("data.num_workers"), std::string::npos);
}

TEST(Verdict, AColdCache) {
  const Finding f = first({.waits = {8, 4, 0.1, 0.1}, .read_bytes = 400});
  EXPECT_EQ(f.what, "waiting for data: cold cache");
  EXPECT_NEAR(f.seconds, (7.9 + 3.9) / 4, 1e-9);
}

TEST(Diagnosis, NamesWhatLoadingImagesWaitsFor) {
  const auto waited = [](const images::LoadTimes& loading) {
    return first({.waits = {2, 2, 2, 2}, .read_bytes = 400, .images = loading});
  };
  EXPECT_EQ(waited({.reading = 3, .decoding = 1, .augmenting = 1}).what, "waiting for data: storage");
  EXPECT_EQ(waited({.reading = 1, .decoding = 3, .augmenting = 1}).what, "waiting for data: decoding images");
  EXPECT_THAT(waited({.reading = 1, .decoding = 3}).hint, testing::HasSubstr("data.images.cache=u8"));
  EXPECT_EQ(waited({.reading = 1, .decoding = 1, .augmenting = 3}).what,
            "waiting for data: augmenting images");
}

TEST(Verdict, AWaitNowAndThenIsNoColdCache) {
  EXPECT_EQ(first({.waits = {8, 0.1, 8, 0.1}, .read_bytes = 400}).what, "waiting for data: storage");
  EXPECT_EQ(first({.waits = {8, 4, 4, 0.1}, .read_bytes = 400}).what, "waiting for data: storage")
      << "two steps decide";
}

TEST(Verdict, ABusyNeighbour) { EXPECT_EQ(first({.taken = 1}).what, "CPUs taken by others"); }

TEST(Verdict, HostWorkBetweenLaunches) { EXPECT_EQ(first({.host = 2}).what, "host work between ops"); }

TEST(Verdict, ASlowLink) {
  EXPECT_EQ(first({.seconds = {1, 0.1, 0.1, 0.2, 2, 0.1, 0.1}}).what, "copies that kernels cannot hide");
  EXPECT_EQ(first({.seconds = {1, 0.1, 0.1, 0.2, 1, 0.1, 0.1}, .host = 0.2}).what, "host work between ops")
      << "hidden";
}

TEST(Verdict, ATinyBatch) {
  EXPECT_EQ(first({.seconds = {1, 0.1, 2, 0.2, 0.1, 0.1, 0.1}}).what, "products with too few rows");
}

TEST(Verdict, OddShapesAreNamed) {
  const Finding f = first({.seconds = {1, 2, 0.1, 0.2, 0.1, 0.1, 0.1}});
  EXPECT_EQ(f.what, "products below their rate");
  EXPECT_NE(f.hint.find("[[17, 1003]]"), std::string::npos) << f.hint;
}

TEST(Verdict, MemoryBoundOpsAreWork) {
  Planted planted = healthy();
  planted.seconds[kMemoryBound] = 2;
  EXPECT_EQ(first(planted).what, "memory-bound ops");
}

TEST(Verdict, AProductOfFewRowsLosesWhatTheBestRateWouldNotTake) {
  Planted planted = healthy();
  planted.seconds[kFewRows] = 0.5;
  const Finding f = first(planted);
  EXPECT_EQ(f.what, "products with too few rows");
  EXPECT_NEAR(f.seconds, 0.5 - 10.0 / 1000, 1e-9);
}

TEST(Verdict, AShapeIsNotAtFaultForOneSlowRun) {
  Profile profile = healthy().profile();
  profile.facts[kOddProduct].flops = 1000;
  for (ProfiledStep& step : profile.steps) step.ops[kOddProduct].seconds = 1, step.seconds += 1;
  profile.steps[0].ops[kOddProduct].seconds = 9, profile.steps[0].seconds += 8;
  EXPECT_EQ(diagnose(profile).front().what, "matrix products and attention");
}

TEST(Verdict, OnACalibratedMachineItsRateCounts) {
  Profile profile = healthy().profile();
  profile.facts[kProduct].peak_seconds = 0.1;
  EXPECT_EQ(diagnose(profile).front().what, "matrix products and attention");
  profile.rates = "calibrated";
  const Finding f = diagnose(profile).front();
  EXPECT_EQ(f.what, "products below their rate");
  EXPECT_NEAR(f.seconds, 0.9, 1e-9);
}

TEST(Verdict, AnOptimizerThatDominates) {
  EXPECT_EQ(first({.seconds = {1, 0.1, 0.1, 0.2, 0.1, 2, 0.1}}).what, "optimizer");
}

TEST(Verdict, Recompute) { EXPECT_EQ(first({.seconds = {1, 0.1, 0.1, 0.2, 0.1, 0.1, 2}}).what, "recompute"); }

TEST(Verdict, FullPadding) { EXPECT_EQ(first({.tokens = 20}).what, "padding"); }

TEST(Verdict, WaitsNeverFall) {
  const StepWaits before = step_waits(), after = step_waits();
  EXPECT_GE(after.taken_seconds_since(before), 0);
  EXPECT_GE(after.read_bytes, before.read_bytes);
}

TEST(Verdict, WaitsAreTheCallersOrTheMean) {
  const StepWaits before{.taken_seconds = {{0, 1}, {7, 1}}};
  EXPECT_DOUBLE_EQ((StepWaits{.taken_seconds = {{0, 1}, {7, 3}}}).taken_seconds_since(before), 1);
  EXPECT_DOUBLE_EQ((StepWaits{.taken_seconds = {{0, 3}, {7, 1}}}).taken_seconds_since(before), 2);
  EXPECT_DOUBLE_EQ((StepWaits{.taken_seconds = {{0, 1}, {9, 3}}}).taken_seconds_since(before), 0)
      << "a thread that began since";
}

TEST(Verdict, ThreadsIdle) {
  Profile profile = Planted{.taken = 0}.profile();
  for (ProfiledStep& step : profile.steps) {
    step.ops[kProduct].mean_seconds = 0.3, step.ops[kProduct].busiest_seconds = 1;
  }
  const auto findings = diagnose(profile);
  EXPECT_EQ(findings.front().what, "threads idle");
  EXPECT_NEAR(findings.front().seconds, 0.7, 1e-9);
  EXPECT_NE(findings.front().hint.find("linear"), std::string::npos) << findings.front().hint;
}

TEST(Verdict, WhatNoThreadOfAnOpComputesIsItsIssue) {
  Profile profile = Planted{.taken = 0}.profile();
  for (ProfiledStep& step : profile.steps)
    step.ops[kProduct].mean_seconds = step.ops[kProduct].busiest_seconds = 0.2;
  const auto findings = diagnose(profile);
  EXPECT_EQ(findings.front().what, "host work between ops");
  EXPECT_NEAR(findings.front().seconds, 0.1 + 0.8, 1e-9);
}

TEST(Verdict, WhoWaitsForAThreadWithoutACpuIsNotIdle) {
  Profile profile = Planted{.taken = 0.6}.profile();
  for (ProfiledStep& step : profile.steps)
    step.ops[kProduct].mean_seconds = 0.3, step.ops[kProduct].busiest_seconds = 1;
  const auto findings = diagnose(profile);
  EXPECT_EQ(findings.front().what, "CPUs taken by others");
  EXPECT_NEAR(findings.front().seconds, 0.6, 1e-9);
}

}  // namespace
}  // namespace plimsoll::profiling
