// Reads the per-message training flags of a conversation:
//
//   "train": true | false    axolotl's
//   "weight": 0 | 1          OpenAI's
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "templates/value.h"

namespace plimsoll::templates {

struct TrainedMessages {
  std::vector<uint8_t> trained = {};  ///< one a message: 0 an assistant's that is not to be trained on
  int untrained = 0;                  ///< of them
  int other_roles = 0;                ///< messages to be trained on that are not the assistant's
};

/// Errors: kBadData that names the message: a weight between 0 and 1, another type, the two in contradiction.
Result<TrainedMessages> trained_messages(std::span<const Value> messages);

}  // namespace plimsoll::templates
