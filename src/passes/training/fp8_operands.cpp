#include "passes/training/fp8_operands.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "ops/elementwise.h"
#include "ops/granules.h"

namespace plimsoll::passes {

using ir::OpId;
using ir::ValueId;
using numerics::OperandRole;

/// Blocks of one row run along the axis that is summed over; tiles and a scale of the tensor lie both ways.
OperandQuantiser::Copy OperandQuantiser::copy_of(OperandRole role, SumAxis sums) const {
  const bool over_rows = sums == SumAxis::kRows;
  const numerics::OperandForm form = numerics::operand_form(form_, role, over_rows);
  return {form, over_rows && numerics::info(form.scheme).block_rows == 1};
}

QuantisedOperand OperandQuantiser::activation(OpId anchor, ValueId value, OperandRole role, SumAxis sums,
                                              std::optional<int64_t> slot) {
  const Copy copy = copy_of(role, sums);
  const auto key = std::tuple(value.index, copy.form.scheme, copy.turned);
  auto known = shared_.find(key);
  if (known == shared_.end()) known = shared_.emplace(key, make(anchor, value, role, copy, slot)).first;
  QuantisedOperand operand = known->second;
  operand.across = sums == SumAxis::kRows && !copy.turned;
  return operand;
}

QuantisedOperand OperandQuantiser::weight(OpId anchor, ValueId value, SumAxis sums,
                                          std::optional<int64_t> slot) {
  const Copy copy = copy_of(OperandRole::kWeight, sums);
  QuantisedOperand operand = make(anchor, value, OperandRole::kWeight, copy, slot);
  operand.across = sums == SumAxis::kRows && !copy.turned;
  return operand;
}

QuantisedOperand OperandQuantiser::make(OpId anchor, ValueId value, OperandRole role, const Copy& copy,
                                        std::optional<int64_t> slot) {
  const bool is_delayed = states_.scales.valid();
  ir::Attrs attrs{{"scheme", std::string(numerics::info(copy.form.scheme).name)}};
  if (copy.turned) attrs.set("transposed", true);
  if (copy.turned && role != OperandRole::kWeight && tokens_of(copy, value).has_zeros())
    attrs.set("by_sequence", true);
  if (copy.form.hadamard) attrs.set("hadamard", true);
  if (role != OperandRole::kWeight) attrs.set("precision", std::string("bf16"));
  std::vector<ValueId> inputs = {value};
  if (is_delayed) {
    if (!slot) slot = slot_of(value);
    slots_.emplace(value.index, *slot);
    attrs.set("slot", *slot);
    inputs.push_back(states_.scales);
  }
  if (copy.form.stochastic) {
    inputs.resize(3);
    inputs[2] = states_.random;
    attrs.set("stochastic", true);
    attrs.set("key", key_of(anchor, copy.turned));
  }
  const auto results = rewriter_.before(anchor, "quantize_operand", std::move(inputs), std::move(attrs));
  const ValueId amax = results.size() > 2 ? results[2] : ValueId{};
  if (is_delayed) note_magnitude(*slot, value, amax);
  return {.form = copy.form, .codes = results[0], .scales = results[1], .amax = amax, .turned = copy.turned};
}

SummedTokens OperandQuantiser::tokens_of(const Copy& copy, ValueId value) const {
  const ir::Shape& shape = rewriter_.type(value).shape;
  const ops::Granules tokens(shape);
  const int64_t block = copy.turned && shape.rank() >= 3 ? numerics::info(copy.form.scheme).block_cols : 1;
  return {tokens.rows(), tokens.segment(), round_up(tokens.segment(), block)};
}

SummedTokens OperandQuantiser::summed_tokens(OperandRole role, ValueId value) const {
  return tokens_of(copy_of(role, SumAxis::kRows), value);
}

/// What `value` is a part of: the gradient of a product whose weight is several parameters (q, k and v apart)
/// is split for theirs.
std::optional<ValueId> OperandQuantiser::whole_of(ValueId value) const {
  const ir::Op& made_by = rewriter_.producer(value);
  const bool is_split = made_by.def->is_view && made_by.outputs.size() > 1;
  return is_split ? std::optional(made_by.inputs[0]) : std::nullopt;
}

/// The slot that the value has, or the next of gradients. A part has that of the whole, so that scales do not
/// depend on how weights lie.
int64_t OperandQuantiser::slot_of(ValueId value) {
  if (const auto known = slots_.find(value.index); known != slots_.end()) return known->second;
  const std::optional<ValueId> whole = whole_of(value);
  const int64_t slot = whole ? slot_of(*whole) : next_gradient_slot_++;
  slots_.emplace(value.index, slot);
  return slot;
}

/// A second copy of a value has the same, and the whole's is the largest of its parts'.
void OperandQuantiser::note_magnitude(int64_t slot, ValueId value, ValueId amax) {
  if (whole_.contains(slot)) return;
  std::vector<ValueId>& known = magnitudes_[slot];
  const std::optional<ValueId> whole = whole_of(value);
  const auto of_whole = whole ? slots_.find(whole->index) : slots_.end();
  const bool is_part = of_whole != slots_.end() && of_whole->second == slot;
  if (!is_part) {
    known = {amax};
    whole_.insert(slot);
  } else {
    known.push_back(amax);
  }
}

/// Its own for each gradient: its number in the program, and whether it is turned.
int64_t OperandQuantiser::key_of(OpId anchor, bool turned) {
  return ops::random_key(rewriter_.op(anchor).layer,
                         fmt::format("fp8.{}{}", num_drawn_++, turned ? ".t" : ""));
}

}  // namespace plimsoll::passes
