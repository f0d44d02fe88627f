// Weights of a lower precision from their fp32 masters.
#pragma once

#include "base/result.h"
#include "models/model.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::checkpoints {

/// Whether the parameter has a master: frozen ones have none.
bool has_master(const models::Parameter& parameter, const runtime::Session& session);
/// Whether any of the session's parameters has.
bool has_masters(const models::Model& model, const runtime::Session& session);
/// Whether ranks share the parameter's master: this one has a piece of it.
bool shares_master(const models::Parameter& parameter, const runtime::Session& session);
/// Every parameter with a master that this rank has becomes its master's nearest value, as the update leaves
/// it. Errors: of the device.
Status round_masters(const models::Model& model, runtime::Session& session, int num_threads);

}  // namespace plimsoll::checkpoints
