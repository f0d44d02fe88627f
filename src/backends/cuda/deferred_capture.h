// Keeps the calls of a capture that begins before the ranks are connected: its first replay captures them.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/device.h"

namespace plimsoll::cuda {

struct DeferredCapture {
  std::vector<std::function<Status()>> calls;
  bool exchanges = false;  ///< some are of ops between ranks
  std::unique_ptr<runtime::CapturedGraph> made = {};
};

class DeferredGraph final : public runtime::CapturedGraph {
 public:
  explicit DeferredGraph(std::shared_ptr<DeferredCapture> capture) : capture_(std::move(capture)) {}
  [[nodiscard]] DeferredCapture& capture() const { return *capture_; }

 private:
  std::shared_ptr<DeferredCapture> capture_;
};

}  // namespace plimsoll::cuda
