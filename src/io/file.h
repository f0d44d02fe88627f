// Files: positioned reads into the caller's memory, whole small files with a bound, writes that are either
// complete or not there. Nothing is mapped, because mapped pages count as the process's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::io {

/// A file open for reading. Moves, does not copy; closes itself. `read_at` may be called from any thread.
class ReadFile {
 public:
  /// Errors: `missing` (default kBadData) where there is none or it is no regular file; kIo where the
  /// operating system refuses.
  static Result<ReadFile> open(const std::string& path, ErrorCode missing = ErrorCode::kBadData);
  /// These bytes, which stay where they are meanwhile, as the file `path`: what has been read or made
  /// elsewhere.
  static ReadFile of_bytes(std::string path, std::span<const std::byte> bytes);
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&& other) noexcept;
  ~ReadFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int64_t size_bytes() const { return size_bytes_; }
  /// Reads all of it into memory, from which it is read from then on. Errors: as read_at; then it is read as
  /// before.
  Status keep_in_memory();
  /// Fills `out` from byte `offset`. Errors: kIo; kBadData where the file ends before (it was cut since).
  Status read_at(int64_t offset, std::span<std::byte> out) const;
  /// Whole blocks to aligned memory come from the disk without a copy in the page cache from here on, where
  /// the file system can do that: for what is read once.
  void bypass_cache() const;
  /// Fills `out` from `offset` on as far as the file goes, at least `least` bytes; with bypass_cache, offset,
  /// address and size are multiples of 4096. Errors: as read_at.
  Status read_blocks(int64_t offset, std::span<std::byte> out, int64_t least) const;

 private:
  ReadFile(std::string path, int fd, int64_t size_bytes)
      : path_(std::move(path)), fd_(fd), size_bytes_(size_bytes) {}
  /// As pread.
  ssize_t read_some(int64_t offset, std::span<std::byte> out) const;
  std::string path_;
  int fd_ = -1;
  int64_t size_bytes_ = 0;
  const std::byte* bytes_ = nullptr;  ///< not null: they are the file
  std::vector<std::byte> kept_;       ///< or empty: `bytes_` are somebody else's
};

/// Keeps `file` in memory where it has at most `room` bytes, and takes them off. Errors: as keep_in_memory.
Status keep_within(ReadFile& file, int64_t& room);

/// The whole of a small file. Errors: as ReadFile::open with `missing`; more than `max_bytes` is `missing`
/// too.
Result<std::string> read_small_file(const std::string& path, int64_t max_bytes,
                                    ErrorCode missing = ErrorCode::kBadData);

/// A file written beside its destination and renamed onto it at the end: readers see the old one or the whole
/// new one. Destroyed before `commit`, it leaves nothing behind; where the file system knows nameless files
/// (O_TMPFILE), neither does a process that is killed.
class AtomicFile {
 public:
  /// Creates the temporary in the destination's folder. Errors: kIo, also where a device, a pipe or a folder
  /// has the name.
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  /// Asks for the disk space beforehand, where the file system can say. Errors: kIo where there is too
  /// little.
  Status reserve(int64_t bytes);
  /// Writes all of `bytes` at `offset`. Errors: kIo (a full disk says so).
  Status write_at(int64_t offset, std::span<const std::byte> bytes);
  /// Syncs the file, renames it, syncs the folder. Errors: kIo, then the temporary is removed.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  bool give_name();
  void discard();
  std::string path_;
  std::string temporary_;  // empty while the file has no name
  int fd_ = -1;
};

/// A file being written under its own name, inside a folder that nobody looks at before it is whole (see
/// atomic_directory.h). Moves, does not copy.
class OutputFile {
 public:
  /// Errors: kIo, also where the file is there already.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  /// As AtomicFile's.
  Status reserve(int64_t bytes);
  Status write_at(int64_t offset, std::span<const std::byte> bytes);
  /// Whether whole blocks from aligned memory go to the disk without a copy in the page cache, where the file
  /// system can do that.
  void bypass_cache(bool on);
  /// Waits until everything is on the disk, closes. Errors: kIo.
  Status close();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_ = -1;
  bool direct_ = false;
};

/// The failure of a system call: "what: what the operating system says", with a hint for the common codes.
Error io_error(std::string_view what, const std::string& path, int code);
/// The folder that a path lies in, "." for a bare name.
std::string folder_of(const std::string& path);
/// A regular file, or a link to one; nothing else is. What cannot be looked at (the disk fails, a network is
/// away) counts as one: it may well be there, and who opens it is told why not.
bool is_file(const std::string& path);
/// Whether anything has the name. Errors: kIo where that cannot be known (the disk fails, a network is away),
/// which "no" would hide.
Result<bool> path_exists(const std::string& path);
/// Whether a folder, or a link to one, has the name. Errors: as path_exists.
Result<bool> is_folder(const std::string& path);
/// Makes names in a folder durable; a file system that cannot is passed over. Errors: kIo.
Status sync_directory(const std::string& path);

/// A small file, all or nothing. Errors: kIo.
Status write_file_atomically(const std::string& path, std::string_view content);
/// Creates a folder and its parents, and checks that a file can be made in it. Errors: kIo.
Status create_writable_directory(const std::string& path);
/// The files that a pattern with *, ? or [] names, sorted by bytes; a path without them stands for itself.
/// Errors: kBadData where a pattern matches nothing.
Result<std::vector<std::string>> expand_glob(const std::string& pattern);

}  // namespace plimsoll::io
