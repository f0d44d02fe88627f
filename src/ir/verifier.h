// The rules that hold between any two passes. Runs after each of them; its errors are bugs of the pass before
// it, or of whoever wrote the text that was parsed.
#pragma once

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::ir {

/// No tensor has more elements: its bytes, and the product of two extents of different tensors, fit an int64.
inline constexpr int64_t kMaxElements = int64_t{1} << 48;

/// Checks a program:
///   - every op once in the order, every value made by one op and before its uses;
///   - attributes as the op declares them, types as inference gives them, no required operand absent;
///   - states declared, assigned with their own type;
///   - copies go into another space, on a copy queue; nothing but a copy_done reads what is under way, and
///   that
///     names the copy's source; what is assigned to a state lies in its space;
///   - no read of a value whose storage was taken over: by an op that consumes it, or a view of it, or by an
///     assignment to the state that it was read from. Disjoint parts of a split do not count as one another.
/// Errors: kInvalidArgument, "<op>: <what>", where "<layer>, line <n>" counts lines as `print` writes them.
Status verify(const Graph& graph);

/// Attributes against their declaration: unknown, missing, of another kind. The error names op and attribute.
Status check_attrs(const OpDef& def, const Attrs& attrs);
/// Whether a value may have that shape: 1 to 6 positive extents, at most kMaxElements elements.
bool is_sound(const Shape& shape);

}  // namespace plimsoll::ir
