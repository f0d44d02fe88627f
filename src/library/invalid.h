// The error of what a caller has given.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace plimsoll::library {

inline Error invalid(std::string what, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

}  // namespace plimsoll::library
