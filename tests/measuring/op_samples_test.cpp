#include "measuring/op_samples.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "ops/op_list.h"
#include "planner/cost/op_work.h"

namespace plimsoll::measuring {
namespace {

class Samples : public testing::TestWithParam<std::vector<SampleGroup> (*)()> {};

TEST_P(Samples, EachIsAnOpThatTakesItsOperandsAndACaseOfItsOwn) {
  std::set<std::tuple<std::string, int, double, double, double>> seen;
  std::set<std::string> kinds;
  for (const SampleGroup& group : GetParam()())
    for (const OpSample& sample : group.samples) {
      const ir::OpDef* def = ops::find_op(sample.op);
      ASSERT_NE(def, nullptr) << sample.op;
      ir::OpTypes types{sample.op, sample.inputs, {}, sample.attrs};
      const auto results = def->infer(types);
      ASSERT_TRUE(results.ok()) << results.error().message();
      types.outputs = *results;
      ASSERT_NE(def->cost, nullptr) << sample.op << ": its work is not known";
      const planner::OpWork of = planner::op_work(*def, types, def->cost(types));
      EXPECT_GT(of.work, 0) << sample.op;
      kinds.insert(std::string(of.kind));
      EXPECT_TRUE(seen.insert({std::string(of.kind), static_cast<int>(of.type), of.extents[0], of.extents[1],
                               of.extents[2]})
                      .second)
          << sample.op << " is measured twice";
    }
  for (const char* kind : {"linear", "linear_t", "linear_dw", "attention", "attention_grad", "head_loss",
                           "adamw_sweep", "adamw_8bit"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

INSTANTIATE_TEST_SUITE_P(All, Samples, testing::Values(calibration_samples, first_samples, card_samples));

TEST(FirstSamples, TakeLittleMemory) {
  for (const SampleGroup& group : first_samples())
    for (const OpSample& sample : group.samples) {
      const auto results = ops::find_op(sample.op)->infer({sample.op, sample.inputs, {}, sample.attrs});
      ASSERT_TRUE(results.ok());
      int64_t bytes = 0;
      for (const auto* list : {&sample.inputs, &*results})
        for (const ir::TensorType& t : *list) bytes += t.bytes().count;
      EXPECT_LE(bytes, int64_t{16} << 20) << sample.op;
    }
}

}  // namespace
}  // namespace plimsoll::measuring
