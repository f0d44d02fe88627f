// The error of a setting whose value cannot be, by itself or beside another.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace plimsoll::settings {

inline Error wrong_setting(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

}  // namespace plimsoll::settings
