// A card as its driver describes it.
#pragma once

#include <string>

#include "backends/cuda/api.h"
#include "base/result.h"
#include "base/units.h"

namespace plimsoll::cuda {

/// What is known of a card before it is used.
struct CardInfo {
  std::string name;    ///< "NVIDIA H100 80GB HBM3"
  int capability = 0;  ///< 90
  Bytes memory = {};   ///< all of it, the driver's share included
};
/// Errors: kInvalidArgument where there is no such card, with how many there are; kIo without a driver.
Result<CardInfo> card_info(int ordinal);
/// 0 without a driver or a card.
int num_cards();

/// The driver's number of the card. Errors: as card_info.
Result<int> device_of(const Driver& driver, int ordinal);
Result<CardInfo> describe_card(const Driver& driver, int device);

}  // namespace plimsoll::cuda
