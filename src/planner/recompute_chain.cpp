#include "planner/recompute_chain.h"

#include <algorithm>

#include "passes/memory_plan.h"

namespace plimsoll::planner {
namespace {

using passes::RecomputeUnit;

/// Bytes of the device's arena that are alive at each place of the order.
std::vector<int64_t> alive_bytes(const passes::Program& program) {
  std::vector<int64_t> change(program.graph.order().size() + 1, 0);
  for (const memory::Buffer& b : arena_buffers(program.binding, ir::MemorySpace::kDevice, nullptr)) {
    change[static_cast<size_t>(b.lower)] += b.size;
    change[static_cast<size_t>(b.upper)] -= b.size;
  }
  for (size_t i = 1; i < change.size(); ++i) change[i] += change[i - 1];
  return change;
}

/// The most that is alive while each block runs, and between the last one's forward and its backward.
void measure(const passes::Program& program, RecomputeChain& chain) {
  const std::vector<int64_t> alive = alive_bytes(program);
  const auto& order = program.graph.order();
  const auto block_of = [&](size_t i) { return program.graph.op(order[i]).block; };
  const auto is_loss = [&](ir::OpId id) { return program.graph.op(id).def->is_loss; };
  const auto loss = static_cast<size_t>(std::ranges::find_if(order, is_loss) - order.begin());
  size_t last_forward = 0, first_backward = order.size();
  for (size_t i = 0; i < order.size(); ++i) {
    if (block_of(i) < 0) continue;
    if (i < loss) last_forward = i;
    if (i > loss) first_backward = std::min(first_backward, i);
  }
  int32_t block = 0;  // what runs before the first block, and behind its backward, saves nothing either
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_between = i > last_forward && i < first_backward;
    if (block_of(i) >= 0) block = block_of(i);
    int64_t& needed = is_between ? chain.needed_bytes : chain.blocks[static_cast<size_t>(block)].needed_bytes;
    needed = std::max(needed, alive[i]);
  }
}

/// All that parts of a block can do together, and the block by itself.
std::vector<RecomputeOption> options_of(const std::vector<RecomputeOption>& parts,
                                        const RecomputeOption& whole) {
  std::vector<RecomputeOption> options;
  constexpr size_t kMostParts = 4;
  const size_t count = std::min(parts.size(), kMostParts);
  for (size_t set = 1; set < (size_t{1} << count); ++set) {
    RecomputeOption option;
    for (size_t i = 0; i < count; ++i) {
      if ((set >> i & 1) == 0) continue;
      option.layers.insert(option.layers.end(), parts[i].layers.begin(), parts[i].layers.end());
      option.saved_bytes += parts[i].saved_bytes;
      option.seconds += parts[i].seconds;
    }
    options.push_back(std::move(option));
  }
  options.push_back(whole);
  return options;
}

}  // namespace

std::vector<LayerGain> layer_gains(const passes::RecomputeAnalysis& program) {
  std::vector<LayerGain> gains;
  const RecomputeUnit* before = nullptr;
  for (const RecomputeUnit& layer : program.layers()) {
    gains.push_back({layer, program.gain(layer)});
    if (!layer.part.empty()) continue;
    if (before != nullptr) {
      const RecomputeUnit pair{before->first, layer.last, {}, before->name + ".." + layer.name};
      gains.push_back({pair, program.gain(pair)});
    }
    before = &layer;
  }
  return gains;
}

RecomputeChain recompute_chain(const passes::Program& program, const std::vector<LayerGain>& gains,
                               const std::function<double(const ir::Cost&)>& seconds) {
  RecomputeChain chain;
  for (const LayerGain& g : gains)
    chain.blocks.resize(std::max(chain.blocks.size(), static_cast<size_t>(g.unit.last) + 1));
  if (chain.blocks.empty()) return chain;
  std::vector<std::vector<RecomputeOption>> parts(chain.blocks.size());
  for (const LayerGain& g : gains) {
    const auto index = static_cast<size_t>(g.unit.first);
    const RecomputeOption option{{g.unit.name}, g.gain.bytes, seconds(g.gain.cost)};
    RecomputeBlock& block = chain.blocks[index];
    if (g.unit.first != g.unit.last) continue;
    if (!g.unit.part.empty()) {
      parts[index].push_back(option);
      continue;
    }
    block.name = g.unit.name;
    block.saved_bytes = option.saved_bytes;
    block.seconds = option.seconds;
  }
  for (const LayerGain& g : gains) {
    if (g.unit.first == g.unit.last) continue;
    RecomputeBlock& first = chain.blocks[static_cast<size_t>(g.unit.first)];
    RecomputeBlock& second = chain.blocks[static_cast<size_t>(g.unit.last)];
    second.input_bytes = std::max<int64_t>(0, g.gain.bytes - first.saved_bytes - second.saved_bytes);
    first.tail_seconds = std::max(0.0, seconds(g.gain.cost) - first.seconds - second.seconds);
  }
  for (size_t i = 0; i < chain.blocks.size(); ++i) {
    const RecomputeBlock& block = chain.blocks[i];
    chain.blocks[i].options = options_of(parts[i], {{block.name}, block.saved_bytes, block.seconds});
  }
  measure(program, chain);
  return chain;
}

}  // namespace plimsoll::planner
