// Divides masters and the optimizer's states among ranks (ZeRO), and with ZeRO-3 the parameters. Where the
// rule looks at elements, or at blocks that pieces hold whole, each rank has a piece of the parameter's
// states. Where it looks at all of a tensor, parameters of one form are taken together, as many as there are
// ranks: each has an owner, whose rank updates it while the other ranks update theirs.
//
//   adamw   embedding       rank 0 [piece | … ]      rank 1 [ … | piece]
//   muon    q of 2 layers   rank 0 layers.0.q        rank 1 layers.1.q       one op of the program
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "optimizers/optimizer.h"

namespace plimsoll::optimizers {

/// An update and its parameter's type.
struct RuledUpdate {
  Update update;
  ir::TensorType parameter;
};

/// Whether each rank updates a piece of a parameter of that shape, which is larger than the least piece.
bool has_pieces(const OptimizerOptions& options, const ir::Shape& parameter, const Update& update);

/// The parameters that have owners, by index, group by group: member i of a group is of rank i. None has one
/// member alone; what is in none and has no pieces is updated whole on each rank.
std::vector<std::vector<size_t>> owner_groups(const OptimizerOptions& options,
                                              const std::vector<RuledUpdate>& updates);

/// A state of which each rank has a part.
struct SharedState {
  std::string name;     ///< without ranks
  ir::TensorType type;  ///< the same
  std::string kept;     ///< the state in which this rank keeps what it has
  int32_t owner = -1;   ///< the rank that has all of it; -1: each has a piece
};
/// What a rank keeps of a master, a parameter or an average.
ir::TensorType kept_type(const SharedState& shared, int64_t ranks);
/// Of all masters and states, and with shares_parameters of parameters and averages, those that ranks share.
std::vector<SharedState> shared_states(const OptimizerOptions& options,
                                       const std::vector<RuledUpdate>& updates);

}  // namespace plimsoll::optimizers
