#include "passes/offload/chunked_update.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ops/tensor_rules.h"
#include "ops/update_rules.h"
#include "passes/memory/storage_groups.h"
#include "passes/rewriter.h"

namespace plimsoll::passes {
namespace {

using ir::Op;
using ir::OpId;
using ir::ValueId;

/// Two windows take this part of the largest kernel: what `offload` lets copies ahead and behind add.
constexpr int64_t kWindowsPart = 8;

/// How a rule's op is cut: which operands and results go by elements, and how.
struct WindowedRule {
  const ops::UpdateRule* elementwise = nullptr;
  const ops::TensorRule* blockwise = nullptr;

  explicit WindowedRule(std::string_view op)
      : elementwise(ops::find_update_rule(op)), blockwise(ops::find_tensor_rule(op)) {
    if (elementwise != nullptr && elementwise->name != op) elementwise = nullptr;  // of many tensors
    if (blockwise != nullptr && blockwise->block_elements == 0) blockwise = nullptr;
  }
  [[nodiscard]] bool is_known() const { return elementwise != nullptr || blockwise != nullptr; }
  /// A window begins at a multiple of so many elements: four are drawn for at once.
  [[nodiscard]] int64_t unit() const { return blockwise == nullptr ? 4 : blockwise->block_elements; }
  /// param, grad, states
  [[nodiscard]] size_t num_operands() const {
    return elementwise != nullptr ? elementwise->num_operands() : blockwise->num_operands();
  }
  /// Of operand `i`, how many elements go with the first n of the parameter: whole blocks, or all.
  [[nodiscard]] int64_t elements(size_t i, int64_t n) const {
    if (elementwise != nullptr || i < 2) return n;
    return blockwise->states[i - 2].shape_of({ir::Shape{n}, {n}}).num_elements();
  }
  /// Of a result: the operand whose elements it has; a copy has the parameter's.
  [[nodiscard]] size_t operand_of(size_t result) const {
    const size_t operand = result == 0 ? 0 : 1 + result;
    return operand < num_operands() ? operand : 0;
  }
};

/// An update that may be cut.
struct Candidate {
  OpId op;
  int64_t unit = 1;
  int64_t elements = 0, loaded_bytes = 0;  ///< of the parameter; of the operands that are loaded
  /// Of one of the layers that repeat: as many ops more a layer would make a search several times as long.
  bool is_of_block = false;
};

/// What ops have in the arena at once, and for whose sake.
class Arena {
 public:
  Arena(const ir::Graph& graph, const UpdateWindowsOptions& options) : graph_(graph), options_(options) {}

  [[nodiscard]] std::optional<Candidate> candidate(OpId id) {
    const Op& op = graph_.op(id);
    const WindowedRule& rule = rules_.try_emplace(op.def, op.def->name).first->second;
    if (!rule.is_known() || ops::first_element(op.attrs) != 0) return std::nullopt;
    const Op& parameter = maker(op.inputs[0]);
    Candidate update{id, rule.unit(), graph_.type(op.inputs[0]).num_elements()};
    update.is_of_block = parameter.def->state == ir::StateAccess::kRead &&
                         block_of_state(parameter.attrs.str("name")) != ir::kNoBlock;
    for (size_t i = 0; i < rule.num_operands(); ++i)
      if (is_loaded(op.inputs[i])) update.loaded_bytes += graph_.type(op.inputs[i]).bytes().count;
    return update.loaded_bytes > 0 ? std::optional(update) : std::nullopt;
  }

  /// Of a kernel: operands that do not lie on the device for good, results of their own, scratch.
  [[nodiscard]] int64_t kernel_bytes(const Op& op) const {
    if (op.def->is_view || op.def->is_copy || op.def->state != ir::StateAccess::kNone) return 0;
    int64_t bytes =
        options_.workspace_bytes ? options_.workspace_bytes(ir::op_types(graph_, op)) : int64_t{0};
    for (auto v = op.inputs.begin(); v != op.inputs.end(); ++v)
      if (v->valid() && std::find(op.inputs.begin(), v, *v) == v && !is_resident(*v))
        bytes += graph_.type(*v).bytes().count;
    const std::vector<ir::Alias> consumed = ir::op_consumes(op);
    for (size_t i = 0; i < op.outputs.size(); ++i)
      if (std::ranges::find(consumed, static_cast<int32_t>(i), &ir::Alias::output) == consumed.end())
        bytes += graph_.type(op.outputs[i]).bytes().count;
    return bytes;
  }

 private:
  [[nodiscard]] const Op& maker(ValueId v) const {
    return graph_.op(graph_.value(view_root(graph_, v)).producer);
  }
  [[nodiscard]] bool is_offloaded(const Op& read) const {
    return offloaded_space(options_.offload, *graph_.find_state(read.attrs.str("name"))) !=
           ir::MemorySpace::kDevice;
  }
  /// Whether the value is brought for the op that reads it.
  [[nodiscard]] bool is_loaded(ValueId v) const {
    const Op& op = maker(v);
    if (op.def->state == ir::StateAccess::kRead) return is_offloaded(op);
    return options_.offload.space(OffloadClass::kGradients, op.block) != ir::MemorySpace::kDevice;
  }
  [[nodiscard]] bool is_resident(ValueId v) const {
    const Op& op = maker(v);
    return op.def->state == ir::StateAccess::kRead && !is_offloaded(op);
  }

  const ir::Graph& graph_;
  const UpdateWindowsOptions& options_;
  std::map<const ir::OpDef*, WindowedRule> rules_;
};

}  // namespace

std::vector<UpdateCut> find_update_cuts(const ir::Graph& graph, const UpdateWindowsOptions& options) {
  Arena arena(graph, options);
  std::vector<Candidate> candidates;
  std::vector<OpId> others;
  int64_t largest = 0;
  for (const OpId id : graph.order()) {
    const std::optional<Candidate> update = arena.candidate(id);
    if (!update)
      others.push_back(id);
    else if (update->is_of_block)
      largest = std::max(largest, update->loaded_bytes);
    else
      candidates.push_back(*update);
  }
  if (candidates.empty()) return {};
  for (const OpId id : others) largest = std::max(largest, arena.kernel_bytes(graph.op(id)));
  std::vector<UpdateCut> cuts;
  for (const Candidate& update : candidates) {
    const int64_t quantum = round_up(options.offload.window_elements, update.unit);
    const double per_element =
        static_cast<double>(update.loaded_bytes) / static_cast<double>(update.elements);
    const auto share = static_cast<int64_t>(static_cast<double>(largest / kWindowsPart / 2) / per_element);
    const int64_t window = std::max(share / quantum, int64_t{1}) * quantum;
    if (update.elements > 2 * window) cuts.push_back({update.op, window});
  }
  return cuts;
}

namespace {

class Cutter {
 public:
  Cutter(ir::Graph& graph, std::span<const ValueId> keep) : rw_(graph, keep) {}

  Result<UpdateWindowsReport> run(std::span<const UpdateCut> cuts) {
    for (const UpdateCut& c : cuts) {
      const std::vector<OpId> assigns = assignments_of(c.op);
      const bool becomes_states = std::ranges::all_of(assigns, &OpId::valid);
      if (becomes_states) cut(c.op, c.window, assigns);
    }
    PLIMSOLL_TRY(rw_.finish());
    return report_;
  }

 private:
  /// Of each result the assignment, where nothing else reads it and it may as well stand at the update: no op
  /// between them touches what the state held. Invalid: there is none.
  [[nodiscard]] std::vector<OpId> assignments_of(OpId update) const {
    std::vector<OpId> assigns;
    for (const ValueId v : rw_.op(update).outputs) {
      const bool is_alone = rw_.uses(v).size() == 1 && !rw_.wanted(v);
      const OpId user = is_alone ? rw_.uses(v)[0] : OpId{};
      const bool moves = is_alone && rw_.op(user).def->state == ir::StateAccess::kAssign &&
                         !touched_between(rw_.op(user).attrs.str("name"), update, user);
      assigns.push_back(moves ? user : OpId{});
    }
    return assigns;
  }
  [[nodiscard]] bool touched_between(const std::string& state, OpId first, OpId last) const {
    const auto is_of = [&](const Op& op) {
      return op.def->state != ir::StateAccess::kNone && op.attrs.str("name") == state;
    };
    for (size_t p = rw_.position(first) + 1; p < rw_.position(last); ++p) {
      const Op& op = rw_.op(rw_.order()[p]);
      if (is_of(op)) return true;
      for (const ValueId v : op.inputs)
        if (v.valid() && is_of(rw_.producer(view_root(rw_.graph(), v)))) return true;
    }
    return false;
  }

  /// The elements that an operand has in each window.
  [[nodiscard]] static std::vector<int64_t> sizes_of(const WindowedRule& rule, size_t operand,
                                                     int64_t elements, int64_t window) {
    std::vector<int64_t> sizes;
    for (int64_t first = 0; first < elements; first += window)
      sizes.push_back(rule.elements(operand, std::min(elements, first + window)) -
                      rule.elements(operand, first));
    return sizes;
  }

  void cut(OpId update, int64_t window, const std::vector<OpId>& assigns) {
    const Op op = rw_.op(update);
    const WindowedRule rule(op.def->name);
    const int64_t num_elements = rw_.type(op.inputs[0]).num_elements();
    std::vector<std::vector<int64_t>> sizes;    // by operand and window
    std::vector<std::vector<ValueId>> windows;  // the same
    for (size_t i = 0; i < rule.num_operands(); ++i) {
      const int64_t elements = rw_.type(op.inputs[i]).num_elements();
      sizes.push_back(sizes_of(rule, i, num_elements, window));
      const auto row =
          rw_.before(update, "reshape", {op.inputs[i]}, {{"shape", std::vector<int64_t>{elements}}});
      windows.push_back(rw_.before(update, "split", {row[0]}, {{"sizes", sizes.back()}}));
    }
    std::vector<int64_t> begins(op.outputs.size(), 0);
    for (size_t w = 0; w < sizes[0].size(); ++w) {
      std::vector<ValueId> operands = op.inputs;
      for (size_t i = 0; i < rule.num_operands(); ++i) operands[i] = windows[i][w];
      const std::vector<ValueId> results =
          rw_.before(update, op.def->name, std::move(operands),
                     attrs_of(op, rule, static_cast<int64_t>(w) * window, sizes[0][w]));
      for (size_t r = 0; r < results.size(); ++r) {
        ir::Attrs attrs = rw_.op(assigns[r]).attrs;
        attrs.set("begin", begins[r]);
        rw_.before(update, "state_assign", {results[r]}, std::move(attrs));
        begins[r] += sizes[rule.operand_of(r)][w];
      }
    }
    for (const OpId assign : assigns) rw_.remove(assign);
    rw_.remove(update);
    ++report_.cut;
    report_.windows += sizes[0].size();
  }

  static ir::Attrs attrs_of(const Op& op, const WindowedRule& rule, int64_t first, int64_t elements) {
    ir::Attrs attrs = op.attrs;
    if (first > 0) attrs.set("first", first);
    if (rule.blockwise != nullptr) attrs.set("parts", std::vector<int64_t>{elements});
    return attrs;
  }

  Rewriter rw_;
  UpdateWindowsReport report_;
};

}  // namespace

Result<UpdateWindowsReport> cut_updates(ir::Graph& graph, std::span<const UpdateCut> cuts,
                                        std::span<const ir::ValueId> keep) {
  if (cuts.empty()) return UpdateWindowsReport{};
  return Cutter(graph, keep).run(cuts);
}

Result<UpdateWindowsReport> chunked_update(ir::Graph& graph, const UpdateWindowsOptions& options) {
  return cut_updates(graph, find_update_cuts(graph, options), options.keep);
}

}  // namespace plimsoll::passes
