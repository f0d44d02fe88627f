#include "planner/rates.h"

namespace plimsoll::planner {

double estimate_seconds(double flops, double bytes, int num_threads, bool tiles) {
  constexpr double kBytesPerThread = 8e9;
  const double flops_per_thread = tiles ? 600e9 : 100e9;
  return flops / (flops_per_thread * num_threads) + bytes / (kBytesPerThread * num_threads);
}

}  // namespace plimsoll::planner
