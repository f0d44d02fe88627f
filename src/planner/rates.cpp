#include "planner/rates.h"

namespace plimsoll::planner {

double estimate_seconds(double flops, double bytes, int num_threads) {
  constexpr double kFlopsPerThread = 100e9;
  constexpr double kBytesPerThread = 8e9;
  return flops / (kFlopsPerThread * num_threads) + bytes / (kBytesPerThread * num_threads);
}

}  // namespace plimsoll::planner
