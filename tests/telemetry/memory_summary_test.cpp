// The summary of a real run's memory.
#include "telemetry/memory_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_device.h"
#include "settings/settings.h"
#include "strategy/prepare.h"

namespace plimsoll::telemetry {
namespace {

strategy::Prepared prepared_run() {
  const auto config = settings::parse_run_config(
      "model:\n  config: {model_type: llama, vocab_size: 259, hidden_size: 32, intermediate_size: 40, "
      "num_hidden_layers: 2,\n    num_attention_heads: 2, num_key_value_heads: 1, max_position_embeddings: "
      "64, rms_norm_eps: 1.0e-5}\ndata: {train: x.txt, sequence_length: 32}\noutput: {dir: out}\n"
      "training: {global_batch_size: 4, micro_batch_size: 2, max_steps: 6}\n",
      "run.yaml", {});
  EXPECT_TRUE(config);
  cpu::CpuDevice device(1);
  auto prepared = strategy::prepare(*config, device.target(), {.num_threads = 1});
  EXPECT_TRUE(prepared);
  return std::move(*prepared);
}

int64_t sum(const std::vector<MemoryFigures>& all, int64_t MemoryFigures::*field) {
  int64_t bytes = 0;
  for (const MemoryFigures& f : all) bytes += f.*field;
  return bytes;
}

TEST(MemorySummary, AddsUpToThePlanOnceAStepHasRun) {
  const strategy::Prepared prepared = prepared_run();
  const passes::SessionPlan& session = prepared.programs.session;
  const MemorySummary begun = memory_summary(session, prepared.report, {{}, {}}, {});
  EXPECT_EQ(sum(begun.classes, &MemoryFigures::peak_bytes), session.device().persistent);
  const MemorySummary s =
      memory_summary(session, prepared.report, {{}, {"start", "step"}}, {.resident_bytes = 7 << 20});
  EXPECT_EQ(sum(s.classes, &MemoryFigures::planned_bytes), session.device().total());
  EXPECT_EQ(sum(s.classes, &MemoryFigures::peak_bytes), session.device().total());
  EXPECT_EQ(sum(s.classes, &MemoryFigures::now_bytes), session.device().persistent);
  EXPECT_EQ(sum(s.classes, &MemoryFigures::recent_bytes), session.device().persistent);
  EXPECT_EQ(s.process.planned_bytes, prepared.report.process_peak_bytes());
}

TEST(MemorySummary, IsATableOfEightyColumnsAndAnEvent) {
  const strategy::Prepared prepared = prepared_run();
  MemorySummary s = memory_summary(prepared.programs.session, prepared.report, {{"step"}, {"step"}}, {});
  s.step = 1234567, s.since_step = 1200000;
  s.phases = {{"start", 5 << 20}, {"step", 6 << 20}};
  const std::string table = memory_table(s);
  size_t longest = 0;
  for (size_t at = 0, end = 0; (end = table.find('\n', at)) != table.npos; at = end + 1)
    longest = std::max(longest, end - at);
  EXPECT_LE(longest, 80U);
  EXPECT_THAT(table, testing::HasSubstr("optimizer_state"));
  const std::string event = io::to_json(memory_event(s));
  EXPECT_THAT(event, testing::StartsWith(R"({"event": "memory", "step": 1234567)"));
  EXPECT_THAT(event, testing::HasSubstr(R"("phase_peak_bytes": {"start": 5242880, "step": 6291456})"));
}

}  // namespace
}  // namespace plimsoll::telemetry
