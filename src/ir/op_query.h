// Small questions about ops that several rooms ask.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace plimsoll::ir {

/// Whether ops of its kind have an attribute of that name, set or not.
bool takes_attr(const Op& op, std::string_view name);

/// Elements of its state that a state_assign gives a value. With attribute `begin` the value, of one axis, is
/// a window: the state's elements from that one on take it, and no others. A program assigns each element
/// once, and does not read a state again that it has assigned in windows.
struct AssignedElements {
  int64_t begin = 0, end = 0;
  bool is_window = false;  ///< it says which; else all of them
};
AssignedElements assigned_elements(const Graph& graph, const Op& assign);

/// What makes a value, behind its views.
const Op& maker(const Graph& graph, ValueId v);

/// The ops that read the states whose elements `v` has, viewed or joined; none where it is computed.
std::vector<const Op*> states_read(const Graph& graph, ValueId v);

/// By value: whether it is computed from one of `from`, those included.
std::vector<bool> depends_on(const Graph& graph, std::span<const ValueId> from);

}  // namespace plimsoll::ir
