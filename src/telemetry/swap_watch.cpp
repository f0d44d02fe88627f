#include "telemetry/swap_watch.h"

#include <utility>

namespace plimsoll::telemetry {
namespace {

/// A few idle pages of libraries may go at any time.
constexpr int64_t kNoticedBytes = int64_t{1} << 20;
constexpr double kBetweenLooks = 1;  // seconds

}  // namespace

SwapWatch::SwapWatch(std::function<int64_t()> swapped, std::function<double()> seconds)
    : swapped_(std::move(swapped)), seconds_(std::move(seconds)), looked_(seconds_()), first_(swapped_()) {}

std::optional<int64_t> SwapWatch::look() {
  const double now = seconds_();
  if (told_ || now - looked_ < kBetweenLooks) return {};
  looked_ = now;
  const int64_t out = swapped_() - first_;
  told_ = out >= kNoticedBytes;
  return told_ ? std::optional(out) : std::nullopt;
}

}  // namespace plimsoll::telemetry
