#include "io/atomic_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/units.h"

namespace plimsoll::io {
namespace {

constexpr std::string_view kTemporary = ".tmp", kOld = ".old", kPrevious = ".previous";

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// "a/b" -> "a/.b<suffix>".
std::string hidden_name(const std::string& path, std::string_view suffix) {
  const std::filesystem::path p(path);
  return (p.parent_path() / fmt::format(".{}{}", p.filename().string(), suffix)).string();
}

bool is_there(const std::string& path) {
  struct stat info = {};
  return ::lstat(path.c_str(), &info) == 0;
}

Status remove_tree(const std::string& path) {
  std::error_code code;
  std::filesystem::remove_all(path, code);
  if (code) return io_error("cannot remove the folder", path, code.value());
  return Ok{};
}

/// ".NAME<suffix>" taken apart.
struct Remnant {
  std::string name;
  std::string_view suffix;
};
std::optional<Remnant> remnant(const std::string& entry) {
  for (const std::string_view suffix : {kTemporary, kOld, kPrevious})
    if (entry.starts_with('.') && entry.ends_with(suffix) && entry.size() > suffix.size() + 1)
      return Remnant{entry.substr(1, entry.size() - 1 - suffix.size()), suffix};
  return std::nullopt;
}

Status rename_path(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return Ok{};
  return io_error("cannot rename the folder", from, errno);
}

}  // namespace

Result<AtomicDirectory> AtomicDirectory::create(const std::string& given) {
  const std::string path = without_slash(given);
  struct stat info = {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    return io_error("cannot write the folder", path, ENOTDIR);
  const std::string hidden = hidden_name(path, kTemporary);
  if (is_there(hidden)) PLIMSOLL_TRY(remove_tree(hidden));
  if (::mkdir(hidden.c_str(), 0777) != 0) return io_error("cannot create the folder", hidden, errno);
  return AtomicDirectory(path, hidden);
}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : path_(std::move(other.path_)), hidden_(std::exchange(other.hidden_, {})) {}

AtomicDirectory& AtomicDirectory::operator=(AtomicDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(hidden_, other.hidden_);
  return *this;
}

AtomicDirectory::~AtomicDirectory() {
  if (!hidden_.empty()) (void)remove_tree(hidden_);  // what stays is removed at the next start
}

Result<OutputFile> AtomicDirectory::create_file(std::string_view name) const {
  return OutputFile::create(fmt::format("{}/{}", hidden_, name));
}

/// The hidden folder's name becomes path_; what stood there is hidden_ afterwards, where anything did.
bool AtomicDirectory::take_place() {
  if (!is_there(path_)) {
    if (::rename(hidden_.c_str(), path_.c_str()) != 0) return false;
    hidden_.clear();
    return true;
  }
  if (::renameat2(AT_FDCWD, hidden_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // Two steps: between them nothing stands there, and clean_directory puts the old one back.
  const std::string previous = hidden_name(path_, kPrevious);
  if (::rename(path_.c_str(), previous.c_str()) != 0) return false;
  if (::rename(hidden_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    (void)::rename(previous.c_str(), path_.c_str());
    errno = code;
    return false;
  }
  hidden_ = previous;
  return true;
}

Status AtomicDirectory::publish() {
  PLIMSOLL_TRY(sync_directory(hidden_));
  if (!take_place()) return io_error("cannot put the folder in its place", path_, errno);
  const std::string replaced = std::exchange(hidden_, {});
  PLIMSOLL_TRY(sync_directory(folder_of(path_)));  // else what was replaced may be what the disk still names
  if (!replaced.empty()) (void)remove_tree(replaced);  // what stays is removed at the next start
  return Ok{};
}

Status hide_directories(const std::vector<std::string>& paths, std::vector<std::string>& hidden) {
  std::vector<std::string> folders;
  for (const std::string& given : paths) {
    const std::string path = without_slash(given);
    if (!is_there(path)) continue;
    const std::string name = hidden_name(path, kOld);
    if (is_there(name)) PLIMSOLL_TRY(remove_tree(name));
    PLIMSOLL_TRY(rename_path(path, name));
    hidden.push_back(name);
    if (const std::string folder = folder_of(path);
        std::find(folders.begin(), folders.end(), folder) == folders.end())
      folders.push_back(folder);
  }
  for (const std::string& folder : folders) PLIMSOLL_TRY(sync_directory(folder));
  return Ok{};
}

void remove_hidden(const std::vector<std::string>& hidden) {
  for (const std::string& path : hidden) (void)remove_tree(path);
}

void show_hidden(const std::vector<std::string>& hidden) {
  for (const std::string& path : hidden) {
    const std::string entry = std::filesystem::path(path).filename().string();
    const std::string name = entry.substr(1, entry.size() - 1 - kOld.size());
    const std::string place = folder_of(path) + "/" + name;
    if (!is_there(place)) (void)::rename(path.c_str(), place.c_str());
  }
}

std::string unpublished_path(const std::string& path) { return hidden_name(without_slash(path), kTemporary); }

Status retire_directory(const std::string& path) {
  std::vector<std::string> hidden;
  PLIMSOLL_TRY(hide_directories({path}, hidden));
  remove_hidden(hidden);
  return Ok{};
}

Status clean_directory(const std::string& directory, const std::function<bool(std::string_view)>& is_ours,
                       bool none_left) {
  std::vector<Remnant> remnants;
  std::error_code code;
  for (std::filesystem::directory_iterator it(directory, code), end; !code && it != end; it.increment(code))
    if (auto found = remnant(it->path().filename().string()); found && is_ours(found->name))
      remnants.push_back(std::move(*found));
  if (code) return io_error("cannot list the folder", directory, code.value());
  const bool unpublished =
      std::any_of(remnants.begin(), remnants.end(), [](const Remnant& r) { return r.suffix == kTemporary; });
  std::vector<std::string> given_up;
  for (const Remnant& r : remnants) {
    const std::string place = directory + "/" + r.name, hidden = hidden_name(place, r.suffix);
    const bool wanted = r.suffix == kPrevious || (r.suffix == kOld && none_left && unpublished);
    if (wanted && !is_there(place))
      PLIMSOLL_TRY(rename_path(hidden, place));
    else
      given_up.push_back(hidden);
  }
  remove_hidden(given_up);  // names first: the .tmp tells a next start what to give back
  return Ok{};
}

std::optional<int64_t> free_space(const std::string& directory) {
  struct statvfs info = {};
  std::filesystem::path at = std::filesystem::path(directory).lexically_normal();
  while (::statvfs(at.empty() ? "." : at.c_str(), &info) != 0) {
    if (errno != ENOENT || at.empty() || at == at.parent_path()) return std::nullopt;
    at = at.parent_path();
  }
  const auto blocks = static_cast<int64_t>(std::min<fsblkcnt_t>(info.f_bavail, INT64_MAX / 2));
  int64_t free = 0;
  if (__builtin_mul_overflow(blocks, static_cast<int64_t>(info.f_frsize), &free)) return std::nullopt;
  return free;
}

Status check_free_space(const std::string& directory, int64_t bytes) {
  const std::optional<int64_t> free = free_space(directory);
  if (!free || *free >= bytes) return Ok{};  // where it is not known writing will tell
  return Error{ErrorCode::kIo,
               fmt::format("the disk has {} free and {} are needed ({} of {} bytes)", to_string(Bytes(*free)),
                           to_string(Bytes(bytes)), *free, bytes),
               directory, "free disk space or choose another folder"};
}

Result<DirectoryLock> DirectoryLock::take(const std::string& directory) {
  const std::string path = directory + "/.lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return io_error("cannot create the file", path, errno);
  DirectoryLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    const std::string owner = fmt::format("{:<20}\n", ::getpid());  // of one length: never a rest of another
    (void)!::pwrite(fd, owner.data(), owner.size(), 0);
    return lock;
  }
  if (errno != EWOULDBLOCK) return lock;
  char owner[21] = {};
  (void)!::pread(fd, owner, 20, 0);
  return Error{ErrorCode::kIo, fmt::format("another run (process {}) writes here", std::atol(owner)),
               directory, "wait until it has ended, or set another output.dir"};
}

}  // namespace plimsoll::io
