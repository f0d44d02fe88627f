// Finds NaN and infinities in loaded weights after a loss was not finite.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll::checkpoints {

/// Where a tensor of the weights in `directory` holds a NaN or an infinity, `error` with them named as its
/// cause: kBadData; else `error` as it is. Reads all of them.
Error blame_weights(Error error, const std::string& directory, int num_threads);

}  // namespace plimsoll::checkpoints
