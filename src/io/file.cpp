// POSIX files behind Result. Interrupted and short reads and writes go on; every failure names the path and
// what the operating system said.
#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "io/missing_file.h"

namespace plimsoll::io {
namespace {

constexpr int kAttempts = 100;

std::string temporary_name(const std::string& path) {
  static std::atomic<int> counter{0};
  return fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
}

/// Asks for disk space; where the file system does not know how, writing will tell.
Status reserve_space(int fd, const std::string& path, int64_t bytes) {
  if (bytes <= 0) return Ok{};
  const int code = ::fallocate(fd, 0, 0, bytes) == 0 ? 0 : errno;
  if (code == 0 || code == EINTR || code == EOPNOTSUPP || code == ENOSYS || code == EINVAL) return Ok{};
  return io_error("cannot write", path, code);
}

/// All of `bytes`, or what the operating system says instead.
int write_all(int fd, int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return 0;
}

Status write_status(int code, const std::string& path) {
  if (code != 0) return io_error("cannot write", path, code);
  return Ok{};
}

}  // namespace

Error io_error(std::string_view what, const std::string& path, int code) {
  Error error{ErrorCode::kIo, fmt::format("{}: {}", what, std::generic_category().message(code)), path};
  if (code == ENOSPC || code == EDQUOT) error.hint = "free disk space or choose another folder";
  if (code == EFBIG) error.hint = "raise the limit on file sizes (ulimit -f), or choose another folder";
  if (code == EACCES || code == EPERM || code == EROFS)
    error.hint = "check the permissions of the file and its folder";
  if (code == ENOTDIR || code == EEXIST || code == EISDIR)
    error.hint = "something else is at this path: move it away, or choose another name";
  if (code == EMFILE || code == ENFILE) error.hint = "raise the limit on open files (ulimit -n)";
  if (error.hint.empty()) error.hint = "check that the path is right and that its disk works";
  return error;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

namespace {

/// The mode of what has the name; 0 where nothing has it.
Result<mode_t> mode_of(const std::string& path) {
  struct stat info = {};
  while (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return mode_t{0};
    if (errno != EINTR) return io_error("cannot look at the file", path, errno);
  }
  return info.st_mode;
}

}  // namespace

bool is_file(const std::string& path) {
  const Result<mode_t> mode = mode_of(path);
  return !mode || S_ISREG(*mode);
}

Result<bool> path_exists(const std::string& path) {
  PLIMSOLL_ASSIGN(const mode_t mode, mode_of(path));
  return mode != 0;
}

Result<bool> is_folder(const std::string& path) {
  PLIMSOLL_ASSIGN(const mode_t mode, mode_of(path));
  return S_ISDIR(mode);
}

Result<ReadFile> ReadFile::open(const std::string& path, ErrorCode missing) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not hang.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG)
      return Error{missing, "there is no such file", path, missing_hint(path)};
    return io_error("cannot open the file", path, errno);
  }
  struct stat info = {};
  if (::fstat(fd, &info) != 0) {
    const int code = errno;
    ::close(fd);
    return io_error("cannot look at the file", path, code);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(fd);
    if (S_ISDIR(info.st_mode))
      return Error{missing, "there is a folder where a file is expected", path, "name a file inside it"};
    return Error{missing, "this is no regular file (a pipe or a device)", path,
                 "write its content to a file first"};
  }
  return ReadFile(path, fd, info.st_size);
}

ReadFile ReadFile::of_bytes(std::string path, std::span<const std::byte> bytes) {
  static constexpr std::byte kNothing{};
  ReadFile file(std::move(path), -1, static_cast<int64_t>(bytes.size()));
  file.bytes_ = bytes.empty() ? &kNothing : bytes.data();
  return file;
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_bytes_(other.size_bytes_),
      bytes_(other.bytes_),
      kept_(std::move(other.kept_)) {}

ReadFile& ReadFile::operator=(ReadFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(bytes_, other.bytes_);
  std::swap(kept_, other.kept_);
  return *this;
}

ReadFile::~ReadFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status ReadFile::keep_in_memory() {
  std::vector<std::byte> content(static_cast<size_t>(size_bytes_));
  PLIMSOLL_TRY(read_at(0, content));
  if (content.empty()) return Ok{};
  kept_ = std::move(content);
  bytes_ = kept_.data();
  return Ok{};
}

Status keep_within(ReadFile& file, int64_t& room) {
  if (file.size_bytes() > room) return Ok{};
  PLIMSOLL_TRY(file.keep_in_memory());
  room -= file.size_bytes();
  return Ok{};
}

ssize_t ReadFile::read_some(int64_t offset, std::span<std::byte> out) const {
  if (bytes_ == nullptr) return ::pread(fd_, out.data(), out.size(), offset);
  const auto left = static_cast<size_t>(std::max<int64_t>(size_bytes_ - offset, 0));
  const size_t count = std::min(out.size(), left);
  if (count > 0) std::memcpy(out.data(), bytes_ + offset, count);
  return static_cast<ssize_t>(count);
}

Status ReadFile::read_at(int64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = read_some(offset, out);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot read", path_, errno);
    if (n == 0)
      return Error{ErrorCode::kBadData,
                   fmt::format("the file ends at byte {}, before its content does", offset), path_,
                   "it was cut while it was read: write it again"};
    out = out.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return Ok{};
}

void ReadFile::bypass_cache() const {
  const int flags = ::fcntl(fd_, F_GETFL);
  if (flags != -1) (void)::fcntl(fd_, F_SETFL, flags | O_DIRECT);
}

Status ReadFile::read_blocks(int64_t offset, std::span<std::byte> out, int64_t least) const {
  for (int64_t done = 0; done < least;) {
    const ssize_t n = read_some(offset + done, out.subspan(static_cast<size_t>(done)));
    if (n > 0) done += n;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    const int code = n < 0 ? errno : 0;
    const int flags = ::fcntl(fd_, F_GETFL);
    const bool direct = flags != -1 && (flags & O_DIRECT) != 0;
    // Blocks are larger here, or a read fell short within one; then through the cache after all.
    if (code == EINVAL && direct && ::fcntl(fd_, F_SETFL, flags & ~O_DIRECT) == 0) continue;
    if (code != 0) return io_error("cannot read", path_, code);
    return read_at(offset, out.first(static_cast<size_t>(least)));  // whose error says that it was cut
  }
  return Ok{};
}

Result<std::string> read_small_file(const std::string& path, int64_t max_bytes, ErrorCode missing) {
  PLIMSOLL_ASSIGN(const ReadFile file, ReadFile::open(path, missing));
  if (file.size_bytes() > max_bytes)
    return Error{missing,
                 fmt::format("the file has {} bytes, more than the {} allowed", file.size_bytes(), max_bytes),
                 path, "check that this is the file you meant"};
  std::string content(static_cast<size_t>(file.size_bytes()), '\0');
  PLIMSOLL_TRY(file.read_at(0, std::as_writable_bytes(std::span(content))));
  return content;
}

Result<AtomicFile> AtomicFile::create(const std::string& path) {
  // Taking its name would remove it: a device is of use to all.
  if (struct stat there = {}; ::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return Error{ErrorCode::kIo, "this name does not belong to a file that may be replaced", path,
                 "name a file; a device, a pipe or a folder stays as it is"};
  // Without a name until it is whole: whatever ends the process leaves nothing. Not every file system can.
  const int nameless = ::open(folder_of(path).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (nameless >= 0) return AtomicFile(path, "", nameless);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string temporary = temporary_name(path);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) return AtomicFile(path, temporary, fd);
    if (errno != EEXIST) return io_error("cannot create the file", path, errno);
  }
  return io_error("cannot create a temporary file", path, EEXIST);
}

bool AtomicFile::give_name() {
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = temporary_name(path_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  return *this;
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  fd_ = -1;
}

Status AtomicFile::reserve(int64_t bytes) { return reserve_space(fd_, path_, bytes); }
Status AtomicFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  return write_status(write_all(fd_, offset, bytes), path_);
}

Status AtomicFile::commit() {
  const auto failed = [&](std::string_view what) {
    const int code = errno;
    discard();
    return io_error(what, path_, code);
  };
  if (::fsync(fd_) != 0) return failed("cannot write");
  if (temporary_.empty() && !give_name()) return failed("cannot put the file in its place");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed("cannot put the file in its place");
  ::close(std::exchange(fd_, -1));
  return sync_directory(folder_of(path_));
}

Result<OutputFile> OutputFile::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return io_error("cannot create the file", path, errno);
  return OutputFile(path, fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), direct_(other.direct_) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(direct_, other.direct_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Status OutputFile::reserve(int64_t bytes) { return reserve_space(fd_, path_, bytes); }
Status OutputFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  int code = write_all(fd_, offset, bytes);
  if (code == EINVAL && direct_) {
    bypass_cache(false);  // blocks are larger here, or a write fell short within one
    code = write_all(fd_, offset, bytes);
  }
  return write_status(code, path_);
}

void OutputFile::bypass_cache(bool on) {
  const int flags = ::fcntl(fd_, F_GETFL);
  direct_ = flags != -1 && ::fcntl(fd_, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 && on;
}

Status OutputFile::close() {
  const int code = ::fsync(fd_) == 0 ? 0 : errno;
  ::close(std::exchange(fd_, -1));
  if (code != 0) return io_error("cannot write", path_, code);
  return Ok{};
}

Status sync_directory(const std::string& path) {
  // A rename is only durable once the folder is; a file system that cannot sync folders says EINVAL.
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return io_error("cannot sync the folder", path, errno);
  const int code = ::fsync(folder) == 0 ? 0 : errno;
  ::close(folder);
  if (code != 0 && code != EINVAL) return io_error("cannot sync the folder", path, code);
  return Ok{};
}

Status write_file_atomically(const std::string& path, std::string_view content) {
  PLIMSOLL_ASSIGN(AtomicFile file, AtomicFile::create(path));
  PLIMSOLL_TRY(file.write_at(0, std::as_bytes(std::span(content))));
  return file.commit();
}

Status create_writable_directory(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (!code && !std::filesystem::is_directory(path, code) && !code)
    code = std::make_error_code(std::errc::not_a_directory);
  if (code) return io_error("cannot create the folder", path, code.value());
  auto probe = AtomicFile::create(path + "/.writable");
  if (probe) return Ok{};
  Error error = std::move(probe).error();
  error.what = "the folder cannot be written" + error.what.substr(error.what.find(": "));
  error.where = path;
  return error;
}

Result<std::vector<std::string>> expand_glob(const std::string& pattern) {
  std::error_code code;
  if (pattern.find_first_of("*?[") == std::string::npos || std::filesystem::exists(pattern, code))
    return std::vector<std::string>{pattern};
  glob_t found = {};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths;
  for (size_t i = 0; result == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (paths.empty())
    return Error{ErrorCode::kBadData, "no file matches the pattern", pattern, "check the pattern"};
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace plimsoll::io
