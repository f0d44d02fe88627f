// The plan as people and machines read it: bytes by class and by phase, the peak and what stands there, the
// time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/tree.h"
#include "passes/session_plan.h"
#include "planner/cost/cost_model.h"
#include "planner/cost/machine_profile.h"

namespace plimsoll::planner {

/// A line of the table by phase: what lives while a program runs, at most.
struct PhaseBytes {
  std::string name;  ///< "step", "eval", "checkpoint", "final save", …
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t host_bytes = 0;
};

/// A line of the table by pool: a memory space, and what is at most taken of it.
struct PoolReport {
  std::string name;  ///< "device", "host_pinned", …
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;
  int64_t other_bytes = 0;  ///< staging, buffers, the process's own
  [[nodiscard]] int64_t peak_bytes() const { return persistent_bytes + arena_bytes + other_bytes; }
};

/// What of a plan is bounded. On the CPU the process's peak is the device's and the host's.
enum class Bounded : uint8_t { kProcess, kDevice, kHost, kDisk };
struct Budget {
  std::string setting;  ///< that gives it, "memory.budget"
  Bounded bounded = Bounded::kProcess;
  int64_t bytes = 0;
  bool automatic = false;  ///< what is available now
};

/// What a training leaves on the disk, at most at once.
struct DiskReport {
  int64_t checkpoint_bytes = 0, final_bytes = 0;
  std::optional<int64_t> checkpoints =
      {};                   ///< the one being written too; nothing: as many as the data decides
  int64_t cache_bytes = 0;  ///< tokenized texts, a guess
  int64_t offload_bytes = 0;
  std::optional<int64_t> total_bytes = {};
  std::optional<int64_t> free_bytes = {};  ///< now, where that is known
  [[nodiscard]] bool lacks_bytes() const { return total_bytes && free_bytes && *total_bytes > *free_bytes; }
};

/// Settings under which a plan that does not fit would, with what they come to.
struct Remedy {
  std::vector<std::pair<std::string, std::string>> settings;  ///< path and YAML value
  int64_t peak_bytes = 0;                                     ///< of the process
  double seconds = 0;                                         ///< a step, estimated
  std::string note;                                           ///< what it costs
  /// "training.precision=bf16 training.state.moments=bf16": as overrides.
  [[nodiscard]] std::string text() const;
};

/// A way to run a step that was planned: what it takes.
struct Alternative {
  int64_t micro_batch_size = 1, grad_accum_steps = 1;
  std::string recompute = {};
  int64_t loss_chunk_tokens = 0;
  int64_t peak_bytes = 0;    ///< of the process
  int64_t excess_bytes = 0;  ///< over the budget that it exceeds most; negative: what is left
  double seconds = 0;        ///< a step, estimated
  bool optimizer_in_backward = false;
  bool operator==(const Alternative&) const = default;
};

/// Why a step is run as it is.
struct Why {
  std::string budget = {};  ///< the setting that binds, or would first; empty: nothing was chosen
  std::optional<Alternative> faster = {};     ///< the fastest that was planned; it does not fit
  std::optional<Alternative> runner_up = {};  ///< the fastest that fits, beside the one that is run
  int64_t more_bytes = 0;                     ///< 0: more memory buys nothing
  std::optional<Alternative> with_more = {};  ///< what would be run with so much more
};

struct PlanReport {
  bool fits = true;
  // Device: on the CPU the process's own memory.
  int64_t persistent_bytes = 0;
  int64_t arena_bytes = 0;
  /// Of the process: binary, libraries, stacks. On the CPU a part of the device's peak, else of the host's.
  int64_t overhead_bytes = 0;
  bool device_is_process = true;
  bool device_in_process = true;    ///< a card's memory is not
  int64_t context_bytes = 0;        ///< of a card, beside what plans may take of it; no part of its peak
  int64_t host_pinned_bytes = 0;    ///< states and arena there, staging
  int64_t host_pageable_bytes = 0;  ///< states and arena there, buffers
  int64_t disk_bytes = 0;
  std::optional<DiskReport> disk = {};  ///< of a training
  std::vector<PoolReport> pools;
  int64_t budget_bytes = 0;  ///< the process's
  std::vector<Budget> budgets;
  std::vector<std::pair<std::string, int64_t>> classes;  ///< add up to persistent + arena
  std::vector<PhaseBytes> phases;
  std::string peak_program, peak_op, peak_layer;
  std::vector<passes::AliveTensor> alive;  ///< at the peak, largest first
  double offset_lower_bound_ratio = 1.0;   ///< arena / its lower bound
  // Work.
  double flops = 0, recompute_flops = 0, bytes_moved = 0, seconds_estimated = 0;
  StepSeconds parts = {};                   ///< of seconds_estimated
  int64_t units = 0;                        ///< of the task, in a step; of tokens also those that are padding
  std::string unit = "tokens";              ///< what they are
  std::optional<int64_t> total_steps = {};  ///< of the run, where the settings say
  std::vector<Remedy> remedies;             ///< where it does not fit
  std::vector<std::string> tried;           ///< without remedies: settings that were planned, "a=b c=d"
  std::string tried_excess;                 ///< with all of them that lower the peak, see excess_text
  // Buckets; sequences and positions are those of the data, where they are known.
  std::vector<int64_t> buckets;  ///< lengths, one or none: no buckets
  int64_t bucket_sequences = 0, bucket_tokens = 0, bucket_positions = 0;
  bool pads = false;  ///< sequences are filled up to a length: `units` of a step are positions
  // Choices.
  int64_t micro_batch_size = 1, grad_accum_steps = 1, threads = 1;
  int64_t offload_out_bytes = 0, offload_in_bytes = 0;  ///< a step, out of the device and into it
  int64_t batch_norms = 0, frozen_norms = 0;  ///< BatchNorm layers by where their statistics come from
  bool norms_synchronised = false;            ///< of the batch of all ranks
  int64_t ranks = 1;                          ///< of which this is the plan of each
  int32_t gathered_layers = 0;                ///< whose parameters stay gathered from forward to backward
  double network_bytes = 0;                   ///< to or from a rank, in a step
  bool network_described = false;             ///< by distributed.topology
  bool update_on_host = false;                ///< of what has its states in the host's memory
  std::string recompute = "none", offload = "none", rates = "uncalibrated";
  std::string profile = {};       ///< whose rates they are
  int64_t loss_chunk_tokens = 0;  ///< tokens whose logits exist at once; 0: head and loss are apart
  Why why = {};                   ///< of a training's choices
  bool optimizer_in_backward = false, second_backward = false;
  std::string no_optimizer_in_backward;    ///< why not; empty where it is, and where nothing is trained
  std::vector<std::string> recompute_set;  ///< layers that are computed again, beside what is nearly free
  /// Where the training state lives, and in which dtype: weights, master_weights, gradients, moments,
  /// rounding. None: nothing is trained.
  std::vector<std::pair<std::string, std::string>> state;
  // The model.
  int64_t num_ops = 0;  ///< in all programs of the session
  std::string model;
  int64_t num_parameters = 0;
  std::optional<int64_t> num_trained = {};  ///< of them; nothing: nothing is trained
  double planning_seconds = 0;

  /// Whether the time is told: not where no rates of the device are known.
  [[nodiscard]] bool has_time() const { return seconds_estimated > 0 && rates != kUnknownRates; }
  /// By the estimate, of the same units that a run counts: without padding, as far as its share is known. 0
  /// where no time is told.
  [[nodiscard]] double units_per_second() const;
  /// Its key in JSON: "tokens_per_second".
  [[nodiscard]] std::string speed_key() const { return unit + "_per_second"; }
  /// What bounds the device's memory, of a process on the CPU and of the host beside a device: the least that
  /// does. Nothing where nothing does.
  [[nodiscard]] const Budget* device_budget() const;
  [[nodiscard]] const Budget* host_budget() const;
  /// Share of positions that are padding, with the buckets or with one length.
  [[nodiscard]] double padding() const;
  [[nodiscard]] double padding_of_one_length() const;
  [[nodiscard]] int64_t device_peak_bytes() const {
    return persistent_bytes + arena_bytes + (device_is_process ? overhead_bytes : 0);
  }
  [[nodiscard]] int64_t host_peak_bytes() const {
    return host_pinned_bytes + host_pageable_bytes + (device_is_process ? 0 : overhead_bytes);
  }
  [[nodiscard]] int64_t process_peak_bytes() const {
    return (device_in_process ? device_peak_bytes() : 0) + host_peak_bytes();
  }
};

/// The `plan` event of `--json`.
io::Tree plan_event(const PlanReport& report);
/// Its `choices`: how the step is run.
io::Tree choices_event(const PlanReport& report);
/// The tables for people, lines of at most 80 columns where names allow; the verdict comes first.
std::string plan_table(const PlanReport& report);
/// "Plan for gpt2: 124,439,808 parameters, …": the model and a step.
std::string plan_head(const PlanReport& report);

/// "micro-batch 8, no accumulation", "micro-batch 2 x 16 accumulation steps".
std::string split_text(int64_t micro_batch_size, int64_t grad_accum_steps);

/// Fills classes, peak and arena fields from the session, and adds what it takes of host memory and disk.
void describe_session(const passes::SessionPlan& session, PlanReport& report);
/// Fills the pools, from what all else has been filled with.
void describe_pools(const passes::SessionPlan& session, PlanReport& report);

}  // namespace plimsoll::planner
