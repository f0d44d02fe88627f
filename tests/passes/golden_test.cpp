// The text of programs before and after each pass: tests/golden/<pass>/<case>.before.ir and .after.ir. Lines
// that begin with "//" say what to see. PLIMSOLL_UPDATE_GOLDEN=1 writes what the passes give now; read the
// difference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "passes/fusion/common_subexpressions.h"
#include "passes/fusion/dead_code.h"
#include "passes/fusion/fuse_activations.h"
#include "passes/fusion/fuse_attention.h"
#include "passes/fusion/fuse_bias_grads.h"
#include "passes/fusion/fuse_casts.h"
#include "passes/fusion/fuse_conv_norms.h"
#include "passes/fusion/fuse_embedding_grads.h"
#include "passes/fusion/fuse_head_loss.h"
#include "passes/fusion/fuse_linear_adds.h"
#include "passes/fusion/fuse_norm_grads.h"
#include "passes/fusion/fuse_norms.h"
#include "passes/fusion/fuse_optimizer.h"
#include "passes/fusion/fuse_pointwise.h"
#include "passes/fusion/half_precision_norms.h"
#include "passes/fusion/share_casts.h"
#include "passes/fusion/small_m.h"
#include "passes/memory/in_place.h"
#include "passes/offload/chunked_update.h"
#include "passes/order/schedule.h"
#include "passes/recompute/recompute_cheap.h"
#include "passes/recompute/second_backward.h"
#include "passes/training/accumulate.h"
#include "passes/training/autodiff.h"
#include "passes/training/fp8.h"
#include "passes/training/optimizer_in_backward.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;

/// Runs a pass; what it reports beside the graph, as comment lines.
using RunPass = std::function<Result<std::string>(Graph&)>;

template <auto kPass>
Result<std::string> plain(Graph& graph) {
  PLIMSOLL_TRY(kPass(graph, {}));
  return std::string();
}

ir::OpId loss_op(const Graph& graph) {
  for (const ir::OpId id : graph.order())
    if (graph.op(id).def->name == "cross_entropy" || graph.op(id).def->name == "head_loss") return id;
  return {};
}

Result<std::string> run_autodiff(Graph& graph) {
  passes::AutodiffOptions options;
  options.loss = graph.op(loss_op(graph)).outputs[0];
  for (const ir::OpId id : graph.order()) {
    const ir::Op& op = graph.op(id);
    if (op.def->name == "state" &&
        graph.find_state(op.attrs.str("name"))->state_class == ir::StateClass::kParameter)
      options.wrt.push_back(op.outputs[0]);
  }
  PLIMSOLL_TRY(passes::autodiff(graph, options));
  return std::string();
}

/// The program's gradient states, in order, accumulate the results that can be accumulated, in order.
Result<std::string> run_accumulate(Graph& graph) {
  std::vector<passes::Accumulation> list;
  size_t state = 0;
  const auto& states = graph.states();
  for (const ir::OpId id : graph.order())
    for (size_t i = 0; i < graph.op(id).outputs.size(); ++i) {
      if (ir::accumulator_operand(graph.op(id), i) < 0) continue;
      while (states[state].state_class != ir::StateClass::kGradient) ++state;
      list.push_back({graph.op(id).outputs[i], states[state++].name, false});
    }
  PLIMSOLL_TRY(passes::accumulate(graph, list));
  return std::string();
}

/// The recipe is the program's name; backward begins where the program reads "dy". What is told of products.
Result<std::string> run_fp8(Graph& graph) {
  passes::Fp8PassOptions options;
  options.fp8.form.recipe = numerics::find_fp8_recipe(graph.name).value();
  options.fp8.history_len = 4;
  options.fp8.ends_step = true;
  options.fp8.random_state = "random";
  for (const ir::OpId id : graph.order()) {
    if (graph.op(id).def->name == "state" && graph.op(id).attrs.str("name") == "dy") break;
    options.last_forward_op = id;
  }
  PLIMSOLL_ASSIGN(const auto report, passes::fp8(graph, options));
  std::string text;
  for (const passes::Fp8Product& p : report.products)
    text += "// " + p.layer + " " + p.product + ":" + (p.left.empty() ? "" : " " + p.left + " x " + p.right) +
            (p.note.empty() ? "" : " " + p.note) + "\n";
  return text;
}

Result<std::string> run_recompute_cheap(Graph& graph) {
  PLIMSOLL_ASSIGN(const auto report, passes::recompute_cheap(graph, {.last_forward_op = loss_op(graph)}));
  return "// recomputed " + std::to_string(report.recomputed) + ", saved " + to_string(report.saved) + "\n";
}

Result<std::string> run_small_m(Graph& graph) {
  PLIMSOLL_TRY(passes::small_m(graph, {.most_rows = 3}));
  return std::string();
}

Result<std::string> run_share_casts(Graph& graph) {
  PLIMSOLL_ASSIGN(const auto report, passes::share_casts(graph, {.last_forward_op = loss_op(graph)}));
  return "// shared " + std::to_string(report.shared) + "\n";
}

Result<std::string> run_fuse_casts(Graph& graph) {
  PLIMSOLL_ASSIGN(const auto report, passes::fuse_casts(graph));
  return "// copied " + std::to_string(report.copied) + ", shortened " + std::to_string(report.shortened) +
         "\n";
}

Result<std::string> run_in_place(Graph& graph) {
  PLIMSOLL_ASSIGN(const auto report, passes::in_place(graph));
  std::string text;
  for (const auto& [id, alias] : report.aliases)
    text += "// " + std::string(graph.op(id).def->name) + ": result " + std::to_string(alias.output) +
            " takes the place of operand " + std::to_string(alias.input) + "\n";
  return text;
}

Result<std::string> run_optimizer_in_backward(Graph& graph) {
  PLIMSOLL_ASSIGN(const auto report, passes::optimizer_in_backward(graph));
  return "// moved " + std::to_string(report.moved) + "\n";
}

Result<std::string> run_schedule(Graph& graph) {
  PLIMSOLL_ASSIGN(const auto report, passes::schedule(graph));
  return "// peak " + std::to_string(report.peak_bytes_before) + " -> " +
         std::to_string(report.peak_bytes_after) + "\n";
}

Result<std::string> run_second_backward(Graph& graph) {
  PLIMSOLL_TRY(passes::second_backward(graph, {.last_forward_op = loss_op(graph)}));
  return std::string();
}

Result<std::string> run_chunked_update(Graph& graph) {
  passes::UpdateWindowsOptions options;
  options.offload.spaces[static_cast<size_t>(passes::OffloadClass::kOptimizer)] = ir::MemorySpace::kDisk;
  options.offload.least_bytes = 1;
  options.offload.window_elements = 16;
  PLIMSOLL_ASSIGN(const auto report, passes::chunked_update(graph, options));
  return "// cut " + std::to_string(report.cut) + " into " + std::to_string(report.windows) + "\n";
}

const std::map<std::string, RunPass>& runs() {
  static const std::map<std::string, RunPass> kRuns = {
      {"accumulate", run_accumulate},
      {"autodiff", run_autodiff},
      {"common_subexpressions", plain<passes::common_subexpressions>},
      {"dead_code", plain<passes::dead_code>},
      {"few_rows", run_small_m},
      {"fp8", run_fp8},
      {"fuse_activations", plain<passes::fuse_activations>},
      {"fuse_attention", plain<passes::fuse_attention>},
      {"fuse_bias_grads", plain<passes::fuse_bias_grads>},
      {"fuse_casts", run_fuse_casts},
      {"fuse_conv_norms", plain<passes::fuse_conv_norms>},
      {"fuse_embedding_grads", plain<passes::fuse_embedding_grads>},
      {"fuse_head_loss", plain<passes::fuse_head_loss>},
      {"fuse_linear_adds", plain<passes::fuse_linear_adds>},
      {"fuse_norm_grads", plain<passes::fuse_norm_grads>},
      {"fuse_norms", plain<passes::fuse_norms>},
      {"fuse_optimizer", plain<passes::fuse_optimizer>},
      {"fuse_pointwise", plain<passes::fuse_pointwise>},
      {"in_place", run_in_place},
      {"optimizer_in_backward", run_optimizer_in_backward},
      {"recompute_cheap", run_recompute_cheap},
      {"schedule", run_schedule},
      {"second_backward", run_second_backward},
      {"share_casts", run_share_casts},
      {"short_norms", plain<passes::half_precision_norms>},
      {"update_windows", run_chunked_update},
  };
  return kRuns;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void check_case(const std::string& pass, const std::filesystem::path& before) {
  SCOPED_TRACE(before.string());
  auto graph = ir::parse(read(before), ops::find_op);
  ASSERT_TRUE(graph) << graph.error().message();
  const Status valid = ir::verify(*graph);
  ASSERT_TRUE(valid) << valid.error().message();
  const auto notes = runs().at(pass)(*graph);
  ASSERT_TRUE(notes) << notes.error().message();
  const Status still_valid = ir::verify(*graph);
  ASSERT_TRUE(still_valid) << still_valid.error().message();
  const std::string found = *notes + ir::print(*graph);
  std::filesystem::path after = before;
  after.replace_extension().replace_extension(".after.ir");
  if (std::getenv("PLIMSOLL_UPDATE_GOLDEN") != nullptr) std::ofstream(after) << found;
  EXPECT_EQ(read(after), found);
}

TEST(Golden, EveryCase) {
  const std::filesystem::path folder = std::string(PLIMSOLL_TEST_DIR) + "/golden";
  for (const auto& [pass, run] : runs()) {
    size_t cases = 0;
    ASSERT_TRUE(std::filesystem::is_directory(folder / pass)) << "no golden text for " << pass;
    for (const auto& entry : std::filesystem::directory_iterator(folder / pass)) {
      if (!entry.path().filename().string().ends_with(".before.ir")) continue;
      check_case(pass, entry.path());
      ++cases;
    }
    EXPECT_GT(cases, 0U) << pass;
  }
}

}  // namespace
}  // namespace plimsoll::passes
