// A file that grows record by record while a run goes on: a log. It holds whole records alone, and a disk
// that fills up is no reason to end the run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "io/descriptor.h"

namespace plimsoll::io {

class AppendFile {
 public:
  /// Most that is kept back for a disk that takes nothing; what comes behind it is lost.
  static constexpr int64_t kMostPending = 1 << 20;

  /// Opens the file, or makes it; records go behind what it holds. Errors: kIo.
  static Result<AppendFile> open(const std::string& path);

  /// Appends a record, behind those that could not be written before. Errors: kIo the first time that the
  /// disk refuses; afterwards what is refused is kept for the next call, without a word.
  Status add(std::string_view record);
  /// Tries again to write what is kept back.
  void flush();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, Descriptor fd, int64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}
  /// Writes whole records or nothing. Gives errno, 0 where it was written.
  int append(std::string_view records);

  std::string path_;
  Descriptor fd_;
  int64_t size_;         ///< of whole records
  std::string pending_;  ///< whole records
  bool told_ = false;
};

/// Cuts a file off behind so many bytes. Errors: kIo.
Status truncate_file(const std::string& path, int64_t bytes);

}  // namespace plimsoll::io
