#include "planner/recompute/recompute_chain.h"

#include <algorithm>

#include "planner/cost/step_cost.h"

namespace plimsoll::planner {
namespace {

using passes::RecomputeUnit;

/// The block that runs at each op: what is shared by several is hoisted away from its own, and ops of none
/// run beside a block. So the least of those to come as long as blocks go forward, the last block at the
/// loss, the largest of those to come behind it; what runs before the first block, and behind its backward,
/// is the first's, as it saves nothing either. What blocks behind the last one do is counted as the last
/// one's.
std::vector<int32_t> running_blocks(const ir::Graph& graph, size_t loss, int32_t num_blocks) {
  const auto& order = graph.order();
  std::vector<int32_t> running(order.size());
  int32_t block = loss < order.size() ? 0 : num_blocks - 1;
  for (size_t i = order.size(); i-- > 0;) {
    const int32_t own = std::min(graph.op(order[i]).block, num_blocks - 1);
    if (i == loss) block = num_blocks - 1;
    if (own >= 0) block = i > loss ? std::max(block, own) : std::min(block, own);
    running[i] = block;
  }
  return running;
}

struct Between {
  int64_t at_loss = 0, beside_it = 0;
};

/// The most that is alive while each block runs, and between the last one's forward and its backward.
Between measure(const passes::Program& program, AliveByBlock& most) {
  const std::vector<int64_t> alive = alive_bytes(program);
  const auto& order = program.graph.order();
  const auto last = static_cast<int32_t>(most.blocks.size()) - 1;
  const auto is_last = [&](size_t i) { return program.graph.op(order[i]).block >= last; };
  const size_t loss = place_of_loss(program.graph);
  size_t last_forward = 0, first_backward = order.size();
  for (size_t i = 0; i < order.size(); ++i) {
    if (!is_last(i)) continue;
    if (i < loss) last_forward = i;
    if (i > loss) first_backward = std::min(first_backward, i);
  }
  int64_t beside_loss = 0;
  const std::vector<int32_t> running = running_blocks(program.graph, loss, last + 1);
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_between = i > last_forward && i < first_backward;
    int64_t& needed = is_between ? most.at_end : most.blocks[static_cast<size_t>(running[i])];
    needed = std::max(needed, alive[i]);
    if (is_between && i != loss) beside_loss = std::max(beside_loss, alive[i]);
  }
  return {alive[loss], beside_loss};
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

std::vector<LayerGain> layer_gains(const passes::RecomputeAnalysis& program, const CostModel& model) {
  std::vector<LayerGain> gains;
  const auto add = [&](const RecomputeUnit& unit) {
    const passes::RecomputeGain gain = program.gain(unit);
    gains.push_back({unit, gain.bytes, seconds_again(program.graph(), gain.cloned, model)});
  };
  const RecomputeUnit* before = nullptr;
  for (const RecomputeUnit& layer : program.layers()) {
    add(layer);
    if (!layer.part.empty()) continue;
    if (before != nullptr) add({before->first, layer.last, {}, before->name + ".." + layer.name});
    before = &layer;
  }
  return gains;
}

RecomputeChain recompute_chain(const passes::Program& program, const std::vector<LayerGain>& gains,
                               const std::vector<LossChunk>& chunks, const CostModel& model) {
  RecomputeChain chain;
  for (const LayerGain& g : gains)
    chain.blocks.resize(std::max(chain.blocks.size(), static_cast<size_t>(g.unit.last) + 1));
  if (chain.blocks.empty()) return chain;
  std::vector<std::vector<RecomputeOption>> parts(chain.blocks.size());
  for (const LayerGain& g : gains) {
    const auto index = static_cast<size_t>(g.unit.first);
    const RecomputeOption option{{g.unit.name}, g.bytes, g.seconds};
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
    second.input_bytes = std::max<int64_t>(0, g.bytes - first.saved_bytes - second.saved_bytes);
    first.tail_seconds = std::max(0.0, g.seconds - first.seconds - second.seconds);
  }
  for (size_t i = 0; i < chain.blocks.size(); ++i) {
    const RecomputeBlock& block = chain.blocks[i];
    chain.blocks[i].options = options_of(parts[i], {{block.name}, block.saved_bytes, block.seconds});
  }
  AliveByBlock most{std::vector<int64_t>(chain.blocks.size())};
  const Between between = measure(program, most);
  for (size_t i = 0; i < chain.blocks.size(); ++i) chain.blocks[i].needed_bytes = most.blocks[i];
  chain.needed_bytes = most.at_end;
  for (const LossChunk& c : chunks) {
    const int64_t needed = std::max(between.beside_it, between.at_loss - c.saved_bytes);
    if (needed < chain.needed_bytes)
      chain.chunks.push_back({c.tokens, chain.needed_bytes - needed, seconds_more(program, c, model)});
  }
  return chain;
}

AliveByBlock alive_by_block(const passes::Program& program, size_t num_blocks) {
  AliveByBlock most{std::vector<int64_t>(num_blocks)};
  if (num_blocks > 0) measure(program, most);
  return most;
}

}  // namespace plimsoll::planner
