// Checked blocks, the spill file, front-to-back writing.
#include "datasets/shard_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace plimsoll::datasets::shard {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie in memory");

constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr size_t kReplayBytes = size_t{1} << 18;

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

uint64_t load_u64(const std::byte* from) { return load<uint64_t>(from); }
uint32_t load_u32(const std::byte* from) { return load<uint32_t>(from); }
void store_u64(std::byte* to, uint64_t value) { std::memcpy(to, &value, sizeof(value)); }
void store_u32(std::byte* to, uint32_t value) { std::memcpy(to, &value, sizeof(value)); }

Result<std::span<const std::byte>> read_table_block(const io::ReadFile& file, const TableLayout& table,
                                                    int64_t block, const char* what,
                                                    std::span<std::byte> out) {
  PLIMSOLL_CHECK(block >= 0 && block < table.num_blocks(), "a block outside of its table");
  const int64_t entries =
      std::min(table.entries_per_block, table.num_entries - block * table.entries_per_block);
  const auto bytes = static_cast<size_t>(8 + entries * table.entry_bytes);
  PLIMSOLL_CHECK(out.size() >= bytes, "a buffer smaller than a block");
  out = out.first(bytes);
  PLIMSOLL_TRY(file.read_at(table.offset + block * table.block_bytes(), out));
  const std::span<const std::byte> content = out.subspan(8);
  if (io::checksum(content) != load_u64(out.data()))
    return Error{
        ErrorCode::kBadData,
        fmt::format("the file is damaged: block {} of its {} does not match its checksum", block, what),
        file.path(), "make the file again, and check the disk"};
  return content;
}

TableWriter::TableWriter(int64_t entry_bytes, int64_t entries_per_block)
    : entry_bytes_(entry_bytes),
      entries_per_block_(entries_per_block),
      block_(static_cast<size_t>(8 + entry_bytes * entries_per_block)) {}

std::byte* TableWriter::next() {
  PLIMSOLL_CHECK(!full(), "a full block that nobody took");
  ++num_entries_;
  return block_.data() + 8 + entry_bytes_ * in_block_++;
}

std::span<const std::byte> TableWriter::take() {
  const auto bytes = static_cast<size_t>(8 + entry_bytes_ * std::exchange(in_block_, 0));
  if (bytes == 8) return {};
  const std::span<const std::byte> block = std::span(block_).first(bytes);
  store_u64(block_.data(), io::checksum(block.subspan(8)));
  return block;
}

Result<SpillFile> SpillFile::create(const std::string& path) {
  const std::string folder = io::folder_of(path);
  int fd = ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  if (fd < 0) {  // the file system knows no nameless files
    std::string name = folder + "/.spill-XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) return io::io_error("cannot create a temporary file in the folder", folder, errno);
    ::unlink(name.c_str());
  }
  return SpillFile(path, fd);
}

SpillFile::SpillFile(SpillFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_bytes_(other.size_bytes_) {}

SpillFile& SpillFile::operator=(SpillFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

SpillFile::~SpillFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status SpillFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), size_bytes_);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io::io_error("cannot write a temporary file beside it", path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    size_bytes_ += n;
  }
  return Ok{};
}

Status SpillFile::replay(const std::function<Status(std::span<const std::byte>)>& sink) const {
  std::vector<std::byte> buffer(static_cast<size_t>(std::min<int64_t>(size_bytes_, kReplayBytes)));
  for (int64_t offset = 0; offset < size_bytes_;) {
    const ssize_t n = ::pread(fd_, buffer.data(), buffer.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return io::io_error("cannot read the temporary file beside it", path_, n < 0 ? errno : EIO);
    PLIMSOLL_TRY(sink(std::span(buffer).first(static_cast<size_t>(n))));
    offset += n;
  }
  return Ok{};
}

Result<SequentialFile> SequentialFile::create(const std::string& path, int64_t header_bytes) {
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  return SequentialFile(std::move(file), header_bytes);
}

SequentialFile::SequentialFile(io::AtomicFile file, int64_t header_bytes)
    : file_(std::move(file)), written_(header_bytes), buffer_(kWriteBytes) {}

Result<std::byte*> SequentialFile::next(int64_t bytes) {
  const auto size = static_cast<size_t>(bytes);
  PLIMSOLL_CHECK(size <= buffer_.size(), "a piece beyond the buffer");
  if (used_ + size > buffer_.size()) PLIMSOLL_TRY(flush());
  std::byte* room = buffer_.data() + used_;
  used_ += size;
  return room;
}

Status SequentialFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), buffer_.size());
    PLIMSOLL_ASSIGN(std::byte * to, next(static_cast<int64_t>(count)));
    std::memcpy(to, bytes.data(), count);
    bytes = bytes.subspan(count);
  }
  return Ok{};
}

Status SequentialFile::flush() {
  PLIMSOLL_TRY(file_.write_at(written_, std::span(buffer_).first(used_)));
  written_ += static_cast<int64_t>(std::exchange(used_, 0));
  return Ok{};
}

Status SequentialFile::commit(std::span<const std::byte> header) {
  PLIMSOLL_TRY(flush());
  PLIMSOLL_TRY(file_.write_at(0, header));
  return file_.commit();
}

}  // namespace plimsoll::datasets::shard
