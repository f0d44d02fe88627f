// The peak explained: what is alive on the device while each op of a program runs, by class; which op has the
// most, which tensors stand there, and how far the phases of a step come.
//
//   bytes                  v peak
//     │          ▁▂▃▅▆▇█▇▆▅▃▂▁         workspace, activations, gradients: the arena's, alive at that op
//     │▁▂▃▄▅▆▇▇████████████████▇▆▅
//     │█████████████████████████████   parameters, optimizer state, …: the session's, always
//     └───────────────────────────── ops in order
//        forward     loss  backward update
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/tree.h"
#include "passes/session_plan.h"

namespace plimsoll::planner {

/// The classes of the plan's report, in the order in which they are stacked.
enum class MemoryClass : uint8_t {
  kParameters,
  kMasterWeights,
  kOptimizerState,
  kCache,
  kInputs,
  kOutputs,
  kScalars,
  kScaler,
  kConstants,
  kGradients,
  kActivations,
  kWorkspace,
  kPadding,
  kFragmentation,       ///< what the placement costs above the most that is alive: the same at each op
  kBuffers,             ///< from here on: files of earlier versions have the classes before them
  kGatheredParameters,  ///< made whole for the ops that read them, where ranks share the parameters
  kFp8Weights,          ///< quantised once a step
  kWeightCasts          ///< rounded to 16 bits once a step
};
inline constexpr size_t kNumMemoryClasses = 18;
/// "parameters", "optimizer_state", …: as in the `plan` event.
std::string_view name(MemoryClass c);
MemoryClass class_of(const ir::StateDecl& state);
MemoryClass class_of(passes::Category c);

using ClassBytes = std::array<int64_t, kNumMemoryClasses>;
/// Of the device's states, with the padding of their block: what is alive whatever runs.
ClassBytes state_bytes(const passes::SessionPlan& session);
int64_t total(const ClassBytes& bytes);
inline int64_t of(const ClassBytes& bytes, MemoryClass c) { return bytes[static_cast<size_t>(c)]; }

enum class StepPhase : uint8_t { kForward, kLoss, kBackward, kUpdate };
inline constexpr size_t kNumStepPhases = 4;
std::string_view name(StepPhase phase);

/// One op that does something: views, and reads and writes of states that move nothing, are left out.
struct TimelinePoint {
  int32_t position = 0;  ///< in the order of the program
  std::string_view op;
  std::string layer;
  StepPhase phase = StepPhase::kForward;
  ClassBytes bytes{};
  int64_t total_bytes = 0;  ///< their sum
};

/// A tensor alive at the peak: a storage of the arena, or a state.
struct TimelineTensor {
  std::string name;  ///< a state's, "grad.<parameter>", or "layers.3.mlp linear": what made it
  std::string type;  ///< "f32[4,512,576]"; empty: a workspace
  MemoryClass memory_class = MemoryClass::kActivations;
  int64_t bytes = 0;
  int32_t first = -1,
          last = -1;  ///< positions of the ops that make it and that use it last; -1: always alive
};

/// What a phase needs at most.
struct TimelinePhase {
  StepPhase phase = StepPhase::kForward;
  std::string program;
  int64_t num_ops = 0;
  TimelinePoint peak;
};

/// What was measured while the program ran: resident of the process, or taken of the device's own memory.
struct MeasuredBytes {
  int64_t beside_bytes = 0;         ///< of these, what the plan has beside states and arena
  std::vector<int64_t> bytes = {};  ///< by point of the timeline, behind its op; empty: nothing was measured

  /// Of states and arena, as far as the plan is right about the rest; never negative.
  [[nodiscard]] int64_t at(size_t point) const {
    return bytes[point] > beside_bytes ? bytes[point] - beside_bytes : 0;
  }
};

/// Persistent and arena bytes are the device's. With the largest arena of the session the peak's total is
/// persistent_bytes + arena_bytes, and no point has more.
struct MemoryTimeline {
  std::string program;
  int64_t persistent_bytes = 0, arena_bytes = 0;
  std::vector<TimelinePoint> points;  ///< none: the program does nothing
  size_t peak = 0;                    ///< the first of the points that have the most
  std::vector<TimelineTensor> alive;  ///< there, largest first
  /// Of this program, in order; and the update's, where that is a program of its own.
  std::vector<TimelinePhase> phases;
  MeasuredBytes measured;

  [[nodiscard]] const TimelinePoint& at_peak() const { return points[peak]; }
  /// The most that a picture has to show, planned or measured.
  [[nodiscard]] int64_t most_bytes() const;
};

/// Index of the program whose arena is the session's, the first of several.
size_t peak_program(const passes::SessionPlan& session);
/// The timeline of a program of the session.
MemoryTimeline memory_timeline(const passes::SessionPlan& session, size_t program);

/// The guides' M ≈ P·D_param + B·A·D_act + O·D_opt from the plan's own figures, and what stands between it
/// and the plan. A term is a number of values times the mean bytes of one.
struct MemoryFormula {
  struct Term {
    int64_t values = 0, bytes = 0;
  };
  Term parameters, optimizer_state;
  /// What forward leaves for backward: B sequences of A values.
  Term activations;
  int64_t sequences = 1;
  /// Classes, "activations" among them with what the peak has more (or, negative, less) than forward leaves;
  /// host memory and the process where the plan's peak has them. None is 0.
  std::vector<std::pair<std::string, int64_t>> left_out;
  int64_t plan_bytes = 0;

  [[nodiscard]] int64_t bytes() const { return parameters.bytes + activations.bytes + optimizer_state.bytes; }
};

/// `rest`: what the plan's peak has beside persistent and arena bytes, by name.
MemoryFormula memory_formula(const passes::SessionPlan& session, const MemoryTimeline& timeline,
                             int64_t sequences, const std::vector<std::pair<std::string, int64_t>>& rest);

/// {"event": "memory_timeline", …}: see docs/memory.md.
io::Tree timeline_event(const MemoryTimeline& timeline, const MemoryFormula& formula);

}  // namespace plimsoll::planner
