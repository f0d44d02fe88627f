// One chunk of one parameter's update: what the rules' vector code is given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/dtype.h"
#include "ops/philox.h"
#include "ops/update_rules.h"

namespace plimsoll::cpu {

inline constexpr int kMaxStates = 2;  ///< of a rule

/// A part of one tensor: parameter, gradient and states are read, parameter and states written, which may lie
/// where they were, and behind them the parameter's copy, if there is to be one.
struct UpdateChunk {
  std::byte* in[2 + kMaxStates];
  std::byte* out[2 + kMaxStates];
  ir::DType in_dtype[2 + kMaxStates], out_dtype[2 + kMaxStates];
  const float* group;  ///< the group's row of the table
  float clip;
  ir::DType rounded;  ///< of the gradient; f32: as it comes
  bool is_plain;      ///< all f32, no copy
  bool draws;         ///< bf16 results are rounded stochastically
  ops::RandomStream stream;
  uint32_t block;  ///< of the first element, in the tensor of which this may be a window
};

using ChunkFunction = void (*)(const UpdateChunk&, int64_t n);

/// How the rule updates a chunk of n elements on this machine.
ChunkFunction chunk_function(const ops::UpdateRule& rule);

}  // namespace plimsoll::cpu
