#include "ir/graph.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "ir/network_queue.h"
#include "ir/op_def.h"

namespace plimsoll::ir {

std::string_view name(StateClass c) {
  static constexpr std::array<std::string_view, 11> kNames = {
      "parameter", "gradient", "optimizer_state", "scaler",        "scalars", "input",
      "output",    "constant", "cache",           "master_weight", "buffer"};
  return kNames[static_cast<size_t>(c)];
}

std::string_view name(MemorySpace space) {
  static constexpr std::array<std::string_view, kNumSpaces> kNames = {"device", "host_pinned",
                                                                      "host_pageable", "disk"};
  return kNames[static_cast<size_t>(space)];
}

std::optional<MemorySpace> parse_space(std::string_view text) {
  for (size_t s = 0; s < kNumSpaces; ++s)
    if (name(static_cast<MemorySpace>(s)) == text) return static_cast<MemorySpace>(s);
  return std::nullopt;
}

std::string_view name(Queue queue) {
  static constexpr std::array<std::string_view, kNumAllQueues> kNames = {"compute", "copy_in", "copy_out",
                                                                         "host", "network"};
  return kNames[static_cast<size_t>(queue)];
}

bool is_saved(StateClass c) {
  return c == StateClass::kParameter || c == StateClass::kMasterWeight || c == StateClass::kOptimizerState ||
         c == StateClass::kScaler || c == StateClass::kBuffer;
}

OpId Graph::append(Op op, const std::vector<TensorType>& types) {
  return insert(order_.size(), std::move(op), types);
}

OpId Graph::insert(size_t position, Op op, const std::vector<TensorType>& types) {
  const OpId id{static_cast<int32_t>(ops_.size())};
  const MemorySpace space = result_space(op);
  op.outputs.clear();
  for (const TensorType& type : types) {
    op.outputs.push_back(ValueId{static_cast<int32_t>(values_.size())});
    values_.push_back({type, id, static_cast<int32_t>(op.outputs.size()) - 1, space});
  }
  ops_.push_back(std::move(op));
  order_.insert(order_.begin() + static_cast<std::ptrdiff_t>(position), id);
  return id;
}

MemorySpace Graph::result_space(const Op& op) const {
  if (op.def == nullptr) return MemorySpace::kDevice;
  if (op.def->state == StateAccess::kRead) {
    const Attr* state = op.attrs.find("name");
    const StateDecl* decl = state == nullptr ? nullptr : find_state(std::get<std::string>(*state));
    return decl == nullptr ? MemorySpace::kDevice : decl->space;
  }
  if (op.def->is_view && !op.inputs.empty() && op.inputs[0].valid()) return value(op.inputs[0]).space;
  if (!op.def->is_copy) return kernel_space(op.queue);
  const Attr* to = op.attrs.find("to");
  return to == nullptr ? MemorySpace::kDevice
                       : parse_space(std::get<std::string>(*to)).value_or(MemorySpace::kDevice);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (const OpId id : order_) std::replace(op(id).inputs.begin(), op(id).inputs.end(), from, to);
}

void Graph::remove_ops(const std::function<bool(OpId)>& dead) { std::erase_if(order_, dead); }

Lists<OpId> Graph::uses() const {
  std::vector<OpId> last(values_.size());
  return {values_.size(), [&](const auto& add) {
            std::ranges::fill(last, OpId{});
            for (const OpId id : order_)
              for (const ValueId in : op(id).inputs) {
                if (!in.valid()) continue;
                OpId& known = last[static_cast<size_t>(in.index)];  // once, however often it reads the value
                if (known != id) add(static_cast<size_t>(in.index), id);
                known = id;
              }
          }};
}

size_t Graph::declare_state(const StateDecl& decl) {
  const auto [found, is_new] = state_index_.try_emplace(decl.name, states_.size());
  if (is_new) {
    states_.push_back(decl);
  } else {
    PLIMSOLL_CHECK(states_[found->second] == decl, "state declared twice, differently: " + decl.name);
  }
  return found->second;
}

const StateDecl* Graph::find_state(std::string_view state_name) const {
  const auto found = state_index_.find(state_name);
  return found == state_index_.end() ? nullptr : &states_[found->second];
}

}  // namespace plimsoll::ir
