// Has states and values lie in the host's memory or on a disk while nothing computes with them. What kernels
// read is loaded before it, what they have made is stored behind it, by queues that run beside them:
//
//   %4 = state {name="w"} : f32[64,64] host_pinned                  the state itself lies there
//   %5 = copy_start(%4) {to="device"} queue=copy_in                 as early as there is room
//   …                                                               kernels
//   %6 = copy_done(%5, %4)                                          before the first of the ops that read it
//   …
//   %8 = copy_start(%7) {to="host_pinned"} queue=copy_out           written where the state lies
//   …                                                               the device's bytes live until here
//   %9 = copy_done(%8, %7)
//   state_assign(%9) {name="w"}
//
// An update may be the host's: its states stay where they lie, the gradient goes out, the weight comes in.
//
//   %12 = copy_done(%11, %10)                                       the gradient, in the host's memory
//   %13, %14, %15 = adamw(%p, %12, %m, %v, …) queue=host            %m and %v are written in place
//   %16 = copy_start(%13) {to="device"} queue=copy_in
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::passes {

/// What can lie elsewhere, by what it is for.
enum class OffloadClass : uint8_t { kActivations, kOptimizer, kMasters, kGradients, kParameters };
inline constexpr size_t kNumOffloadClasses = 5;
/// "activations", "optimizer", "masters", "gradients", "parameters".
std::string_view name(OffloadClass c);

/// Of a class all that there is, in the model's blocks and outside of them.
inline constexpr int32_t kAllBlocks = -1;

struct OffloadOptions {
  std::array<ir::MemorySpace, kNumOffloadClasses> spaces{};  ///< kDevice: stays there
  /// By class: of how many of the model's blocks it lies elsewhere, and nothing outside of blocks; or
  /// kAllBlocks. Of activations the first blocks, which are away longest; of the others blocks that are
  /// spread evenly, so that each copy has the kernels of those between them to hide behind.
  std::array<int32_t, kNumOffloadClasses> blocks = {kAllBlocks, kAllBlocks, kAllBlocks, kAllBlocks,
                                                    kAllBlocks};
  int32_t num_blocks = 0;  ///< of the model
  /// Loads ahead and stores behind raise the peak of the device by at most this part of it; 0: not at all;
  /// negative: none is ahead or behind.
  int64_t slack_part = 8;

  /// Updates whose states lie in kHostPinned are the host's (ir::Queue::kHost): what they read goes there,
  /// what they make of the device's comes back.
  bool updates_on_host = false;

  int64_t least_bytes = 4096;  ///< what is less stays where it is
  /// The least window of an update that is cut (chunked_update.h), and what larger ones are multiples of: 4
  /// MiB of fp32, from where on a disk's rate no longer grows with the transfer (docs/offload.md).
  int64_t window_elements = int64_t{1} << 20;

  [[nodiscard]] ir::MemorySpace space(OffloadClass c) const { return spaces[static_cast<size_t>(c)]; }
  /// Where what of that class belongs to that block lies; ir::kNoBlock: to none.
  [[nodiscard]] ir::MemorySpace space(OffloadClass c, int32_t block) const;
  /// Whether anything lies elsewhere.
  [[nodiscard]] bool any() const;
  /// Whether updates are to go parameter by parameter: one op over all would hold all at once.
  [[nodiscard]] bool streams_updates() const;
  bool operator==(const OffloadOptions&) const = default;
};

/// The block of a state, by the number in its name, "grad.layers.3.mlp.down_proj"; ir::kNoBlock: none.
int32_t block_of_state(std::string_view name);
/// Where a state of that class, block and size lies.
ir::MemorySpace offloaded_space(const OffloadOptions& options, const ir::StateDecl& decl);
/// The same, where the block is known.
ir::MemorySpace offloaded_space(const OffloadOptions& options, const ir::StateDecl& decl, int32_t block);

struct OffloadContext {
  /// The op that gives the loss: activations are what stands before it and is read behind it. Invalid: there
  /// are none.
  ir::OpId last_forward_op = {};
  std::span<ir::ValueId> keep = {};  ///< values of outside holders, replaced by what stands for them
};

/// Each gradient's squares are summed where it is made, so that it can go to the host then: what `offload`
/// does first where the host updates.
void sum_squares_early(ir::Graph& graph);

/// Writes the graph anew, in the order that it has. Values, and states' declarations, keep their bits; ids do
/// not last. Deterministic. Errors: none yet.
Status offload(ir::Graph& graph, const OffloadOptions& options, const OffloadContext& context);

/// Bytes that a run of the program moves out of the device and into it, over its copy queues.
struct BytesMoved {
  int64_t out = 0, in = 0;
};
BytesMoved bytes_moved(const ir::Graph& graph);

}  // namespace plimsoll::passes
