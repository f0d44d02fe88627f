// What the programs of generation hold: the cache to the byte, no head in prefill, and nothing dead.
#include "planner/programs/generation_programs.h"

#include <gtest/gtest.h>

#include <map>

#include "backends/cpu/cpu_target.h"
#include "models/presets.h"
#include "planner/preset.h"
#include "planner/report/report.h"

namespace plimsoll::planner {
namespace {

GenerationPrograms programs_of(const char* name, const GenerationOptions& options) {
  const cpu::CpuTarget target(2);
  auto programs = build_generation_programs(models::language_model(*preset(name)), options, target);
  EXPECT_TRUE(programs.ok());
  return std::move(*programs);
}

std::map<std::string_view, int> count_ops(const GenerationPrograms& programs, passes::ProgramRole role) {
  std::map<std::string_view, int> count;
  const ir::Graph& graph =
      programs.session.programs[static_cast<size_t>(programs.session.find_program({role}))].graph;
  for (const ir::OpId id : graph.order()) ++count[graph.op(id).def->name];
  return count;
}

TEST(GenerationProgramsTest, ClassesAddUpAndTheCacheIsExact) {
  for (const char* name : {"smollm-135m", "gpt2"}) {
    const auto programs = programs_of(name, {.batch_size = 3, .cache_tokens = 100, .chunk_tokens = 64});
    PlanReport report;
    describe_session(programs.session, report);
    int64_t sum = 0;
    for (const auto& [label, bytes] : report.classes) {
      EXPECT_GE(bytes, 0) << label;
      sum += bytes;
    }
    EXPECT_EQ(sum, report.persistent_bytes + report.arena_bytes) << name;
  }
  const auto smol = programs_of("smollm-135m", {.batch_size = 3, .cache_tokens = 100, .chunk_tokens = 64});
  EXPECT_EQ(smol.session.class_bytes(ir::StateClass::kCache), int64_t{4} * 3 * 100 * 192 * 2 * 30);
  EXPECT_EQ(smol.session.class_bytes(ir::StateClass::kOutput), int64_t{4} * 3 * 49152);
}

TEST(GenerationProgramsTest, PrefillEndsWithTheLastLayersKeysAndValues) {
  const auto programs =
      programs_of("smollm-135m", {.batch_size = 2, .cache_tokens = 300, .chunk_tokens = 128});
  auto prefill = count_ops(programs, passes::ProgramRole::kPrefill);
  EXPECT_EQ(prefill["cache_update"], 60);
  EXPECT_EQ(prefill["attention_cached"], 29);
  EXPECT_EQ(prefill["swiglu"], 29);
  EXPECT_EQ(prefill["linear"], 29 * 4 + 1);
  EXPECT_EQ(prefill["linear_few"], 0);
}

TEST(GenerationProgramsTest, DecodingReadsEachWeightOnceAndCopiesNothing) {
  for (const char* name : {"smollm-135m", "gpt2"}) {
    const auto programs = programs_of(name, {.batch_size = 2, .cache_tokens = 300, .chunk_tokens = 128});
    auto decode = count_ops(programs, passes::ProgramRole::kDecode);
    EXPECT_EQ(decode["linear"], 0);
    EXPECT_EQ(decode["copy"], 0);
    EXPECT_EQ(decode["add"], 0);
    for (const auto& program : programs.session.programs)
      EXPECT_TRUE(program.binding.copied_assigns.empty()) << name;
  }
}

TEST(GenerationProgramsTest, OnePromptTokenNeedsNoPrefill) {
  const auto programs = programs_of("gpt2", {.cache_tokens = 10});
  EXPECT_EQ(programs.session.programs.size(), 1U);
  EXPECT_EQ(programs.session.find_program({passes::ProgramRole::kPrefill}), -1);
}

}  // namespace
}  // namespace plimsoll::planner
