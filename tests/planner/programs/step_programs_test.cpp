#include "planner/programs/step_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "backends/cpu/cpu_target.h"
#include "planner/cost/overhead.h"
#include "planner/preset.h"
#include "planner/report/report.h"
#include "planner/small_step.h"
#include "sanitizer.h"

namespace plimsoll::planner {
namespace {

TEST(StepProgramsTest, ClassesAddUpToPersistentAndArena) {
  const cpu::CpuTarget target(2);
  for (const char* name : {"smollm-135m", "gpt2"})
    for (const bool accumulate : {false, true}) {
      StepOptions o = options(2, 200);
      o.accumulate = accumulate;
      const auto programs = build_training_programs(*preset(name), o, target);
      ASSERT_TRUE(programs.ok());
      PlanReport report;
      describe_session(programs->session, report);
      int64_t sum = 0;
      for (const auto& [label, bytes] : report.classes) {
        EXPECT_GE(bytes, 0) << label;
        sum += bytes;
      }
      EXPECT_EQ(sum, report.persistent_bytes + report.arena_bytes) << name << accumulate;
    }
}

TEST(StepProgramsTest, FullTrainingInFp32Holds16BytesAParameter) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  StepOptions o = options(1, 128);
  o.accumulate = true;
  const auto programs = build_training_programs(*model, o, target);
  ASSERT_TRUE(programs.ok());
  const int64_t n = model->num_parameters();
  EXPECT_EQ(n, 134'515'008);
  EXPECT_EQ(programs->session.class_bytes(ir::StateClass::kParameter), 4 * n);
  EXPECT_EQ(programs->session.class_bytes(ir::StateClass::kOptimizerState), 8 * n);
  // The tied table is used twice, and has an accumulator for each use.
  EXPECT_EQ(programs->session.class_bytes(ir::StateClass::kGradient), 4 * (n + 49'152 * 576));
}

/// Weights, gradients, two moments: of each a rank has its piece, and few tensors at a time are whole.
TEST(StepProgramsTest, RanksThatShareAllHoldTheirPartOfIt) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  StepOptions o = options(1, 128);
  o.accumulate = o.eval = o.shares_gradients = o.optimizer.shares_parameters = true;
  o.ranks = o.optimizer.ranks = 2;
  const auto programs = build_training_programs(*model, o, target);
  ASSERT_TRUE(programs.ok()) << programs.error().message();
  const auto half = static_cast<double>(model->num_parameters()) / 2;
  for (const auto& [state_class, bytes] : {std::pair{ir::StateClass::kParameter, 4},
                                           {ir::StateClass::kGradient, 4},
                                           {ir::StateClass::kOptimizerState, 8}})
    EXPECT_NEAR(static_cast<double>(programs->session.class_bytes(state_class)), bytes * half,
                0.02 * bytes * half);
  PlanReport report;
  describe_session(programs->session, report);
  const std::map<std::string, int64_t> classes(report.classes.begin(), report.classes.end());
  EXPECT_EQ(classes.at("gathered_parameters"), int64_t{4} * (49'152 * 576 + 3'538'944))
      << "at the peak the head's table, and the last block between its two uses";
  EXPECT_EQ(programs->session.find_shared("lm_head.weight"), nullptr) << "it is the embedding's";
}

/// Of 32 blocks' gradients that of the block at hand is left, and of a head what it is with the loss.
TEST(StepProgramsTest, InBackwardTheOptimizerLeavesFewGradientsAlive) {
  const cpu::CpuTarget target(2);
  const auto model = tiny_llama();
  StepOptions o = options(1, 8);
  o.optimizer.max_grad_norm = {};
  const auto arena = [&](bool in_backward) {
    o.optimizer_in_backward = in_backward;
    const auto programs = build_training_programs(*model, o, target);
    EXPECT_TRUE(programs.ok());
    return programs->session.device().arena;
  };
  const int64_t behind = arena(false), in = arena(true);
  EXPECT_GT(behind, 4 * model->num_parameters());
  EXPECT_LT(in, behind / 4);
  o.optimizer.max_grad_norm = 1.0;
  EXPECT_GT(arena(true), behind / 2) << "the norm to clip by wants all gradients";
  o.second_backward = true;
  EXPECT_LT(arena(true), behind / 4);
}

/// bf16 halves what a block keeps but the residual stream; of that it keeps every other sum.
TEST(StepProgramsTest, LowPrecisionShrinksActivations) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  const auto bytes = [&](ops::Precision precision, bool short_residual) {
    StepOptions o = options(4, 512);
    o.pipeline.precision = precision;
    o.pipeline.short_residual = short_residual;
    const auto programs = build_training_programs(*model, o, target);
    EXPECT_TRUE(programs.ok());
    PlanReport report;
    describe_session(programs->session, report);
    std::map<std::string, int64_t, std::less<>> classes(report.classes.begin(), report.classes.end());
    // The tied head's gradient, alive from the loss on.
    EXPECT_EQ(classes.at("gradients"), int64_t{4} * 49'152 * 576) << ops::name(precision);
    return static_cast<double>(classes.at("activations"));
  };
  const double full = bytes(ops::Precision::kF32, false);
  EXPECT_LT(bytes(ops::Precision::kBf16, false), 0.56 * full);
  EXPECT_LT(bytes(ops::Precision::kBf16, true), 0.51 * full);
  EXPECT_EQ(bytes(ops::Precision::kTf32, false), full);
}

/// Bytes a parameter by class, of the programs at the ends of a step: where all gradients are there.
struct Recipe {
  const char* name;
  ir::DType weights;
  optimizers::StateDtypes state;
  bool accumulate;
  int64_t parameters, masters, gradients, moments;
};
constexpr auto kF32 = ir::DType::kF32, kBf16 = ir::DType::kBf16;
const Recipe kRecipes[] = {
    {"plain fp32", kF32, {}, false, 4, 0, 4, 8},
    {"bf16 gradients, masters", kBf16, {.masters = true, .gradients = kBf16}, false, 2, 4, 2, 8},
    {"accumulated, masters", kBf16, {.masters = true, .gradients = kBf16}, true, 2, 4, 4, 8},
    {"accumulated in bf16, masters",
     kBf16,
     {.masters = true, .gradients = kBf16, .accumulators = kBf16},
     true,
     2,
     4,
     2,
     8},
    {"fp32 gradients, masters", kBf16, {.masters = true}, false, 2, 4, 4, 8},
    {"pure bf16", kBf16, {.gradients = kBf16, .moments = kBf16, .stochastic = true}, false, 2, 0, 2, 4},
    {"fp16, masters", ir::DType::kF16, {.masters = true, .gradients = ir::DType::kF16}, false, 2, 4, 2, 8},
    {"cast while packing", kF32, {.gradients = kBf16}, false, 4, 0, 2, 8},
};

TEST(StepProgramsTest, EachRecipeHoldsItsBytesAParameter) {
  const cpu::CpuTarget target(2);
  for (const char* name : {"smollm-135m", "llama-tiny"})
    for (const Recipe& r : kRecipes) {
      const bool is_small = std::string_view(name) == "llama-tiny";
      if (kSanitizer && !is_small) continue;
      auto model = is_small ? tiny_llama() : preset(name);
      model->keep_in(r.weights);
      StepOptions o = options(1, is_small ? 8 : 32);
      o.accumulate = r.accumulate;
      const bool is_half = r.weights == ir::DType::kF16;
      o.pipeline.precision = is_half                                    ? ops::Precision::kF16
                             : r.name == std::string_view("plain fp32") ? ops::Precision::kF32
                                                                        : ops::Precision::kBf16;
      o.optimizer.state = r.state;
      const auto programs = build_training_programs(*model, o, target);
      ASSERT_TRUE(programs.ok()) << programs.error().message();
      PlanReport report;
      describe_session(programs->session, report);
      std::map<std::string, int64_t> classes(report.classes.begin(), report.classes.end());
      const int64_t n = model->num_parameters();
      // The tied table has an accumulator for each use.
      const int64_t twice = !is_small && r.accumulate ? 49'152 * 576 : 0;
      EXPECT_EQ(classes["parameters"], r.parameters * n) << name << ", " << r.name;
      EXPECT_EQ(classes["master_weights"], r.masters * n) << name << ", " << r.name;
      EXPECT_EQ(classes["optimizer_state"], r.moments * n) << name << ", " << r.name;
      if (twice == 0) {
        EXPECT_EQ(classes["gradients"], r.gradients * n) << name << ", " << r.name << ", " << report.peak_op;
      } else {
        EXPECT_EQ(programs->session.class_bytes(ir::StateClass::kGradient), r.gradients * (n + twice));
      }
    }
}

/// Weights of 16 bits leave the residual stream f32, masters the order of the update; nothing else is cast.
TEST(StepProgramsTest, LowPrecisionStateAddsNoSweep) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  model->keep_in(kBf16);
  StepOptions o = options(1, 256);
  o.pipeline.precision = ops::Precision::kBf16;
  o.optimizer.state = {.masters = true, .gradients = kBf16};
  const auto programs = build_training_programs(*model, o, target);
  ASSERT_TRUE(programs.ok());
  const ir::Graph& step = programs->session.programs[0].graph;
  std::map<std::string_view, int> count;
  for (const ir::OpId id : step.order()) {
    const ir::Op& op = step.op(id);
    if (!op.recomputed) ++count[op.def->name];
    if (op.def->name == "embedding" || op.def->name == "linear_dw") {
      EXPECT_EQ(step.type(op.outputs[0]).dtype, op.def->name == "embedding" ? kF32 : kBf16);
    }
  }
  EXPECT_EQ(count["adamw_sweep"], 1);
  EXPECT_EQ(count["sum_squares_sweep"], 1);
  EXPECT_EQ(count["embedding_grad_add"], 1);
  for (const char* none : {"cast", "copy", "adamw", "add"}) EXPECT_EQ(count[none], 0) << none;
}

/// Parameters of 16 bits are drawn as they are kept: no table exists in f32.
TEST(StepProgramsTest, WeightsAreDrawnInTheirDtype) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  model->keep_in(kBf16);
  StepOptions o = options(1, 32);
  o.optimizer.state = {.gradients = kBf16, .moments = kBf16};
  const auto programs = build_training_programs(*model, o, target);
  ASSERT_TRUE(programs.ok());
  const passes::Program& init =
      programs->session
          .programs[static_cast<size_t>(programs->session.find_program({passes::ProgramRole::kInit}))];
  EXPECT_LT(init.plan.device().arena_bytes, 4 * model->num_parameters() / 1000);
}

TEST(StepProgramsTest, TheSameInputGivesTheSamePlan) {
  const cpu::CpuTarget target(2);
  const auto model = preset("smollm-135m");
  const auto a = build_training_programs(*model, options(2, 256), target),
             b = build_training_programs(*model, options(2, 256), target);
  ASSERT_TRUE(a.ok() && b.ok());
  for (size_t p = 0; p < a->session.programs.size(); ++p)
    EXPECT_EQ(a->session.programs[p].plan.offsets, b->session.programs[p].plan.offsets);
}

TEST(StepProgramsTest, FusesWhatATransformerIsMadeOf) {
  const cpu::CpuTarget target(2);
  const auto programs = build_training_programs(*preset("smollm-135m"), options(1, 256), target);
  ASSERT_TRUE(programs.ok());
  const ir::Graph& step = programs->session.programs[0].graph;
  std::map<std::string_view, int> count;
  for (const ir::OpId id : step.order()) ++count[step.op(id).def->name];
  EXPECT_EQ(count["attention_packed"], 30);
  EXPECT_EQ(count["attention_packed_grad"], 30);
  EXPECT_EQ(count["head_loss"], 1);
  EXPECT_EQ(count["swiglu_grad"], 30);
  EXPECT_EQ(count["adamw_sweep"], 1);
  EXPECT_EQ(count["embedding_grad_add"], 1);
  for (const char* unfused :
       {"silu", "mul", "rope", "attention", "cross_entropy", "adamw", "concat", "copy", "add"})
    EXPECT_EQ(count[unfused], 0) << unfused;
}

TEST(StepProgramsTest, SgdHoldsOneStateOrNone) {
  const cpu::CpuTarget target(2);
  const auto model = preset("gpt2");
  for (const bool momentum : {false, true}) {
    StepOptions o = options(1, 64);
    o.optimizer = {"sgd", 1.0, momentum};
    const auto programs = build_training_programs(*model, o, target);
    ASSERT_TRUE(programs.ok());
    EXPECT_EQ(programs->session.class_bytes(ir::StateClass::kOptimizerState),
              momentum ? 4 * model->num_parameters() : 0);
    const ir::Graph& step = programs->session.programs[0].graph;
    const auto sweeps = std::count_if(step.order().begin(), step.order().end(), [&](ir::OpId id) {
      return step.op(id).def->name == (momentum ? "sgd_momentum_sweep" : "sgd_sweep");
    });
    EXPECT_EQ(sweeps, 1);
  }
}

TEST(OverheadTest, IsStoredAndReadBack) {
  const ProcessOverhead o{.base_bytes = 5, .per_op_bytes = 7, .per_thread_bytes = 11};
  EXPECT_EQ(o.bytes(2, 3), 5 + 14 + 33);
  EXPECT_GT(load_overhead().base_bytes, 0);
}

}  // namespace
}  // namespace plimsoll::planner
