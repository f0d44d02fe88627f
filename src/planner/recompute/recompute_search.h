// Chooses the cheapest layers to recompute so that a step fits its arena.
//
// A chain of blocks: block i keeps values from its forward to its backward, one within the other. What is
// alive at most while block i runs, forward or backward, falls by what the blocks before it have saved; at
// the loss by what all have, and by smaller chunks of it. So the cheapest choice is a knapsack with a
// constraint at each block, solved exactly over (bytes saved so far, seconds); a run of blocks kept by its
// first input alone is one step over several blocks. That is every persistent schedule of one level: none in
// which a clone is dropped and made a third time (Beaumont et al., Rotor, ACM TOMS 2024, have those as well).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::planner {

struct RecomputeOption {
  std::vector<std::string> layers;  ///< names, as RecomputePolicy takes them
  int64_t saved_bytes = 0;
  double seconds = 0;
};

struct RecomputeBlock {
  std::string name;
  int64_t needed_bytes = 0;  ///< alive at most while it runs, where nothing is computed again
  std::vector<RecomputeOption> options = {};  ///< beside keeping all
  int64_t saved_bytes = 0;                    ///< of the whole block, as a part of a run
  double seconds = 0;
  int64_t input_bytes = 0;  ///< what a run saves beside, where the block is not its first
  double tail_seconds = 0;  ///< what a run costs beside, where the block is not its last
};

/// Head and loss in smaller chunks of tokens than the program's.
struct ChunkOption {
  int64_t tokens = 0;
  int64_t saved_bytes = 0;  ///< of what is alive at most between the last block's forward and its backward
  double seconds = 0;       ///< more than with the program's chunks
};

struct RecomputeChain {
  std::vector<RecomputeBlock> blocks;
  int64_t needed_bytes = 0;              ///< alive at most between the last block's forward and its backward
  std::vector<ChunkOption> chunks = {};  ///< beside the program's own
};

struct RecomputeChoice {
  std::vector<std::string> layers;
  double seconds = 0;
  int64_t chunk_tokens = 0;  ///< of head and loss; 0: the program's
  /// Saved before each block runs, or the run that it is in; the last one: by all, chunks too. Empty where
  /// the search did not make the choice.
  std::vector<int64_t> saved_before = {};
};

/// What is alive at most while each block runs, and between the last one's forward and its backward.
struct AliveByBlock {
  std::vector<int64_t> blocks;
  int64_t at_end = 0;
};
/// The chain with the needs that a program of that choice of its has: the program that computes nothing again
/// says little about what clones hold beside them.
RecomputeChain corrected(RecomputeChain chain, const RecomputeChoice& choice, const AliveByBlock& alive);

/// The least seconds under which no more than `arena_bytes` are alive; nothing where no choice does that.
/// Between two choices that take equally long the one with larger chunks.
/// Bytes saved are counted in units, rounded down: their greatest common divisor, which is exact, where the
/// whole is no more than 4,096 of it (of few blocks: 2^20 over their square), else the whole over that.
/// Deterministic; more memory is never slower.
std::optional<RecomputeChoice> cheapest_recompute(const RecomputeChain& chain, int64_t arena_bytes);

/// The least arena for which there is a choice.
int64_t least_arena(const RecomputeChain& chain);

}  // namespace plimsoll::planner
