// Copies of weights in the form that products read them in: who makes them, of the programs of one step.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace plimsoll::passes {

/// Whose copies of the weights a program multiplies with: quantised ones (fp8_weights.h), and ones that are
/// rounded to 16 bits (weight_casts.h). A weight changes at the end of a step alone, so all have the same
/// bits.
enum class WeightCopies : uint8_t {
  kOwn,   ///< those that each product makes for itself
  kKeep,  ///< those that it makes once, and keeps in states for the step's other programs
  kRead   ///< those in the states
};

/// Whether the op reads a parameter's state.
bool reads_parameter(const ir::Graph& graph, const ir::Op& op);
/// Puts the ops behind the first `known` of the order in front of them.
void put_last_first(ir::Graph& graph, size_t known);

}  // namespace plimsoll::passes
