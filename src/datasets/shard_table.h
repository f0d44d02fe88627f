// Tables of fixed-size entries inside larger files, in blocks that carry a checksum each: what a reader looks
// up is checked, whatever has happened to the file, and neither side holds more than a block.
//
//   block: checksum u64 | entries, `entries_per_block` of them, fewer in the last
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/checksum.h"
#include "io/file.h"

namespace plimsoll::datasets::shard {

/// Little-endian numbers in a file's bytes, at any alignment.
uint64_t load_u64(const std::byte* from);
uint32_t load_u32(const std::byte* from);
void store_u64(std::byte* to, uint64_t value);
void store_u32(std::byte* to, uint32_t value);

/// Where a table lies and what its blocks are.
struct TableLayout {
  int64_t offset = 0;  ///< in the file
  int64_t num_entries = 0;
  int64_t entry_bytes = 8;
  int64_t entries_per_block = 512;

  [[nodiscard]] int64_t block_bytes() const { return 8 + entries_per_block * entry_bytes; }
  [[nodiscard]] int64_t num_blocks() const {
    return num_entries / entries_per_block + (num_entries % entries_per_block != 0 ? 1 : 0);
  }
  /// All of it. The caller has bounded the entries (2^40 are far from overflow).
  [[nodiscard]] int64_t size_bytes() const { return num_blocks() * 8 + num_entries * entry_bytes; }
  [[nodiscard]] int64_t block_of(int64_t entry) const { return entry / entries_per_block; }
};

/// Reads block `block` into `out` (block_bytes, at least) and checks it; the entries are returned.
/// Errors: kBadData that names the file and `what` the table holds; kIo.
Result<std::span<const std::byte>> read_table_block(const io::ReadFile& file, const TableLayout& table,
                                                    int64_t block, const char* what,
                                                    std::span<std::byte> out);

/// Collects entries and hands over whole blocks.
class TableWriter {
 public:
  TableWriter(int64_t entry_bytes, int64_t entries_per_block);
  /// Room for one more entry; it is filled before the next call.
  std::byte* next();
  /// Whether a block is complete: `take` it before the next entry.
  [[nodiscard]] bool full() const { return in_block_ == entries_per_block_; }
  /// The block as it goes to the file, also an unfinished one at the end (empty where there is nothing); the
  /// next entry begins a new one. Valid until then.
  std::span<const std::byte> take();
  [[nodiscard]] int64_t num_entries() const { return num_entries_; }

 private:
  int64_t entry_bytes_, entries_per_block_;
  int64_t in_block_ = 0, num_entries_ = 0;
  std::vector<std::byte> block_;
};

/// A nameless file that holds what belongs behind what is still growing. Gone with the process.
class SpillFile {
 public:
  /// In the folder of `path`. Errors: kIo.
  static Result<SpillFile> create(const std::string& path);
  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&& other) noexcept;
  ~SpillFile();

  /// Errors: kIo, a full disk among them.
  Status append(std::span<const std::byte> bytes);
  /// Everything, in order, in pieces of at most 256 KiB. Errors: the sink's; kIo.
  Status replay(const std::function<Status(std::span<const std::byte>)>& sink) const;
  [[nodiscard]] int64_t size_bytes() const { return size_bytes_; }

 private:
  SpillFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;  ///< named in errors
  int fd_ = -1;
  int64_t size_bytes_ = 0;
};

/// An AtomicFile written front to back in pieces of 1 MiB, with room for a header at its start.
class SequentialFile {
 public:
  /// Errors: kIo.
  static Result<SequentialFile> create(const std::string& path, int64_t header_bytes);

  /// Room for `bytes` (1 MiB at most) that follow; they are filled before the next call. Errors: kIo.
  Result<std::byte*> next(int64_t bytes);
  Status append(std::span<const std::byte> bytes);
  /// Where the next byte goes.
  [[nodiscard]] int64_t offset() const { return written_ + static_cast<int64_t>(used_); }
  /// Writes what is left and the header, makes the file durable and gives it its name. Errors: kIo, then
  /// there is no file.
  Status commit(std::span<const std::byte> header);

 private:
  SequentialFile(io::AtomicFile file, int64_t header_bytes);
  Status flush();
  io::AtomicFile file_;
  int64_t written_ = 0;
  size_t used_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace plimsoll::datasets::shard
