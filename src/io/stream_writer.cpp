#include "io/stream_writer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace plimsoll {
namespace {

/// What direct input and output asks of addresses and offsets, on every disk in use.
constexpr size_t kAlignment = 4096;

}  // namespace

void StreamWriter::Free::operator()(std::byte* p) const { std::free(p); }

StreamWriter::StreamWriter()
    : memory_(static_cast<std::byte*>(std::aligned_alloc(kAlignment, static_cast<size_t>(kHostBytes)))) {
  PLIMSOLL_CHECK(memory_ != nullptr, "no memory for the buffers of a file");
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].data = memory_.get() + i * kBufferBytes;
  thread_ = std::thread([this] { work(); });
}

StreamWriter::~StreamWriter() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StreamWriter::begin(OutputFile& file) {
  PLIMSOLL_CHECK(buffers_[filling_].size == 0, "a file is begun before the last one is flushed");
  file_ = &file;
  offset_ = 0;
  error_.reset();
  file.bypass_cache(true);
}

Status StreamWriter::failure() {
  if (error_) return *error_;
  return Ok{};
}

Status StreamWriter::hand_over() {
  {
    std::unique_lock lock(mutex_);
    buffers_[filling_].full = true;
    filling_ ^= 1;
    changed_.notify_all();
    // After a failure the file may go: nothing must be on its way to it.
    changed_.wait(lock,
                  [&] { return !buffers_[filling_].full && (!error_ || !buffers_[filling_ ^ 1].full); });
    buffers_[filling_].size = 0;
    PLIMSOLL_TRY(failure());
  }
  buffers_[filling_].offset = offset_;
  return Ok{};
}

Status StreamWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    Buffer& buffer = buffers_[filling_];
    if (buffer.size == 0) buffer.offset = offset_;
    const size_t count = std::min(bytes.size(), static_cast<size_t>(kBufferBytes) - buffer.size);
    std::memcpy(buffer.data + buffer.size, bytes.data(), count);
    buffer.size += count;
    offset_ += static_cast<int64_t>(count);
    bytes = bytes.subspan(count);
    if (buffer.size == static_cast<size_t>(kBufferBytes)) PLIMSOLL_TRY(hand_over());
  }
  return Ok{};
}

Status StreamWriter::flush() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !buffers_[0].full && !buffers_[1].full; });
  }
  Buffer& rest = buffers_[filling_];
  const size_t size = std::exchange(rest.size, 0);
  PLIMSOLL_TRY(failure());
  // Only whole blocks can go past the cache.
  const size_t whole = size / kAlignment * kAlignment;
  PLIMSOLL_TRY(file_->write_at(rest.offset, {rest.data, whole}));
  file_->bypass_cache(false);
  return file_->write_at(rest.offset + static_cast<int64_t>(whole), {rest.data + whole, size - whole});
}

void StreamWriter::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return buffers_[writing_].full || stopping_; });
    if (!buffers_[writing_].full) return;
    const Buffer buffer = buffers_[writing_];
    const bool failed = error_.has_value();
    lock.unlock();
    Status status = failed ? Status(Ok{}) : file_->write_at(buffer.offset, {buffer.data, buffer.size});
    lock.lock();
    if (!status) error_ = std::move(status).error();
    buffers_[writing_].full = false;
    writing_ ^= 1;
    changed_.notify_all();
  }
}

}  // namespace plimsoll
