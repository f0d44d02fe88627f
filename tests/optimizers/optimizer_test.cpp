// What all optimizers share, and that the list names every file of the folder.
#include "optimizers/optimizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/tensor_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

TEST(OptimizerTest, AppendsNormClipAndAnUpdateAParameter) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", {ir::DType::kF32, {4, 4}}, ir::StateClass::kParameter});
  ASSERT_TRUE(append_update(b, {{"w", ops::fill(b, {4, 4}, 0.5)}}, {}).ok());
  EXPECT_NE(graph.find_state("adamw.m.w"), nullptr);
  EXPECT_NE(graph.find_state("adamw.v.w"), nullptr);
  EXPECT_NE(graph.find_state(kGradNormState), nullptr);
}

/// Masters are what is updated, in f32; moments are in their dtype, drawn for where nothing f32 stands behind
/// them.
TEST(OptimizerTest, KeepsStateAsItIsTold) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", {ir::DType::kBf16, {4, 4}}, ir::StateClass::kParameter});
  const ir::ValueId random = b.state({"random", {ir::DType::kI32, {4}}, ir::StateClass::kScalars});
  const OptimizerOptions options{.state = {.masters = true, .moments = ir::DType::kBf16, .stochastic = true}};
  ASSERT_TRUE(append_update(b, {{"w", ops::fill(b, {4, 4}, 0.5)}}, options, random).ok());
  ASSERT_NE(graph.find_state("master.w"), nullptr);
  EXPECT_EQ(graph.find_state("master.w")->state_class, ir::StateClass::kMasterWeight);
  EXPECT_EQ(graph.find_state("master.w")->type.dtype, ir::DType::kF32);
  EXPECT_EQ(graph.find_state("adamw.v.w")->type.dtype, ir::DType::kBf16);
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->name != "adamw") continue;
    EXPECT_EQ(op.attrs.str("copy"), "bf16");
    EXPECT_NE(op.attrs.find("key"), nullptr);
  }
}

/// One f32 average a parameter, saved as the optimizer's states are.
TEST(OptimizerTest, AveragesWhatItUpdates) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", {ir::DType::kF32, {4, 4}}, ir::StateClass::kParameter});
  const OptimizerOptions options{.averages = true};
  ASSERT_TRUE(append_update(b, {{"w", ops::fill(b, {4, 4}, 0.5)}}, options).ok());
  const ir::StateDecl* average = graph.find_state(average_name("w"));
  ASSERT_NE(average, nullptr);
  EXPECT_EQ(average->type, (ir::TensorType{ir::DType::kF32, {4, 4}}));
  EXPECT_EQ(average->state_class, ir::StateClass::kOptimizerState);
  EXPECT_NE(graph.find_state(kAverageShareState), nullptr);
  const Update update{.parameter = "w", .gradient = {}};
  EXPECT_EQ(update_work(options, {4, 4}, update).state_bytes - update_work({}, {4, 4}, update).state_bytes,
            64);
}

TEST(OptimizerTest, NamesAnOptimizerThatIsNotThere) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const Status status = append_update(b, {}, {.name = "adamx"});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().what.find("adamx"), std::string::npos);
}

TEST(OptimizerTest, EveryOptimizerHasARuleAndItsOwnName) {
  std::set<std::string_view> names;
  for (const std::string_view name : optimizer_names()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    const OptimizerDef& def = *find_optimizer(name);
    for (const bool is_vector : {false, true})
      for (const bool flag : {false, true}) {
        const ir::Shape shape = is_vector ? ir::Shape{8} : ir::Shape{80, 80};
        const ir::ParameterKind kind = is_vector ? ir::ParameterKind::kVector : ir::ParameterKind::kLinear;
        const std::string_view rule = def.rule({shape, kind, flag, flag});
        const ops::UpdateRule* elementwise = ops::find_update_rule(rule);
        const ops::TensorRule* of_tensor = ops::find_tensor_rule(rule);
        ASSERT_TRUE(elementwise != nullptr || of_tensor != nullptr) << name << " " << rule;
        EXPECT_LE(elementwise != nullptr ? elementwise->num_fields : of_tensor->num_fields, def.num_fields)
            << name;
      }
  }
}

TEST(OptimizerTest, TheListNamesEveryFile) {
  const auto folder = std::filesystem::path(PLIMSOLL_TEST_DIR).parent_path() / "src" / "optimizers";
  const auto read = [](const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string list = read(folder / "optimizer_list.h");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string function = entry.path().stem().string() + "_optimizers";
    if (entry.path().extension() != ".cpp" || read(entry.path()).find(function + "()") == std::string::npos)
      continue;
    ++files;
    EXPECT_NE(list.find(function + "()"), std::string::npos) << function;
    EXPECT_NE(list.find(function, list.find("kOptimizerFiles")), std::string::npos) << function;
  }
  EXPECT_EQ(files, kOptimizerFiles.size());
}

TEST(Optimizer, AStackIsNoMatrix) {
  for (const std::string_view name : optimizer_names()) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const ir::TensorType type{ir::DType::kF32, {4, 16, 128}};
    b.state({"experts", type, ir::StateClass::kParameter});
    const Update stack{.parameter = "experts",
                       .gradient = b.state({"g", type, ir::StateClass::kInput}),
                       .is_hidden = true,
                       .kind = ir::ParameterKind::kStack};
    const OptimizerOptions options{.name = std::string(name)};
    const Status status = append_update(b, {stack}, options);
    const bool is_refused = name == "muon" || name == "adafactor";
    EXPECT_EQ(status.ok(), !is_refused) << name;
    EXPECT_EQ(update_work(options, type.shape, stack).flops > 0, !is_refused) << name;
    if (is_refused) {
      EXPECT_EQ(status.error().what,
                fmt::format("{} has no rule for experts, a stack of linear layers [4,16,128]", name));
    }
  }
}

/// A convolution's filters are no matrices: Muon updates them as it does embeddings, Adafactor has a rule for
/// them.
TEST(Optimizer, UpdatesFilters) {
  for (const std::string_view name : {"adamw", "sgd", "lion", "muon", "adafactor"}) {
    ir::Graph graph;
    ir::Builder b(graph, ops::find_op);
    const ir::TensorType type{ir::DType::kF32, {8, 3, 3, 4}};
    b.state({"conv", type, ir::StateClass::kParameter});
    const Update filters{.parameter = "conv",
                         .gradient = b.state({"g", type, ir::StateClass::kInput}),
                         .is_hidden = true,
                         .kind = ir::ParameterKind::kFilters};
    const Status status = append_update(b, {filters}, {.name = std::string(name)});
    EXPECT_TRUE(status.ok()) << name;
    const bool has_rows = graph.find_state("adafactor_filters.row.conv") != nullptr;
    EXPECT_EQ(has_rows, name == "adafactor");
  }
}

}  // namespace
}  // namespace plimsoll::optimizers
