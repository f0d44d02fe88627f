#include "planner/cost/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/builder.h"
#include "ops/op_list.h"
#include "planner/cost/known_profiles.h"

namespace plimsoll::planner {
namespace {

/// Of one product of x [rows, 256] with a weight [512, 256], both of that dtype; in bf16 where it rounds
/// them.
StepSeconds of_linear(const CostModel& model, int64_t rows, ir::DType dtype, bool rounds = false) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId x = b.state({"x", {dtype, {rows, 256}}, ir::StateClass::kInput});
  const ir::ValueId w = b.state({"w", {dtype, {512, 256}}, ir::StateClass::kParameter});
  ir::Attrs attrs{{"transposed", false}};
  if (rounds) attrs.set("precision", std::string("bf16"));
  b.op("linear", {x, w}, attrs);
  EXPECT_TRUE(b.status().ok());
  StepSeconds seconds;
  for (const ir::OpId id : graph.order()) model.add(graph, graph.op(id), seconds);
  return seconds;
}

TEST(CostModel, ProductsGainByThreadsAndByShortTypesWithUnits) {
  const MachineProfile amx = generic_cpu("amx"), avx2 = generic_cpu("avx2");
  const CostModel one(amx, 1), two(amx, 2), plain(avx2, 1);
  const double f32 = of_linear(one, 512, ir::DType::kF32).total();
  EXPECT_GT(f32, 1.5 * of_linear(two, 512, ir::DType::kF32).total());
  EXPECT_GT(f32, 2 * of_linear(one, 512, ir::DType::kBf16).total());
  const double plain_f32 = of_linear(plain, 512, ir::DType::kF32).total();
  EXPECT_LT(plain_f32, 1.1 * of_linear(plain, 512, ir::DType::kBf16).total()) << "no units, no gain";
}

/// A machine with units for FP8 operands, or without; products round on the way, or do not.
class UnitsTarget final : public runtime::Target {
 public:
  explicit UnitsTarget(bool has_units, bool rounds_apart = false)
      : has_units_(has_units), rounds_apart_(rounds_apart) {}
  [[nodiscard]] bool rounds_apart() const override { return rounds_apart_; }
  [[nodiscard]] std::string_view name() const override { return "units"; }
  [[nodiscard]] int64_t workspace_bytes(const ir::OpTypes&) const override { return 0; }
  [[nodiscard]] bool accepts_strided(std::string_view, size_t) const override { return false; }
  [[nodiscard]] Status accepts(const ir::OpTypes&) const override { return Ok{}; }
  [[nodiscard]] bool reaches(ir::MemorySpace) const override { return true; }
  [[nodiscard]] bool shares_host_memory() const override { return true; }
  [[nodiscard]] int64_t memory_bytes() const override { return 0; }
  [[nodiscard]] int num_threads() const override { return 1; }
  [[nodiscard]] std::string_view instruction_set() const override { return "units"; }
  [[nodiscard]] bool has_matrix_units(ir::DType) const override { return true; }
  [[nodiscard]] std::string_view computes_codes_in(const ir::OpTypes& types) const override {
    EXPECT_EQ(types.op, "scaled_matmul");
    return has_units_ ? "fp8" : "bf16";
  }

 private:
  bool has_units_, rounds_apart_;
};

/// Of a product of x [4096, 4096] with a weight of that shape, both as codes.
double of_codes(const MachineProfile& profile, const runtime::Target* target) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto codes = [&](const char* name) {
    return b.state({name, {ir::DType::kU8, {4096, 4096}}, ir::StateClass::kInput});
  };
  const auto scale = [&](const char* name) {
    return b.state({name, {ir::DType::kF32, {1}}, ir::StateClass::kInput});
  };
  b.op("scaled_matmul", {codes("a"), scale("a_scale"), codes("b"), scale("b_scale")},
       {{"a_scheme", std::string("e4m3")},
        {"b_scheme", std::string("e4m3")},
        {"inner", int64_t{4096}},
        {"columns", int64_t{4096}},
        {"precision", std::string("bf16")}});
  EXPECT_TRUE(b.status().ok());
  const CostModel model(profile, 1, {}, target);
  StepSeconds seconds;
  for (const ir::OpId id : graph.order()) model.add(graph, graph.op(id), seconds);
  return seconds.total();
}

/// Products of codes go by their own rate where the target has units for them and the card's rate is known.
TEST(CostModel, ProductsOfCodesGainByUnits) {
  const UnitsTarget with(true), without(false);
  const MachineProfile h100 = *find_card("h100");
  EXPECT_GT(of_codes(h100, &without), 1.5 * of_codes(h100, &with));
  EXPECT_EQ(of_codes(h100, &without), of_codes(h100, nullptr));
  MachineProfile measured = h100;
  measured.fp8_flops = 0;
  EXPECT_EQ(of_codes(measured, &with), of_codes(measured, &without)) << "not known: as bf16";
}

/// Where a kernel of its own rounds an operand, its bytes and its launch count; not where it is short
/// already.
TEST(CostModel, RoundingAnOperandTakesTime) {
  const UnitsTarget apart(false, true), on_the_way(false);
  MachineProfile h100 = *find_card("h100");
  h100.cache_bytes = 0;
  const CostModel with(h100, 1, {}, &apart), without(h100, 1, {}, &on_the_way);
  const double bytes = 6 * (4096 * 256 + 512 * 256);
  const StepSeconds rounds = of_linear(with, 4096, ir::DType::kF32, true),
                    plain = of_linear(without, 4096, ir::DType::kF32, true);
  EXPECT_NEAR(rounds.total() - plain.total(), bytes / h100.memory_bandwidth + 2 * h100.launch_seconds, 1e-12);
  EXPECT_EQ(of_linear(with, 4096, ir::DType::kBf16, true).total(),
            of_linear(without, 4096, ir::DType::kBf16, true).total());
  EXPECT_EQ(of_linear(with, 4096, ir::DType::kF32).total(),
            of_linear(without, 4096, ir::DType::kF32).total());
}

TEST(CostModel, AProductOfFewRowsWaitsForMemory) {
  MachineProfile p = generic_cpu("avx512");
  p.half_extent = 0;
  p.memory_bandwidth = p.cache_bandwidth = 20e9;
  const CostModel model(p, 1);
  const auto products = static_cast<size_t>(Part::kProducts);
  EXPECT_GT(of_linear(model, 1, ir::DType::kF32).by_memory[products], 0);
  EXPECT_EQ(of_linear(model, 4096, ir::DType::kF32).by_memory[products], 0);
}

TEST(CostModel, SecondsGrowWithRows) {
  const CostModel model(generic_cpu("avx512"), 2);
  double before = 0;
  for (int64_t rows = 1; rows <= 8192; rows *= 2) {
    const double seconds = of_linear(model, rows, ir::DType::kF32).total();
    EXPECT_GT(seconds, before) << rows;
    before = seconds;
  }
}

OpWork work(std::string_view kind, double m, double n, double k) {
  return {.kind = kind, .type = ProductType::kF32, .extents = {m, n, k}, .work = 2 * m * n * k};
}

TEST(CostModel, GoesThroughItsPoints) {
  MachineProfile p = generic_cpu("avx512");
  p.points = {{"linear", ProductType::kF32, {64, 64, 64}, 1e10},
              {"linear", ProductType::kF32, {1024, 1024, 1024}, 1e11},
              {"linear_dw", ProductType::kF32, {64, 64, 64}, 3e10}};
  const CostModel model(p, 1);
  EXPECT_NEAR(model.measured_rate(work("linear", 64, 64, 64)), 1e10, 1e8);
  EXPECT_NEAR(model.measured_rate(work("linear", 1024, 1024, 1024)), 1e11, 1e9);
  const double between = model.measured_rate(work("linear", 256, 256, 256));
  EXPECT_NEAR(between, std::sqrt(1e10 * 1e11), 1e9);
  EXPECT_NEAR(model.measured_rate(work("linear", 4096, 1024, 8192)), 1e11, 1e9) << "rates saturate";
  EXPECT_NEAR(model.measured_rate(work("linear", 8, 64, 2)), 1e10, 1e8);
  EXPECT_NEAR(model.measured_rate(work("linear_dw", 64, 64, 64)), 3e10, 1e8) << "of its own kind";
  EXPECT_EQ(model.measured_rate(work("attention", 64, 64, 64)), 0) << "nothing was measured";
}

TEST(ThreadShares, AreMeasuredOrBetweenWhatWas) {
  MachineProfile p = generic_cpu("avx512");
  EXPECT_EQ(thread_shares(p, 6).products, 6) << "of the built-in rates each thread has as much";
  p.threads = 16;
  p.rates = "calibrated";
  EXPECT_EQ(thread_shares(p, 4).memory_bound, 0.25) << "in proportion, where nothing is known";
  p.fewer_threads = {{2, 0.2, 0.2, 0.5, 0.5}, {8, 0.8, 0.8, 0.5, 1.0}};
  EXPECT_EQ(thread_shares(p, 8).products, 0.8);
  EXPECT_NEAR(thread_shares(p, 4).products, 0.4, 1e-12);
  EXPECT_NEAR(thread_shares(p, 4).memory_bound, 0.5, 1e-12) << "two threads have all that the memory gives";
  EXPECT_EQ(thread_shares(p, 1).products, 0.1);
  EXPECT_EQ(thread_shares(p, 16).products, 1);
  EXPECT_EQ(thread_shares(p, 32).products, 1) << "there are no more CPUs";
}

TEST(ThreadShares, AreOfTheKindOfOp) {
  MachineProfile p = generic_cpu("avx512");
  p.rates = "calibrated", p.threads = 2;
  p.points = {{"linear", ProductType::kF32, {64, 64, 64}, 1e10},
              {"attention", ProductType::kF32, {64, 64, 64}, 1e10},
              {"swiglu", ProductType::kF32, {1 << 20, 1, 1}, 1e10},
              {"adamw_sweep", ProductType::kF32, {1 << 20, 1, 1}, 1e10}};
  p.fewer_threads = {{1, 0.5, 0.25, 0.75, 0.875}};
  const CostModel model(p, 1);
  EXPECT_NEAR(model.measured_rate(work("linear", 64, 64, 64)), 0.5e10, 1e5);
  EXPECT_NEAR(model.measured_rate(work("attention", 64, 64, 64)), 0.25e10, 1e5);
  EXPECT_NEAR(model.measured_rate(work("swiglu", 1 << 20, 1, 1)), 0.75e10, 1e5);
  EXPECT_NEAR(model.measured_rate(work("adamw_sweep", 1 << 20, 1, 1)), 0.875e10, 1e5);
}

TEST(CostModel, WhatRunsTookCorrectsOneKind) {
  MachineProfile p = generic_cpu("avx512");
  const double before = of_linear(CostModel(p, 1), 4096, ir::DType::kF32).total();
  p.factors = {{"linear", ProductType::kF32, 2.0}, {"linear_dw", ProductType::kF32, 8.0}};
  EXPECT_NEAR(of_linear(CostModel(p, 1), 4096, ir::DType::kF32).total() / before, 2.0, 0.01);
}

}  // namespace
}  // namespace plimsoll::planner
