// A session's memory in the form that PyTorch's viewer (pytorch.org/memory_viz) opens: two segments, the
// states' block and the arena, and what is allocated and freed in them op by op - of programs that have run,
// or of a plan.
//
//   segment persistent   [ state │ state │ … ]                allocated at the start, never freed
//   segment arena        [  tensor  │ tensor │    free    ]    alloc before the op that makes it, free behind
//   the
//                                                              last that uses it, at the planned addresses
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "io/file.h"
#include "io/pickle.h"
#include "passes/session_plan.h"

namespace plimsoll::planner {

/// One run of a program of the session.
struct ProgramRun {
  int32_t program = 0;
  int64_t time_us = 0;
};

/// Each program once, in the order in which a training meets them, without times.
std::vector<ProgramRun> planned_runs(const passes::SessionPlan& session);

/// Entries of the trace that a run of each program makes.
std::vector<int64_t> trace_entries(const passes::SessionPlan& session);

/// The snapshot of the device, which is device 0. An entry carries what makes or uses the tensor last as
/// frames (op, layer, program) and its class as category; sizes are logical bytes, so that the live sum peaks
/// at persistent and arena bytes less the padding and fragmentation there. Errors: the sink's.
Status write_memory_snapshot(const passes::SessionPlan& session, std::span<const ProgramRun> runs,
                             const io::PickleSink& sink);
/// To a file, which is committed. Errors: kIo.
Status save_memory_snapshot(const passes::SessionPlan& session, std::span<const ProgramRun> runs,
                            io::AtomicFile& file);

}  // namespace plimsoll::planner
