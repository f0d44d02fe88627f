// Reads the textual form that the printer writes. For dumps, golden tests and bug reports, so its input is
// not trusted.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::ir {

/// Larger texts are refused before they are looked at.
inline constexpr size_t kMaxTextBytes = size_t{64} << 20;

/// More states are refused: a graph looks each up among all.
inline constexpr size_t kMaxStates = size_t{1} << 14;

/// Parses one program. Grammar, a line each; blank lines and lines that begin with "//" are passed over:
///   graph "<name>"
///   state "<name>" : <type> <class> [<space>]
///   [%n, … =] <op>[(%n | _, …)] [{key=value, …}] [: <type> [<space>], …] [recomputed] [queue=<queue>]
///   [block=<n> | block=update] [@<layer>] <type>  = f32[2,3]        <value> = true | 7 | 1e-05 | inf | nan |
///   "text" | [1,2]
/// Every op is checked against its definition: attributes, operands, types as inference gives them. What
/// spans ops (a read of what was consumed) is the verifier's. Errors: kBadData with "<line>:<column>" as the
/// place.
Result<Graph> parse(std::string_view text, OpLookup lookup);

}  // namespace plimsoll::ir
