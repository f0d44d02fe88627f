// Settings that make results depend on the size of a micro-batch.
#pragma once

#include <string>

#include "settings/run_config.h"

namespace plimsoll::settings {

/// Why results depend on the size of a micro-batch, which is then part of what is trained; empty: no setting
/// makes them.
std::string micro_batch_dependence(const RunConfig& config);

/// Whether that is the order in which gradients are added over ranks and micro-batches alone. Another number
/// of ranks changes it too, so a resumed run may have another split.
bool depends_by_order_alone(const RunConfig& config);

/// What to tell the user where results depend on that size and no setting gives it; else empty.
std::string micro_batch_note(const RunConfig& config);

}  // namespace plimsoll::settings
