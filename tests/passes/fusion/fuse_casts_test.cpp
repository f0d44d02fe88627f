// Random networks in bf16 on the CPU backend: where gradients are rounded changes no bit, and no cast of a
// norm's gradient is left.
#include "passes/fusion/fuse_casts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ir/op_query.h"
#include "ops/rounded_copy.h"
#include "passes/fusion/rounding_readers.h"
#include "passes/on_cpu.h"

namespace plimsoll::passes {
namespace {

using fixtures::Tail;

int64_t num_copies(const ir::Graph& graph) {
  return std::ranges::count_if(graph.order(),
                               [&](ir::OpId id) { return ops::has_rounded_copy(graph.op(id).attrs); });
}

/// Readers that round what an op could have rounded for them.
int64_t num_left(const ir::Graph& graph) {
  int64_t left = 0;
  for (const ir::OpId id : graph.order())
    for (const ir::ValueId v : graph.op(id).inputs) {
      if (!v.valid() || graph.value(v).result_index != 0) continue;
      if (!ir::takes_attr(graph.op(graph.value(v).producer), ops::kRounded)) continue;
      left += graph.type(v).dtype == ir::DType::kF32 && rounds_to(graph.op(id), v) ? 1 : 0;
    }
  return left;
}

void check_seed(uint64_t seed, Tail tail, int64_t& copies) {
  SCOPED_TRACE(seed);
  passes::PipelineOptions options;
  options.precision = ops::Precision::kBf16;
  const auto plain = fixtures::train_program(seed, options, tail);
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(num_copies(plain->graph), 0);
  options.share_casts = true;
  const auto fused = fixtures::train_program(seed, options, tail);
  ASSERT_TRUE(fused) << fused.error().message();
  copies += num_copies(fused->graph);
  EXPECT_EQ(num_left(fused->graph), 0);
  const auto expected = fixtures::run_on_cpu(*plain, {.threads = 1, .separate = true});
  const auto found = fixtures::run_on_cpu(*fused, {.threads = 2, .poison = true});
  ASSERT_TRUE(expected && found);
  for (const auto& [name, words] : *expected) ASSERT_EQ(words, found->at(name)) << name;
}

TEST(FuseCasts, ChangeNoBit) {
  int64_t copies = 0;
  for (uint64_t seed = 1; seed < 25; ++seed) {
    check_seed(seed, seed % 2 == 0 ? Tail::kOptimizer : Tail::kAccumulate, copies);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(copies, 20);
}

}  // namespace
}  // namespace plimsoll::passes
