#include "planner/cost/network.h"

#include <algorithm>

namespace plimsoll::planner {

double network_bytes(const ir::Graph& graph, const ir::Op& op) {
  return op.def->traffic == nullptr ? 0 : op.def->traffic(ir::op_types(graph, op)).bytes();
}

double Network::seconds(const ir::Traffic& traffic) const {
  const int64_t near = per_node == 0 ? traffic.messages : std::min(traffic.messages, per_node - 1);
  const auto part = [&](int64_t messages, double bandwidth) {
    const auto bytes = static_cast<double>(traffic.message_bytes);
    return messages == 0 ? 0 : static_cast<double>(messages) * (latency + bytes / bandwidth);
  };
  return part(near, intra) + part(traffic.messages - near, inter);
}

}  // namespace plimsoll::planner
