// Small questions about ops that several rooms ask.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace plimsoll::ir {

/// Whether ops of its kind have an attribute of that name, set or not.
bool takes_attr(const Op& op, std::string_view name);

/// What makes a value, behind its views.
const Op& maker(const Graph& graph, ValueId v);

}  // namespace plimsoll::ir
