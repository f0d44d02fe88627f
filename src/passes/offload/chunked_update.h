// Chunked update of a large table whose state is offloaded: each is loaded,
// updated and stored beside its neighbours, where the whole would hold all of them at once.
//
//   %p, %g, %m, %v ─► adamw ─► %p1, %m1, %v1          state_assign(%p1) {name="p"}, …
//
//   ==>   %p ─► reshape ─► split ─► %pa, %pb          %g, %m, %v the same
//         %pa, %ga, %ma, %va ─► adamw {first=0}       state_assign(…) {name="p", begin=0}, …
//         %pb, %gb, %mb, %vb ─► adamw {first=4096}    state_assign(…) {name="p", begin=4096}, …
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/op_def.h"
#include "passes/offload/offload.h"

namespace plimsoll::passes {

struct UpdateWindowsOptions {
  OffloadOptions offload = {};  ///< what is loaded for an update, and stored behind it
  std::span<const ir::ValueId> keep = {};
  /// Scratch of an op's kernel; empty: none.
  std::function<int64_t(const ir::OpTypes&)> workspace_bytes = {};
};
/// An update that is to be cut, and how.
struct UpdateCut {
  ir::OpId op;
  int64_t window = 0;  ///< elements; the last may have fewer
  bool operator==(const UpdateCut&) const = default;
};
struct UpdateWindowsReport {
  size_t cut = 0;      ///< updates that are gone
  size_t windows = 0;  ///< that stand for them
};

/// What is to be cut: updates by rules that look at elements, or at blocks of so many; those that look at all
/// of a tensor stay whole, and so do those of the layers that repeat. What an update loads is held against
/// the largest of the other kernels and of the layers' updates, whose operands the device must hold in any
/// case: two windows, one at work and one under way, take at most an eighth of that, or two quanta
/// (OffloadOptions::window_elements). What takes no more whole is left alone.
std::vector<UpdateCut> find_update_cuts(const ir::Graph& graph, const UpdateWindowsOptions& options);

/// Cuts them, behind the final order and before `offload`; where a result is no state's alone its update
/// stays whole. The same bits: random draws go on by the parameter's elements. The same bytes moved. Errors:
/// none yet.
Result<UpdateWindowsReport> cut_updates(ir::Graph& graph, std::span<const UpdateCut> cuts,
                                        std::span<const ir::ValueId> keep = {});

/// Both.
Result<UpdateWindowsReport> chunked_update(ir::Graph& graph, const UpdateWindowsOptions& options = {});

}  // namespace plimsoll::passes
