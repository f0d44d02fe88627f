// Counts the seconds that the threads of this process spend loading images, by part: they show whether
// reading, decoding or augmentation is what a run waits for.
#pragma once

#include <chrono>
#include <cstdint>

namespace plimsoll::images {

enum class LoadPart : uint8_t { kReading, kDecoding, kAugmenting };  ///< decoding: and resizing

/// Seconds, added up over all threads. What counts is the difference between two moments.
struct LoadTimes {
  double reading = 0, decoding = 0, augmenting = 0;

  [[nodiscard]] double total() const { return reading + decoding + augmenting; }
  [[nodiscard]] LoadTimes since(const LoadTimes& before) const {
    return {reading - before.reading, decoding - before.decoding, augmenting - before.augmenting};
  }
  void add(const LoadTimes& more) {
    reading += more.reading;
    decoding += more.decoding;
    augmenting += more.augmenting;
  }
  /// The part that took longest.
  [[nodiscard]] LoadPart longest() const {
    if (reading >= decoding && reading >= augmenting) return LoadPart::kReading;
    return decoding >= augmenting ? LoadPart::kDecoding : LoadPart::kAugmenting;
  }
};
/// Since the start of the process; from any thread.
LoadTimes load_times();

/// Adds the time from its construction to its destruction to a part.
class LoadTimer {
 public:
  explicit LoadTimer(LoadPart part) : part_(part), start_(std::chrono::steady_clock::now()) {}
  ~LoadTimer();
  LoadTimer(const LoadTimer&) = delete;
  LoadTimer& operator=(const LoadTimer&) = delete;

 private:
  LoadPart part_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace plimsoll::images
