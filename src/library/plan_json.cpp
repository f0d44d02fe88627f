#include "library/plan_json.h"

#include "planner/report/budget.h"

namespace plimsoll::library {
namespace {

io::Tree number(int64_t value) { return io::Tree::of(value); }

/// What both kinds of plans say, over the event's names.
void set_common(const planner::PlanReport& report, int64_t peak_bytes, int64_t least_bytes, io::Tree& tree) {
  tree.set("fits", io::Tree::of(report.fits));
  tree.set("peak_bytes", number(peak_bytes));
  tree.set("least_bytes", report.fits ? io::Tree{} : number(least_bytes));
  tree.set("budget_bytes", number(report.budget_bytes));
  tree.set("seconds", report.has_time() ? io::Tree::of(report.seconds_estimated) : io::Tree{});
  tree.set("num_parameters", number(report.num_parameters));
  io::Tree pools = io::Tree::map();
  for (const planner::PoolReport& pool : report.pools) pools.set(pool.name, number(pool.peak_bytes()));
  tree.set("pools", std::move(pools));
  io::Tree recomputed = io::Tree::list();
  for (const std::string& layer : report.recompute_set) recomputed.items.push_back(io::Tree::of(layer));
  tree.set("recomputed", std::move(recomputed));
  tree.set("offload", io::Tree::of(report.offload));
}

io::Tree shape_tree(const ir::Shape& shape) {
  io::Tree list = io::Tree::list();
  for (const int64_t extent : shape.dims()) list.items.push_back(number(extent));
  return list;
}

io::Tree parameter_tree(const models::Parameter& parameter) {
  const models::ParameterView& view = parameter.views.front();
  io::Tree tree = io::Tree::map({{"name", io::Tree::of(parameter.name)},
                                 {"shape", shape_tree(view.file_shape())},
                                 {"trained", io::Tree::of(parameter.trained)}});
  if (view.form == models::FileForm::kFilters) tree.set("stored", shape_tree(view.shape));
  return tree;
}

}  // namespace

io::Tree plan_tree(const OwnPlan& plan) {
  io::Tree tree = planner::plan_event(plan.report());
  set_common(plan.report(), plan.peak_bytes(), plan.least_bytes(), tree);
  // Classes that a model has nothing of are there all the same.
  io::Tree classes = io::Tree::map({{"parameters", number(0)},
                                    {"optimizer_state", number(0)},
                                    {"gradients", number(0)},
                                    {"activations", number(0)}});
  for (const auto& [name, bytes] : plan.report().classes) classes.set(name, number(bytes));
  tree.set("classes", std::move(classes));
  io::Tree inputs = io::Tree::list(), parameters = io::Tree::list();
  for (const TracedInput& input : plan.trace().inputs())
    inputs.items.push_back(io::Tree::map({{"name", io::Tree::of(input.name)},
                                          {"dtype", io::Tree::of(std::string(type_name(input.type.dtype)))},
                                          {"shape", shape_tree(input.type.shape)}}));
  for (const models::Parameter& parameter : plan.prepared().model->parameters())
    parameters.items.push_back(parameter_tree(parameter));
  tree.set("inputs", std::move(inputs));
  io::Tree buffers = io::Tree::list();
  for (const TracedBuffer& buffer : plan.trace().buffers())
    buffers.items.push_back(
        io::Tree::map({{"name", io::Tree::of(buffer.name)},
                       {"dtype", io::Tree::of(std::string(buffer.options.is_count ? "int64" : "float32"))},
                       {"shape", shape_tree(buffer.shape)}}));
  tree.set("parameters", std::move(parameters));
  tree.set("buffers", std::move(buffers));
  return tree;
}

io::Tree plan_tree(const planner::PlanReport& report) {
  io::Tree tree = planner::plan_event(report);
  const planner::Budget* over = planner::exceeded(report, report.budgets);
  const int64_t least = over == nullptr ? 0 : planner::bounded_bytes(report, over->bounded);
  set_common(report, report.process_peak_bytes(), least, tree);
  return tree;
}

}  // namespace plimsoll::library
