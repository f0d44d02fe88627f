// The programs of generation, from a model and the shapes of a batch to bound, planned programs.
//
//   prefill  [B, C] tokens from `start` on: keys and values go into the cache; no head, and of the last layer
//            nothing but its keys and values, for nothing else is assigned
//   decode   [B, 1] tokens: into the cache as well, and on to the logits
//
// The cache is state of the session, [B, S, kv_heads, head_dim] twice a layer, in what pipeline.precision
// stores. A row's position `start` is data, so rows of different lengths run side by side. Columns behind a
// row's end write garbage behind it, which is overwritten before anything sees it.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "models/language_model.h"
#include "passes/memory/memory_plan.h"
#include "passes/pipeline.h"
#include "passes/session_plan.h"
#include "runtime/target.h"

namespace plimsoll::planner {

// States by which the host and the programs speak.
inline constexpr std::string_view kChunkState = "generate.chunk";        ///< i32[B, C]: what prefill reads
inline constexpr std::string_view kNextState = "generate.next";          ///< i32[B, 1]: what decode reads
inline constexpr std::string_view kStartState = "generate.start";        ///< i32[B]: position of column 0
inline constexpr std::string_view kNextLogitsState = "generate.logits";  ///< f32[B, 1, V]

struct GenerationOptions {
  int64_t batch_size = 1;
  int64_t cache_tokens = 0;  ///< S: positions that a row can hold
  int64_t chunk_tokens = 0;  ///< C: at most S; 0: no prefill program
  passes::PipelineOptions pipeline = {};
  passes::MemoryPlanOptions memory = {};
};

struct GenerationPrograms {
  passes::SessionPlan session;
  double prefill_flops = 0;  ///< of one chunk
  double decode_flops = 0;   ///< of one token a row
  double decode_bytes = 0;   ///< that cross memory for it; the whole cache counted
};

/// Builds, optimises, binds and plans both. `target` is asked for workspaces and strides alone.
/// Determinism: a row's logits depend on that row alone, whatever batch, cache and chunk are.
/// Errors: kInvalidArgument from shapes that do not fit.
Result<GenerationPrograms> build_generation_programs(const models::LanguageModel& model,
                                                     const GenerationOptions& options,
                                                     const runtime::Target& target);

}  // namespace plimsoll::planner
