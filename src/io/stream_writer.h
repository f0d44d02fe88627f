// Files written front to back, past the page cache: a thread writes one small buffer while the caller fills
// the other. The page cache would cost a second copy of what is written, in memory that the run has planned
// for itself: fresh pages took four times as long as the disk here.
//
//   caller: copy ──► buffer A ┐              ┌► buffer B ──► copy …
//                             └► write A ────┘                       the thread
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "base/result.h"
#include "base/thread.h"
#include "io/file.h"

namespace plimsoll::io {

/// Async: one thread appends; what it has appended is its own again at once. A failed write is told by the
/// next call.
class StreamWriter {
 public:
  /// Bytes that a writer takes and keeps.
  static constexpr int64_t kBufferBytes = 1 << 20;
  static constexpr int64_t kHostBytes = 2 * kBufferBytes;

  /// A file on its way to the disk, the one that its writer has at the time. Its end waits for what is on the
  /// way and closes the file, however far it came: nothing is written behind a close.
  class Stream {
   public:
    Stream(Stream&& other) noexcept : writer_(std::exchange(other.writer_, nullptr)) {}
    Stream& operator=(Stream&&) = delete;
    ~Stream() {
      if (writer_ != nullptr) writer_->drop();
    }
    /// Errors: kIo of an earlier piece.
    Status append(std::span<const std::byte> bytes) { return writer_->append(bytes); }
    /// Waits until all that was appended is written, not yet synced, and hands the file back. Errors: kIo.
    Result<OutputFile> finish() { return std::exchange(writer_, nullptr)->finish(); }

   private:
    friend class StreamWriter;
    explicit Stream(StreamWriter* writer) : writer_(writer) {}
    StreamWriter* writer_;
  };

  /// Errors: kIo where there is no memory for the buffers or no thread.
  static Result<std::unique_ptr<StreamWriter>> create();
  ~StreamWriter();
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  /// What is appended to the stream goes to `file`, from its start. The writer outlives it.
  [[nodiscard]] Stream begin(OutputFile file);

 private:
  struct Buffer {
    std::byte* data = nullptr;
    size_t size = 0;
    int64_t offset = 0;
    bool full = false;  ///< the thread's
  };
  struct Free {
    void operator()(std::byte* p) const;
  };
  StreamWriter() = default;
  Status append(std::span<const std::byte> bytes);
  Result<OutputFile> finish();
  Status write_rest();
  void wait_until_idle();
  void drop();
  void work();
  Status hand_over();
  Status failure();

  std::unique_ptr<std::byte, Free> memory_;
  std::array<Buffer, 2> buffers_;
  size_t filling_ = 0, writing_ = 0;
  std::optional<OutputFile> file_;
  int64_t offset_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  bool stopping_ = false;
  Thread thread_;
};

}  // namespace plimsoll::io
