// Hash-consing along the order: the first op with a key stands for all later ones.
#include "passes/fusion/common_subexpressions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/at.h"
#include "ir/op_def.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::ValueId;

void put(std::string& key, uint64_t word) { key.append(std::bit_cast<std::array<char, 8>>(word).data(), 8); }
void put(std::string& key, const std::string& text) {
  put(key, text.size());
  key += text;
}

void put(std::string& key, const ir::Attr& attr) {
  put(key, attr.index());
  if (const auto* flag = std::get_if<bool>(&attr)) put(key, *flag ? 1U : 0U);
  if (const auto* number = std::get_if<int64_t>(&attr)) put(key, static_cast<uint64_t>(*number));
  if (const auto* real = std::get_if<double>(&attr)) put(key, std::bit_cast<uint64_t>(*real));
  if (const auto* text = std::get_if<std::string>(&attr)) put(key, *text);
  if (const auto* list = std::get_if<std::vector<int64_t>>(&attr)) {
    put(key, list->size());
    for (const int64_t i : *list) put(key, static_cast<uint64_t>(i));
  }
}

/// Most keys are shorter.
constexpr size_t kKeyBytes = 120;

class Merge {
 public:
  explicit Merge(Graph& graph)
      : graph_(graph), stands_(graph.num_values()), consumed_(graph.num_values(), false) {
    first_.reserve(graph.order().size());
  }

  CommonSubexpressionsReport run() {
    for (const OpId id : graph_.order())
      for (const ir::Alias& a : ir::op_consumes(graph_.op(id)))
        consumed_[at(graph_.op(id).inputs[static_cast<size_t>(a.input)])] = true;
    std::vector<bool> dead(graph_.num_ops(), false);
    for (const OpId id : graph_.order()) dead[static_cast<size_t>(id.index)] = visit(id);
    graph_.remove_ops([&](OpId id) { return dead[static_cast<size_t>(id.index)]; });
    return std::move(report_);
  }

 private:
  /// True where an earlier op stands for this one.
  bool visit(OpId id) {
    Op& op = graph_.op(id);
    for (ValueId& v : op.inputs)
      if (v.valid() && stands_[at(v)].valid()) v = stands_[at(v)];
    if (op.def->state == ir::StateAccess::kAssign) ++versions_[op.attrs.str("name")];
    if (!may_merge(op)) return false;
    const auto [it, is_new] = first_.try_emplace(key(op), id);
    if (is_new) return false;
    const Op& first = graph_.op(it->second);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      stands_[at(op.outputs[i])] = first.outputs[i];
      report_.replaced.emplace_back(op.outputs[i], first.outputs[i]);
    }
    return true;
  }

  [[nodiscard]] bool may_merge(const Op& op) const {
    if (op.def->state == ir::StateAccess::kRead)
      return true;  // a read of a state that is then consumed must be of the same storage
    return !op.def->has_effect && !op.recomputed &&
           std::none_of(op.outputs.begin(), op.outputs.end(), [&](ValueId v) { return consumed_[at(v)]; });
  }

  std::string key(const Op& op) {
    std::string key;
    key.reserve(kKeyBytes);
    key = op.def->name;
    put(key, static_cast<uint64_t>(op.queue));
    for (const ValueId v : op.inputs) put(key, static_cast<uint64_t>(v.index));
    for (const auto& [name, attr] : op.attrs.entries()) {
      put(key, name);
      put(key, attr);
    }
    if (op.def->state == ir::StateAccess::kRead) put(key, versions_[op.attrs.str("name")]);
    return key;
  }

  Graph& graph_;
  std::vector<ValueId> stands_;
  std::vector<bool> consumed_;
  std::unordered_map<std::string_view, uint64_t> versions_;  // assignments so far, by state
  std::unordered_map<std::string, OpId> first_;
  CommonSubexpressionsReport report_;
};

}  // namespace

Result<CommonSubexpressionsReport> common_subexpressions(Graph& graph, const CommonSubexpressionsOptions&) {
  return Merge(graph).run();
}

}  // namespace plimsoll::passes
