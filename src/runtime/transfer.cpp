#include "runtime/transfer.h"

#include <algorithm>

#include "base/check.h"

namespace plimsoll::runtime {

Transfer::Transfer(Device& device, ir::Queue queue, Location staging, int64_t buffer_bytes)
    : device_(device), queue_(queue), staging_(staging), buffer_bytes_(buffer_bytes) {
  for (EventId& event : events_) event = device.make_event();
}

Location Transfer::buffer_place(size_t slot) const {
  return {staging_.memory, staging_.offset + static_cast<int64_t>(slot) * buffer_bytes_};
}

std::span<std::byte> Transfer::buffer(size_t slot) const {
  PLIMSOLL_CHECK(buffer_bytes_ > 0, "no staging memory was planned for what is moved");
  return staging_.memory->host().subspan(static_cast<size_t>(buffer_place(slot).offset),
                                         static_cast<size_t>(buffer_bytes_));
}

Status Transfer::queue_read(Location source, int64_t bytes, int64_t at) {
  if (at >= bytes) return Ok{};
  const auto slot = static_cast<size_t>(at / buffer_bytes_ % 2);
  PLIMSOLL_TRY(device_.copy(buffer_place(slot), {source.memory, source.offset + at},
                            Bytes(std::min(buffer_bytes_, bytes - at)), queue_));
  return device_.record(events_[slot], queue_);
}

/// Not as work of the queue, where an error would end all that the device does: a save that cannot be read
/// from the disk is no reason to lose the model.
Status Transfer::read_disk(Location source, int64_t bytes, const TakePiece& take) {
  PLIMSOLL_TRY(device_.synchronize(queue_));
  for (int64_t at = 0; at < bytes; at += buffer_bytes_) {
    const auto piece = buffer(0).first(static_cast<size_t>(std::min(buffer_bytes_, bytes - at)));
    PLIMSOLL_TRY(source.memory->read(source.offset + at, piece));
    PLIMSOLL_TRY(take(piece, at));
  }
  return Ok{};
}

Status Transfer::read(Location source, int64_t bytes, const TakePiece& take) {
  if (bytes == 0) return Ok{};
  if (const std::span<std::byte> host = source.memory->host(); !host.empty()) {
    PLIMSOLL_TRY(device_.synchronize(queue_));
    return take(host.subspan(static_cast<size_t>(source.offset), static_cast<size_t>(bytes)), 0);
  }
  (void)buffer(0);
  if (source.memory->space() == ir::MemorySpace::kDisk) return read_disk(source, bytes, take);
  PLIMSOLL_TRY(queue_read(source, bytes, 0));
  for (int64_t at = 0; at < bytes; at += buffer_bytes_) {
    PLIMSOLL_TRY(queue_read(source, bytes, at + buffer_bytes_));  // the next one beside this one's use
    const auto slot = static_cast<size_t>(at / buffer_bytes_ % 2);
    PLIMSOLL_TRY(device_.synchronize(events_[slot]));
    PLIMSOLL_TRY(take(buffer(slot).first(static_cast<size_t>(std::min(buffer_bytes_, bytes - at))), at));
  }
  return Ok{};
}

Status Transfer::write(Location destination, int64_t bytes, const FillPiece& fill) {
  if (bytes == 0) return Ok{};
  if (const std::span<std::byte> host = destination.memory->host(); !host.empty()) {
    PLIMSOLL_TRY(device_.synchronize(queue_));
    return fill(host.subspan(static_cast<size_t>(destination.offset), static_cast<size_t>(bytes)), 0);
  }
  for (int64_t at = 0; at < bytes; at += buffer_bytes_) {
    const size_t slot = next_;
    next_ = 1 - next_;
    PLIMSOLL_TRY(device_.synchronize(events_[slot]));
    const std::span<std::byte> piece =
        buffer(slot).first(static_cast<size_t>(std::min(buffer_bytes_, bytes - at)));
    PLIMSOLL_TRY(fill(piece, at));
    PLIMSOLL_TRY(device_.copy({destination.memory, destination.offset + at}, buffer_place(slot),
                              Bytes(static_cast<int64_t>(piece.size())), queue_));
    PLIMSOLL_TRY(device_.record(events_[slot], queue_));
  }
  return Ok{};
}

}  // namespace plimsoll::runtime
