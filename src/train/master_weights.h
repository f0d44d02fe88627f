// Weights of a lower precision from their fp32 masters.
#pragma once

#include "models/model.h"
#include "numerics/formats.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::train {

/// Whether the session's parameters have masters.
bool has_masters(const models::Model& model, const runtime::Session& session);
/// The dtype of the parameters by its name in config.json, "bfloat16".
const char* weights_dtype(const models::Model& model);
/// How weights of 16 bits are encoded.
numerics::Format weights_encoding(ir::DType dtype);
/// Every parameter becomes its master's nearest value, as the update leaves it. Only with masters.
void round_masters(const models::Model& model, const runtime::Session& session, int num_threads);

}  // namespace plimsoll::train
