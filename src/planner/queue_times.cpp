#include "planner/queue_times.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "ir/op_def.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;

size_t at(ir::ValueId v) { return static_cast<size_t>(v.index); }

}  // namespace

double copy_seconds(const MachineProfile& profile, int64_t bytes, MemorySpace from, MemorySpace to) {
  const auto rate = [](double known, double other) { return known > 0 ? known : other; };
  const bool in = to == MemorySpace::kDevice;
  const bool disk = from == MemorySpace::kDisk || to == MemorySpace::kDisk;
  const double link = in ? profile.copy_in_bandwidth : profile.copy_out_bandwidth;
  const double bandwidth =
      disk ? rate(in ? profile.disk_read_bandwidth : profile.disk_write_bandwidth, kUnknownDiskBandwidth)
           : rate(link, profile.memory_bandwidth);
  return static_cast<double>(bytes) / std::max(1.0, bandwidth);
}

double waiting_seconds(const ir::Graph& graph, std::span<const double> kernel_seconds,
                       const MachineProfile& profile) {
  std::array<double, ir::kNumQueues> clock = {};
  double& kernels = clock[static_cast<size_t>(ir::Queue::kCompute)];
  std::vector<double> ready(graph.num_values(), 0.0);
  double worked = 0;
  for (size_t place = 0; place < graph.order().size(); ++place) {
    const ir::Op& op = graph.op(graph.order()[place]);
    double begin = 0;
    for (const ir::ValueId v : op.inputs)
      if (v.valid()) begin = std::max(begin, ready[at(v)]);
    double end = begin;
    if (op.def->is_copy) {
      const MemorySpace from = graph.value(op.inputs[0]).space, to = graph.value(op.outputs[0]).space;
      double& queue = clock[static_cast<size_t>(op.queue)];
      begin = std::max(begin, queue);
      if (to == MemorySpace::kDevice) begin = std::max(begin, kernels);
      end = queue = begin + copy_seconds(profile, graph.type(op.outputs[0]).bytes().count, from, to);
    } else if (op.def->name == "copy_done") {
      if (graph.value(op.outputs[0]).space != MemorySpace::kDevice) kernels = std::max(kernels, end);
    } else if (!op.def->is_view && op.def->state == ir::StateAccess::kNone) {
      worked += kernel_seconds[place];
      end = kernels = std::max(kernels, begin) + kernel_seconds[place];
    }
    for (const ir::ValueId v : op.outputs) ready[at(v)] = end;
  }
  return *std::ranges::max_element(clock) - worked;
}

}  // namespace plimsoll::planner
