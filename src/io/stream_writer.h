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
#include <thread>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll {

/// Async: one thread appends; what it has appended is its own again at once. A failed write is told by the
/// next call.
class StreamWriter {
 public:
  /// Bytes that a writer takes and keeps.
  static constexpr int64_t kBufferBytes = 1 << 20;
  static constexpr int64_t kHostBytes = 2 * kBufferBytes;

  StreamWriter();
  ~StreamWriter();
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  /// From here on bytes go to `file`, from its start. `file` outlives the next flush.
  void begin(OutputFile& file);
  /// Errors: kIo of an earlier piece.
  Status append(std::span<const std::byte> bytes);
  /// Waits until all that was appended is written, not yet synced. Errors: kIo.
  Status flush();

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
  void work();
  Status hand_over();
  Status failure();

  std::unique_ptr<std::byte, Free> memory_;
  std::array<Buffer, 2> buffers_;
  size_t filling_ = 0, writing_ = 0;
  OutputFile* file_ = nullptr;
  int64_t offset_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> error_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace plimsoll
