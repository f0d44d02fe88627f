// Filters over sequences.
#pragma once

#include <span>

#include "data/chat/rules.h"

namespace plimsoll::chat {

std::span<const FilterRule> list_filters();

}  // namespace plimsoll::chat
