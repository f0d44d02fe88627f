// Ranks on cards: what a card exchanges with the others by, captures that wait until the ranks are connected,
// and waits for a card that waits for other ranks.
#include <chrono>
#include <thread>
#include <utility>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/host_collectives.h"
#include "backends/cuda/nccl_collectives.h"

namespace plimsoll::cuda {

Status CudaDevice::take_ranks(const CudaOptions& options) {
  if (options.uses_nccl) {
    PLIMSOLL_ASSIGN(const Nccl* nccl, load_nccl());
    collectives_ = std::make_unique<NcclCollectives>(*nccl, *options.communicator);
    defers_ = collectives_->connects();
    return Ok{};
  }
  const Bytes bytes(HostCollectives::staging_bytes(options.communicator->ranks()));
  PLIMSOLL_ASSIGN(rank_staging_, allocate(ir::MemorySpace::kHostPinned, bytes));
  collectives_ = std::make_unique<HostCollectives>(*options.communicator, rank_staging_->host());
  return Ok{};
}

/// Where the card waits for other ranks, it is asked again and again, and so is what it waits by.
Status CudaDevice::wait_for(int (*finish)(Handle), int (*query)(Handle), Handle handle,
                            std::string_view what) {
  constexpr auto kPause = std::chrono::microseconds(50);
  constexpr int kPausesBetweenLooks = 200;
  if (collectives_ == nullptr || !collectives_->is_watched() || defers_) {
    PLIMSOLL_TRY(checked(finish(handle), what));
    return exchanged();
  }
  int state = query(handle);
  for (int pauses = 1; state == kNotReady; ++pauses, state = query(handle)) {
    std::this_thread::sleep_for(kPause);
    if (pauses % kPausesBetweenLooks == 0) PLIMSOLL_TRY(collectives_->look());
  }
  PLIMSOLL_TRY(checked(state, what));
  return collectives_->look();
}

Status CudaDevice::defer(std::function<Status()> call) {
  deferred_->calls.push_back(std::move(call));
  return Ok{};
}

Status CudaDevice::capture_deferred(DeferredCapture& capture) {
  if (capture.made != nullptr) return Ok{};
  const bool defers = std::exchange(defers_, false);
  Status captured = begin_capture();
  for (size_t c = 0; c < capture.calls.size() && captured; ++c) captured = capture.calls[c]();
  if (captured || capturing_) {
    auto made = end_capture();
    if (captured && !made) captured = std::move(made).error();
    if (captured) capture.made = std::move(*made);
  }
  defers_ = defers;
  capture.calls.clear();
  return captured;
}

/// The first program in which ranks exchange something connects them: all ranks run it at the same place.
/// What else waits to be captured is captured then, so that no later step does it.
Status CudaDevice::connect_for(DeferredCapture& capture) {
  if (!defers_ || !capture.exchanges) return capture_deferred(capture);
  PLIMSOLL_TRY(use_context());
  PLIMSOLL_TRY(collectives_->connect());
  defers_ = false;
  for (const auto& each : std::exchange(all_deferred_, {}))
    if (const auto waiting = each.lock()) PLIMSOLL_TRY(capture_deferred(*waiting));
  return Ok{};
}

}  // namespace plimsoll::cuda
