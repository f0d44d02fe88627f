#include "passes/training/fp8_dump.h"

#include <fmt/format.h>

#include "ir/op_def.h"
#include "ops/op_list.h"

namespace plimsoll::passes {
namespace {

std::string_view operand_name(numerics::OperandRole role) {
  if (role == numerics::OperandRole::kInput) return "x";
  return role == numerics::OperandRole::kWeight ? "w" : "dy";
}

}  // namespace

std::string operand_module(const ir::Op& weight, const std::string& layer) {
  if (weight.def->state != ir::StateAccess::kRead) return layer;
  constexpr std::string_view kWeight = ".weight";
  std::string name = weight.attrs.str("name");
  if (name.ends_with(kWeight)) name.resize(name.size() - kWeight.size());
  return name;
}

void OperandDump::name(ir::ValueId value, ir::ValueId weight, const std::string& layer) {
  if (is_on_) modules_.emplace(value.index, operand_module(rewriter_.producer(weight), layer));
}

void OperandDump::name_as(ir::ValueId value, ir::ValueId other) {
  const auto module = modules_.find(other.index);
  if (module != modules_.end()) modules_.emplace(value.index, std::string(module->second));
}

void OperandDump::keep(ir::ValueId value, numerics::OperandRole role, const QuantisedOperand& operand) {
  const auto module = modules_.find(value.index);
  if (module == modules_.end()) return;
  kept_.emplace(fmt::format("q.{}.{}{}", module->second, operand_name(role), operand.turned ? "_t" : ""),
                operand);
}

Status OperandDump::append(ir::Graph& graph) const {
  ir::Builder b(graph, ops::find_op);
  for (const auto& [name, operand] : kept_) {
    const auto keep = [&, &state = name](const char* part, ir::ValueId v) {
      graph.declare_state({state + part, graph.type(v), ir::StateClass::kOutput});
      b.assign(state + part, v);
    };
    keep(".values", operand.codes);
    keep(".scales", operand.scales);
    if (numerics::is_nvfp4(operand.form.scheme)) keep(".amax", operand.amax);
  }
  return b.status();
}

}  // namespace plimsoll::passes
