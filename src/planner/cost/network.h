// Seconds and bytes of collectives between ranks: the alpha-beta model, in which a message takes a latency
// and its bytes over the bandwidth of the link.
#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::planner {

/// Bytes that the op moves to or from this rank; 0 of what is no collective.
double network_bytes(const ir::Graph& graph, const ir::Op& op);

/// Rates are those of one rank, in each direction.
struct Network {
  int64_t per_node = 0;  ///< ranks of one machine; 0: all
  double intra = 0;      ///< bytes a second within a machine; 0: as fast as its memory
  double inter = 0;      ///< and between machines
  double latency = 0;
  bool is_described = false;  ///< by the user

  /// As many messages as can be stay within the machine; they follow one another.
  [[nodiscard]] double seconds(const ir::Traffic& traffic) const;
};

}  // namespace plimsoll::planner
