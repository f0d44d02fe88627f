#include "train/swap_watch.h"

#include <utility>

namespace plimsoll::train {
namespace {

/// A few idle pages of libraries may go at any time.
constexpr int64_t kNoticedBytes = int64_t{1} << 20;

}  // namespace

SwapWatch::SwapWatch(std::function<int64_t()> swapped) : swapped_(std::move(swapped)), first_(swapped_()) {}

std::optional<int64_t> SwapWatch::look() {
  if (told_) return {};
  const int64_t out = swapped_() - first_;
  told_ = out >= kNoticedBytes;
  return told_ ? std::optional(out) : std::nullopt;
}

}  // namespace plimsoll::train
