// Offload options as settings state them, apart from the pass, so that readers of settings need no graph.
#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "passes/offload/offload.h"

namespace plimsoll::passes {

std::string_view name(OffloadClass c) {
  static constexpr std::array<std::string_view, kNumOffloadClasses> kNames = {
      "activations", "optimizer", "masters", "gradients", "parameters"};
  return kNames[static_cast<size_t>(c)];
}

ir::MemorySpace OffloadOptions::space(OffloadClass c, int32_t block) const {
  const int64_t count = blocks[static_cast<size_t>(c)];
  if (count == kAllBlocks) return space(c);
  if (block < 0 || num_blocks == 0) return ir::MemorySpace::kDevice;
  const bool is_taken = c == OffloadClass::kActivations
                            ? block < count
                            : (block + 1) * count / num_blocks > block * count / num_blocks;
  return is_taken ? space(c) : ir::MemorySpace::kDevice;
}

int32_t block_of_state(std::string_view name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    int32_t block = 0;
    const auto [rest, error] = std::from_chars(name.data() + begin, name.data() + end, block);
    if (error == std::errc() && rest == name.data() + end && block >= 0) return block;
    begin = end + 1;
  }
  return ir::kNoBlock;
}

bool OffloadOptions::any() const {
  return std::ranges::any_of(spaces, [](ir::MemorySpace space) { return space != ir::MemorySpace::kDevice; });
}

bool OffloadOptions::streams_updates() const {
  for (size_t c = 0; c < kNumOffloadClasses; ++c)
    if (static_cast<OffloadClass>(c) != OffloadClass::kActivations && spaces[c] != ir::MemorySpace::kDevice)
      return true;
  return false;
}

}  // namespace plimsoll::passes
