// Weights of a lower precision from their fp32 masters.
#pragma once

#include "base/result.h"
#include "models/model.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::train {

/// Whether the session's parameters have masters.
bool has_masters(const models::Model& model, const runtime::Session& session);
/// Every parameter becomes its master's nearest value, as the update leaves it. Only with masters. Errors: of
/// the device.
Status round_masters(const models::Model& model, runtime::Session& session, int num_threads);

}  // namespace plimsoll::train
