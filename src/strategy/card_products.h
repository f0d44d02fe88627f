// The algorithms of matrix products on a card: which file a run takes them from, so that its bits stay the
// same.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "settings/run_config.h"

namespace plimsoll::strategy {

/// Where calibrate leaves what it found: products-<name>-cublaslt-<version>.txt in the cache folder. Empty
/// where there is none.
std::string card_products_path(std::string_view driver_name, int64_t library_version);

/// What the run's folder keeps, else what calibrate found on the card that is here with the library that is
/// here; empty where there is neither, or the card is only planned for. Errors: of reading.
Result<std::string> card_products(const settings::RunConfig& config);

/// Before the device is made: the run's folder keeps what calibrate found, unless it keeps something already,
/// so that a resume has the same bits whatever calibrate finds later. Errors: of reading and writing.
Status keep_card_products(const settings::RunConfig& config);

}  // namespace plimsoll::strategy
