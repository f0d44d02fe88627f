#include "images/load_times.h"

#include <array>
#include <atomic>

namespace plimsoll::images {
namespace {

std::array<std::atomic<int64_t>, 3> nanoseconds{};

double seconds_of(LoadPart part) {
  return 1e-9 * static_cast<double>(nanoseconds[static_cast<size_t>(part)].load(std::memory_order_relaxed));
}

}  // namespace

LoadTimes load_times() {
  return {seconds_of(LoadPart::kReading), seconds_of(LoadPart::kDecoding), seconds_of(LoadPart::kAugmenting)};
}

LoadTimer::~LoadTimer() {
  const auto passed = std::chrono::steady_clock::now() - start_;
  nanoseconds[static_cast<size_t>(part_)].fetch_add(
      std::chrono::duration_cast<std::chrono::nanoseconds>(passed).count(), std::memory_order_relaxed);
}

}  // namespace plimsoll::images
