// The operands that debug.dump's `quantized` asks for, of a program that pass fp8 quantises: codes and scales
// of each as it entered its product, in states of class kOutput.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "passes/training/fp8_operands.h"

namespace plimsoll::passes {

/// The module of a weight, "model.layers.0.mlp.down_proj", by its state; else `layer`.
std::string operand_module(const ir::Op& weight, const std::string& layer);

class OperandDump {
 public:
  OperandDump(const Rewriter& rewriter, bool is_on) : rewriter_(rewriter), is_on_(is_on) {}

  /// `value` is an operand of the module whose weight is `weight`; the first module that takes it counts.
  void name(ir::ValueId value, ir::ValueId weight, const std::string& layer);
  /// `value` is an operand of the module that `other` is one of.
  void name_as(ir::ValueId value, ir::ValueId other);
  /// Keeps an operand as "q.<module>.<role>", a transposed copy with "_t" appended; the first of a name
  /// counts. Operands without a module are skipped.
  void keep(ir::ValueId value, numerics::OperandRole role, const QuantisedOperand& operand);

  /// Appends the states' assignments, in the order of the names.
  Status append(ir::Graph& graph) const;

 private:
  const Rewriter& rewriter_;
  bool is_on_;
  std::map<int32_t, std::string> modules_;        // by value
  std::map<std::string, QuantisedOperand> kept_;  // by the states' name
};

}  // namespace plimsoll::passes
