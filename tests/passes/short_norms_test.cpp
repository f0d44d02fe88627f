// Random networks in bf16 on the CPU backend: how norms are stored and what is rebuilt changes no bit, with
// the residual stream in f32 or in bf16.
#include "passes/short_norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "on_cpu.h"

namespace plimsoll {
namespace {

using fixtures::Tail;

int64_t num_shortened(const ir::Graph& graph) {
  return std::count_if(graph.order().begin(), graph.order().end(), [&](ir::OpId id) {
    const ir::Op& op = graph.op(id);
    return op.def->name.ends_with("_norm") && op.attrs.find("out") != nullptr;
  });
}

void check_seed(uint64_t seed, bool short_residual, int64_t& shortened) {
  passes::PipelineOptions options;
  options.precision = ops::Precision::kBf16;
  options.short_residual = short_residual;
  options.recompute_cheap = options.short_norms = false;
  const auto plain = train_program(seed, options, Tail::kOptimizer);
  ASSERT_TRUE(plain) << "seed " << seed << ": " << plain.error().message();
  const auto expected = run_on_cpu(*plain, {.threads = 1, .separate = true});
  ASSERT_TRUE(expected);
  for (const bool recompute : {false, true})
    for (const bool short_norms : {false, true}) {
      options.recompute_cheap = recompute;
      options.short_norms = short_norms;
      const auto program = train_program(seed, options, Tail::kOptimizer);
      ASSERT_TRUE(program);
      shortened += num_shortened(program->graph);
      EXPECT_TRUE(short_norms || num_shortened(program->graph) == 0);
      const auto found = run_on_cpu(*program, {.threads = 2, .poison = recompute});
      ASSERT_TRUE(found);
      for (const auto& [name, words] : *expected)
        ASSERT_EQ(words, found->at(name)) << "seed " << seed << (recompute ? " recompute" : "")
                                          << (short_norms ? " short norms" : "") << ": state " << name;
    }
}

TEST(ShortNorms, ChangeNoBit) {
  int64_t shortened = 0;
  for (uint64_t seed = 1; seed < 16; ++seed)
    for (const bool short_residual : {false, true}) {
      check_seed(seed, short_residual, shortened);
      if (HasFatalFailure()) return;
    }
  EXPECT_GT(shortened, 20);
}

}  // namespace
}  // namespace plimsoll
