#include "cli/calibration_samples.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "ops/op_list.h"
#include "planner/op_work.h"

namespace plimsoll::cli {
namespace {

TEST(CalibrationSamples, EachIsAnOpThatTakesItsOperandsAndACaseOfItsOwn) {
  std::set<std::tuple<std::string, int, double, double, double>> seen;
  std::set<std::string> kinds;
  for (const SampleGroup& group : calibration_samples())
    for (const OpSample& sample : group.samples) {
      const ir::OpDef* def = ops::find_op(sample.op);
      ASSERT_NE(def, nullptr) << sample.op;
      ir::OpTypes types{sample.op, sample.inputs, {}, sample.attrs};
      const auto results = def->infer(types);
      ASSERT_TRUE(results.ok()) << results.error().message();
      types.outputs = *results;
      ASSERT_NE(def->cost, nullptr) << sample.op << ": its work is not known";
      const planner::OpWork of = planner::op_work(types, def->cost(types));
      EXPECT_GT(of.work, 0) << sample.op;
      kinds.insert(std::string(of.kind));
      EXPECT_TRUE(seen.insert({std::string(of.kind), static_cast<int>(of.type), of.extents[0], of.extents[1],
                               of.extents[2]})
                      .second)
          << sample.op << " is measured twice";
    }
  for (const char* kind :
       {"linear", "linear_t", "linear_dw", "attention", "attention_grad", "head_loss", "adamw_sweep"})
    EXPECT_TRUE(kinds.contains(kind)) << kind;
}

}  // namespace
}  // namespace plimsoll::cli
