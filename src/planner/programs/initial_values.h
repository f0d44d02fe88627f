// Initial values of a model's parameters without a checkpoint.
#pragma once

#include <functional>

#include "ir/builder.h"
#include "models/model.h"

namespace plimsoll::planner {

/// Declares and assigns every parameter that `drawn` picks as its family draws it, and with `masters` the f32
/// master of each that is trained. `random` i32[4] as in ops.h, its seed alone counts. The same numbers
/// whatever the weights are kept in, whatever of them is trained, and however a storage was divided
/// (Model::divide).
void append_initial_values(ir::Builder& b, ir::ValueId random, const models::Model& model, bool masters,
                           const std::function<bool(const models::Parameter&)>& drawn);

/// Declares every buffer and assigns its first value; counts begin at zero without an assignment.
void append_initial_buffers(ir::Builder& b, const models::Model& model);

}  // namespace plimsoll::planner
