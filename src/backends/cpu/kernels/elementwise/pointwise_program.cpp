// Slots are given out along the steps; one whose last reader is done serves again.
#include "backends/cpu/kernels/elementwise/pointwise_program.h"

#include <algorithm>

#include "base/at.h"

namespace plimsoll::cpu {

using ops::Expression;
using ops::Function;

PointwiseProgram::PointwiseProgram(const Expression& f, int num_inputs) : num_inputs_(num_inputs) {
  place_constants(f);
  const std::span<const Expression::Node> nodes = f.nodes();
  std::array<int, Expression::kMaxNodes> last_use{};
  for (size_t i = 0; i < nodes.size(); ++i)
    for (int k = 0; k < ops::info(nodes[i].function).arity; ++k)
      last_use[at(nodes[i].args[at(k)])] = static_cast<int>(i);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int arity = ops::info(nodes[i].function).arity;
    if (arity == 0) continue;
    PointwiseStep step{.function = nodes[i].function};
    for (int k = 0; k < arity; ++k) step.args[at(k)] = slots_[at(nodes[i].args[at(k)])];
    // The result's slot may be an operand's memory: nothing but the last step writes there.
    step.to = static_cast<int>(i) == f.result() ? static_cast<int16_t>(result_slot()) : take_slot();
    slots_[i] = step.to;
    steps_[num_steps_++] = step;
    for (int k = 0; k < arity; ++k) {
      const auto arg = at(nodes[i].args[at(k)]);
      const bool is_own = ops::info(nodes[arg].function).arity > 0 && last_use[arg] == static_cast<int>(i);
      if (!is_own) continue;
      free_[num_free_++] = slots_[arg];
      last_use[arg] = -1;  // once, where an operand is there twice
    }
  }
  if (num_steps_ == 0)
    steps_[num_steps_++] = {.args = {slots_[at(f.result())]}, .to = static_cast<int16_t>(result_slot())};
}

void PointwiseProgram::place_constants(const Expression& f) {
  num_slots_ = num_inputs_ + 1;
  for (size_t i = 0; i < f.nodes().size(); ++i) {
    const Expression::Node& node = f.nodes()[i];
    if (node.function == Function::kInput) slots_[i] = node.args[0];
    if (node.function != Function::kNumber) continue;
    slots_[i] = static_cast<int16_t>(num_slots_++);
    constants_[num_constants_++] = static_cast<float>(node.number);
  }
}

int16_t PointwiseProgram::take_slot() {
  return num_free_ > 0 ? free_[--num_free_] : static_cast<int16_t>(num_slots_++);
}

}  // namespace plimsoll::cpu
