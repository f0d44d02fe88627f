// Random networks in bf16 on the CPU backend: how norms are stored and what is rebuilt changes no bit, with
// the residual stream in f32 or in bf16.
#include "passes/fusion/half_precision_norms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "passes/on_cpu.h"

namespace plimsoll::passes {
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
  options.recompute_cheap = options.half_precision_norms = false;
  const auto plain = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
  ASSERT_TRUE(plain) << "seed " << seed << ": " << plain.error().message();
  const auto expected = fixtures::run_on_cpu(*plain, {.threads = 1, .separate = true});
  ASSERT_TRUE(expected);
  for (const bool recompute : {false, true})
    for (const bool half_precision_norms : {false, true}) {
      options.recompute_cheap = recompute;
      options.half_precision_norms = half_precision_norms;
      const auto program = fixtures::train_program(seed, options, fixtures::Tail::kOptimizer);
      ASSERT_TRUE(program);
      shortened += num_shortened(program->graph);
      EXPECT_TRUE(half_precision_norms || num_shortened(program->graph) == 0);
      const auto found = fixtures::run_on_cpu(*program, {.threads = 2, .poison = recompute});
      ASSERT_TRUE(found);
      for (const auto& [name, words] : *expected)
        ASSERT_EQ(words, found->at(name))
            << "seed " << seed << (recompute ? " recompute" : "")
            << (half_precision_norms ? " short norms" : "") << ": state " << name;
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
}  // namespace plimsoll::passes
