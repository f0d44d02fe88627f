// Quantised operands of a program's products, as pass fp8 makes them: which copy each product takes, and with
// delayed scaling the slot of each operand and the largest magnitudes that the program measures.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "numerics/fp8_recipes.h"
#include "passes/rewriter.h"

namespace plimsoll::passes {

/// A quantised operand in the program.
struct QuantisedOperand {
  numerics::OperandForm form = {};
  ir::ValueId codes = {}, scales = {}, amax = {};
  bool turned = false;  ///< they are of the value's transpose
  bool across = false;  ///< the product sums over the rows of the codes
};

/// States that quantising reads; invalid: the program needs none.
struct OperandStates {
  ir::ValueId scales = {};  ///< of delayed scaling
  ir::ValueId random = {};  ///< of stochastic rounding
};

/// The axis of an operand that its product sums over.
enum class SumAxis : uint8_t { kLast, kRows };

/// What a product over tokens sums, whose blocks end with each sequence.
struct SummedTokens {
  int64_t rows = 0;      ///< tokens in all
  int64_t sequence = 0;  ///< tokens of a sequence
  int64_t segment = 0;   ///< what these take: whole blocks, with zeros at the end
  [[nodiscard]] bool has_zeros() const { return segment != sequence; }
  [[nodiscard]] int64_t inner() const { return rows / sequence * segment; }
};

/// The largest magnitudes of delayed scaling, by slot: one of a value, or one of each of its parts.
using SlotMagnitudes = std::map<int64_t, std::vector<ir::ValueId>>;

class OperandQuantiser {
 public:
  /// `first_gradient_slot`: of delayed scaling.
  OperandQuantiser(Rewriter& rewriter, const numerics::Fp8Options& form, const OperandStates& states,
                   int64_t first_gradient_slot)
      : rewriter_(rewriter), form_(form), states_(states), next_gradient_slot_(first_gradient_slot) {}

  /// An input or a gradient, made before `anchor`: one copy for all products that take it in the same form.
  /// `slot`: its slot, which forward products give; otherwise the one it has, or the next of gradients.
  QuantisedOperand activation(ir::OpId anchor, ir::ValueId value, numerics::OperandRole role, SumAxis sums,
                              std::optional<int64_t> slot = {});
  /// A weight, whose copy lives for one product.
  QuantisedOperand weight(ir::OpId anchor, ir::ValueId value, SumAxis sums, std::optional<int64_t> slot = {});

  /// Of the copy of an activation that is summed over its rows.
  [[nodiscard]] SummedTokens summed_tokens(numerics::OperandRole role, ir::ValueId value) const;

  [[nodiscard]] const SlotMagnitudes& magnitudes() const { return magnitudes_; }

 private:
  /// What is made of a value.
  struct Copy {
    numerics::OperandForm form = {};
    bool turned = false;
  };
  [[nodiscard]] Copy copy_of(numerics::OperandRole role, SumAxis sums) const;
  QuantisedOperand make(ir::OpId anchor, ir::ValueId value, numerics::OperandRole role, const Copy& copy,
                        std::optional<int64_t> slot);
  [[nodiscard]] SummedTokens tokens_of(const Copy& copy, ir::ValueId value) const;
  [[nodiscard]] std::optional<ir::ValueId> whole_of(ir::ValueId value) const;
  int64_t slot_of(ir::ValueId value);
  void note_magnitude(int64_t slot, ir::ValueId value, ir::ValueId amax);
  int64_t key_of(ir::OpId anchor, bool turned);

  Rewriter& rewriter_;
  const numerics::Fp8Options& form_;
  OperandStates states_;
  std::map<std::tuple<int32_t, numerics::Scheme, bool>, QuantisedOperand> shared_;  // by value, form and turn
  std::map<int32_t, int64_t> slots_;                                                // by value
  SlotMagnitudes magnitudes_;
  std::set<int64_t> whole_;  // slots whose magnitude is that of the whole value
  int64_t next_gradient_slot_ = 0, num_drawn_ = 0;
};

}  // namespace plimsoll::passes
