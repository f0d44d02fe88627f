// Every op, by name. A file of ops exports its definitions through one function; op_list.cpp calls them all.
#pragma once

#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace plimsoll::ops {

/// The definition of `name`; null when there is none. Usable as ir::OpLookup.
const ir::OpDef* find_op(std::string_view name);
/// All definitions, sorted by name.
std::span<const ir::OpDef* const> all_ops();

}  // namespace plimsoll::ops
