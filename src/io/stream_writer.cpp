#include "io/stream_writer.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"

namespace plimsoll::io {
namespace {

/// What direct input and output asks of addresses and offsets, on every disk in use.
constexpr size_t kAlignment = 4096;

}  // namespace

void StreamWriter::Free::operator()(std::byte* p) const {
  ::operator delete (p, std::align_val_t{kAlignment});
}

Result<std::unique_ptr<StreamWriter>> StreamWriter::create() {
  std::unique_ptr<StreamWriter> writer(new StreamWriter);
  void* memory = ::operator new (static_cast<size_t>(kHostBytes), std::align_val_t{kAlignment}, std::nothrow);
  if (memory == nullptr)
    return Error{ErrorCode::kIo, "the operating system refused memory", "the buffers of files",
                 "close other programs or lower memory.budget"};
  writer->memory_.reset(static_cast<std::byte*>(memory));
  for (size_t i = 0; i < writer->buffers_.size(); ++i)
    writer->buffers_[i].data = writer->memory_.get() + i * kBufferBytes;
  PLIMSOLL_ASSIGN(writer->thread_, Thread::start("writing files", [w = writer.get()] { w->work(); }));
  return writer;
}

StreamWriter::~StreamWriter() {
  PLIMSOLL_CHECK(!file_, "a writer goes before its stream");
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StreamWriter::Stream StreamWriter::begin(OutputFile file) {
  PLIMSOLL_CHECK(!file_, "a file is begun before the last one is finished");
  file_.emplace(std::move(file));
  offset_ = 0;
  error_.reset();
  file_->bypass_cache(true);
  return Stream(this);
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
    changed_.wait(lock, [&] { return !buffers_[filling_].full; });
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

void StreamWriter::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !buffers_[0].full && !buffers_[1].full; });
}

void StreamWriter::drop() {
  wait_until_idle();
  buffers_[filling_].size = 0;
  file_.reset();
}

Status StreamWriter::write_rest() {
  Buffer& rest = buffers_[filling_];
  PLIMSOLL_TRY(failure());
  // Only whole blocks can go past the cache.
  const size_t whole = rest.size / kAlignment * kAlignment;
  PLIMSOLL_TRY(file_->write_at(rest.offset, {rest.data, whole}));
  file_->bypass_cache(false);
  return file_->write_at(rest.offset + static_cast<int64_t>(whole), {rest.data + whole, rest.size - whole});
}

Result<OutputFile> StreamWriter::finish() {
  wait_until_idle();
  Status written = write_rest();
  OutputFile file = std::move(*file_);
  drop();
  if (!written) return std::move(written).error();
  return file;
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

}  // namespace plimsoll::io
