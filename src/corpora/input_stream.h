// A file's bytes front to back, unpacked where it is packed. What it is follows from its first bytes, not
// from its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll::corpora {

/// Plain, gzip (RFC 1952, any number of members) or Zstandard (RFC 8878, any number of frames).
/// Memory: one buffer of 256 KiB, and what the format's window takes (at most 128 MiB with Zstandard).
class InputStream {
 public:
  /// Errors: kBadData where there is no such file, or one of a packed format that is not read; kIo.
  static Result<std::unique_ptr<InputStream>> open(const std::string& path);
  virtual ~InputStream() = default;
  InputStream(const InputStream&) = delete;
  InputStream& operator=(const InputStream&) = delete;

  /// Writes the next bytes to the front of `out`, which is not empty, and returns how many; 0 at the end
  /// only. Errors: kBadData for damaged or cut-off data, with the file and the byte where it was noticed;
  /// kIo.
  virtual Result<size_t> read(std::span<char> out) = 0;

  [[nodiscard]] const std::string& path() const { return file_.path(); }
  /// Of the file as it lies on the disk.
  [[nodiscard]] int64_t bytes_read() const { return offset_; }
  [[nodiscard]] int64_t size_bytes() const { return file_.size_bytes(); }

 protected:
  explicit InputStream(io::ReadFile file) : file_(std::move(file)) {}
  /// The file's next bytes, fewer only at its end.
  Result<size_t> read_file(std::span<char> out);
  /// Of streams that do not read the file by read_file.
  void set_bytes_read(int64_t bytes) { offset_ = bytes; }
  [[nodiscard]] bool at_file_end() const { return bytes_read() == file_.size_bytes(); }

 private:
  io::ReadFile file_;
  int64_t offset_ = 0;
};

}  // namespace plimsoll::corpora
