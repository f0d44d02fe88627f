// What all optimizers share, and that the list names every file of the folder.
#include "optimizers/optimizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/update_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

TEST(OptimizerTest, AppendsNormClipAndAnUpdateAParameter) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  b.state({"w", {ir::DType::kF32, {4, 4}}, ir::StateClass::kParameter});
  ASSERT_TRUE(append_update(b, {{"w", ops::fill(b, {4, 4}, 0.5), kDecay}}, {}).ok());
  EXPECT_NE(graph.find_state("adamw.m.w"), nullptr);
  EXPECT_NE(graph.find_state("adamw.v.w"), nullptr);
  EXPECT_NE(graph.find_state(kGradNormState), nullptr);
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
    const ops::UpdateRule* rules[] = {ops::find_update_rule(def.rule({})),
                                      ops::find_update_rule(def.rule({.momentum = true}))};
    ASSERT_TRUE(rules[0] != nullptr && rules[1] != nullptr) << name;
    EXPECT_EQ(rules[0]->num_fields, rules[1]->num_fields) << name;
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

}  // namespace
}  // namespace plimsoll::optimizers
