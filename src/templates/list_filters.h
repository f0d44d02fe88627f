// Filters over sequences.
#pragma once

#include <span>

#include "templates/rules.h"

namespace plimsoll::templates {

std::span<const FilterRule> list_filters();

}  // namespace plimsoll::templates
