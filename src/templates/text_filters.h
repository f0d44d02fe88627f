// Filters that make texts and numbers.
#pragma once

#include <span>

#include "templates/rules.h"

namespace plimsoll::templates {

std::span<const FilterRule> text_filters();

/// str.replace: the first `count` occurrences of `old`, all where negative.
bool replaced(Heap& heap, std::string_view text, std::string_view old, std::string_view with, int64_t count,
              Value& out);

}  // namespace plimsoll::templates
