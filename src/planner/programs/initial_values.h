// Initial values of a model's parameters without a checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "ir/builder.h"
#include "models/model.h"
#include "optimizers/shared_states.h"

namespace plimsoll::planner {

using SharedByName = std::map<std::string, optimizers::SharedState, std::less<>>;

/// What is kept of each parameter.
struct KeptValues {
  bool masters = false;  ///< an f32 master of each that is trained
  int64_t ranks = 1;
  const SharedByName* shared = nullptr;  ///< of which this rank keeps its part
};

/// Declares and assigns every parameter that `drawn` picks as its family draws it, and its master where there
/// is one. `random` i32[4] as in ops.h, its seed alone counts.
/// The same numbers whatever the weights are kept in, whatever of them is trained, and however a storage was
/// divided (Model::divide).
void append_initial_values(ir::Builder& b, ir::ValueId random, const models::Model& model,
                           const KeptValues& kept,
                           const std::function<bool(const models::Parameter&)>& drawn);

/// Declares every buffer and assigns its first value; counts begin at zero without an assignment.
void append_initial_buffers(ir::Builder& b, const models::Model& model);

}  // namespace plimsoll::planner
