#include "engine/memory_at_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "analysis/remedies.h"
#include "strategy/run_device.h"
#include "strategy/variants.h"

namespace plimsoll::engine {
namespace {

constexpr const char* kRun =
    "model: {config: {model_type: llama, vocab_size: 512, hidden_size: 128, intermediate_size: 256, "
    "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 256, "
    "tie_word_embeddings: true}}\n"
    "data: {sequence_length: 128}\ntraining: {global_batch_size: 2, max_steps: 2}\nruntime: {threads: 1}\n";

struct Lines : telemetry::Sink {
  [[nodiscard]] telemetry::Audience audience() const override { return {.events = true}; }
  void event(const io::Tree& /*event*/, std::string_view line) override { text += std::string(line) + "\n"; }
  std::string text;
};

struct Case {
  explicit Case(std::vector<std::string> overrides) {
    auto read = settings::parse_run_config(kRun, "run.yaml", overrides);
    EXPECT_TRUE(read) << read.error().what;
    config = *read;
    target = strategy::make_target(config, 1);
    auto planned = strategy::prepare(config, *target, {});
    EXPECT_TRUE(planned);
    planned_.emplace(std::move(*planned));
    analysis::add_remedies(config, *target, {}, *planned_);
  }
  strategy::Prepared& prepared() { return *planned_; }
  settings::RunConfig config;
  std::unique_ptr<runtime::Target> target;

 private:
  std::optional<strategy::Prepared> planned_;
};

/// Another process took the memory while the data was made ready.
TEST(MemoryAtStart, WhatIsNoLongerThereIsSaidWithWhatWouldFit) {
  Case c({"memory.budget=4GiB"});
  Lines lines;
  telemetry::Events events(lines);
  const planner::PlanReport& report = c.prepared().report;
  const int64_t peak = report.process_peak_bytes(),
                held = peak - report.persistent_bytes - report.arena_bytes;
  EXPECT_TRUE(check_memory_at_start(c.config, *c.target, {}, {held, peak, ""}, c.prepared(), events));
  EXPECT_TRUE(c.prepared().report.fits);
  const int64_t left = c.prepared().report.persistent_bytes + c.prepared().report.arena_bytes - (1 << 20);
  const Status status = check_memory_at_start(
      c.config, *c.target, {}, {held, left, "/sys/fs/cgroup/memory.max"}, c.prepared(), events);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(status.error().where, "/sys/fs/cgroup/memory.max");
  ASSERT_FALSE(c.prepared().report.remedies.empty());
  for (const planner::Remedy& remedy : c.prepared().report.remedies) {
    EXPECT_LE(remedy.peak_bytes, held + left) << remedy.text();
    EXPECT_EQ(remedy.settings.front().first, "memory.budget");
    EXPECT_EQ(strategy::Variants(c.config, *c.target, {}).plan(remedy.settings)->process_peak_bytes(),
              remedy.peak_bytes);
  }
  EXPECT_THAT(status.error().hint, testing::HasSubstr(c.prepared().report.remedies.front().text()));
  EXPECT_THAT(lines.text, testing::HasSubstr("\"fits\": false"));
}

}  // namespace
}  // namespace plimsoll::engine
