#include "preprocessing/data_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "io/file.h"

namespace plimsoll::preprocessing {
namespace {

constexpr std::string_view kLockFile = ".lock", kInUse = ".in-use-";
constexpr int64_t kMostNamesBytes = int64_t{16} << 20;

/// flock that signals do not end; false where LOCK_NB finds it taken.
bool locks(int fd, int operation) {
  int result = 0;
  do {
    result = ::flock(fd, operation);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

bool is_hex(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_entry(std::string_view name) {
  struct Form {
    std::string_view prefix, suffix;
  };
  constexpr Form kForms[] = {
      {"", ".pack"},           {"tokens-", ".shard"},  {"examples-", ".shard"}, {"examples-", ".labels"},
      {"examples-", ".types"}, {"images-", ".images"}, {"images-", ".labels"},  {"images-", ".pixels"},
      {"features-", ".f32"}};
  return std::any_of(std::begin(kForms), std::end(kForms), [&](const Form& form) {
    return name.size() > form.prefix.size() + form.suffix.size() && name.starts_with(form.prefix) &&
           name.ends_with(form.suffix) &&
           is_hex(name.substr(form.prefix.size(), name.size() - form.prefix.size() - form.suffix.size()));
  });
}

/// An entry that was being written, on file systems where such a file has a name (io/file.cpp).
bool is_unfinished_entry(std::string_view name) {
  const size_t at = name.find(".tmp-");
  return at != std::string_view::npos && is_entry(name.substr(0, at));
}

/// What lies in a cache folder, told apart by name.
struct Contents {
  std::vector<CacheEntry> entries;
  std::vector<std::string> unfinished, in_use_files;
};

Result<Contents> read_folder(const std::string& folder) {
  Contents contents;
  std::error_code code;
  std::filesystem::directory_iterator at(folder, code);
  if (code == std::errc::no_such_file_or_directory) return contents;
  for (; !code && at != std::filesystem::directory_iterator(); at.increment(code)) {
    std::string name = at->path().filename().string();
    struct stat s = {};
    if (::lstat(at->path().c_str(), &s) != 0 || !S_ISREG(s.st_mode)) continue;
    if (name.starts_with(kInUse))
      contents.in_use_files.push_back(std::move(name));
    else if (is_unfinished_entry(name))
      contents.unfinished.push_back(std::move(name));
    else if (is_entry(name))
      contents.entries.push_back({.name = std::move(name),
                                  .bytes = s.st_size,
                                  .used_at = s.st_mtim.tv_sec * 1'000'000'000 + s.st_mtim.tv_nsec});
  }
  if (code) return io::io_error("cannot read the cache folder", folder, code.value());
  return contents;
}

/// Names in the files of live processes. With `removes`, those of processes that are gone are removed, for
/// which nobody else may be looking at the folder.
std::set<std::string> names_in_use(const std::string& folder, const std::vector<std::string>& files,
                                   bool removes) {
  std::set<std::string> names;
  for (const std::string& file : files) {
    const std::string path = folder + "/" + file;
    const io::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0) continue;
    if (locks(fd.get(), LOCK_EX | LOCK_NB)) {
      if (removes) ::unlink(path.c_str());
      continue;
    }
    const auto text = io::read_small_file(path, kMostNamesBytes);
    if (!text) continue;
    for (size_t at = 0, end = 0; (end = text->find('\0', at)) != std::string::npos; at = end + 1)
      names.insert(text->substr(at, end - at));
  }
  return names;
}

std::string_view stem_of(std::string_view name) { return name.substr(0, name.rfind('.')); }

/// A shard of examples, its labels and its token types are used together, and of no use alone.
void join_up(std::vector<CacheEntry>& entries) {
  struct Use {
    bool in_use = false;
    int64_t used_at = 0;
  };
  std::map<std::string_view, Use> by_stem;
  for (const CacheEntry& entry : entries) {
    Use& use = by_stem[stem_of(entry.name)];
    use = {use.in_use || entry.in_use, std::max(use.used_at, entry.used_at)};
  }
  for (CacheEntry& entry : entries) {
    const Use& use = by_stem[stem_of(entry.name)];
    entry.in_use = use.in_use;
    entry.used_at = use.used_at;
  }
}

Result<Contents> read_cache(const std::string& folder, bool removes) {
  PLIMSOLL_ASSIGN(Contents contents, read_folder(folder));
  const std::set<std::string> names = names_in_use(folder, contents.in_use_files, removes);
  for (CacheEntry& entry : contents.entries) entry.in_use = names.contains(entry.name);
  join_up(contents.entries);
  std::sort(contents.entries.begin(), contents.entries.end(), [](const CacheEntry& a, const CacheEntry& b) {
    return std::pair(b.used_at, std::string_view(a.name)) < std::pair(a.used_at, std::string_view(b.name));
  });
  return contents;
}

/// Whether what is open is still what has the name. Errors: kIo where that cannot be known.
Result<bool> is_file(int fd, const std::string& path) {
  struct stat here = {}, there = {};
  if (::fstat(fd, &here) != 0) return io::io_error("cannot look at the file", path, errno);
  if (::stat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return false;
    return io::io_error("cannot look at the file", path, errno);
  }
  return here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

/// The folder's lock, one that is not open where LOCK_NB finds it taken. Errors: kIo.
Result<io::Descriptor> lock_folder(const std::string& folder, int operation) {
  const std::string path = fmt::format("{}/{}", folder, kLockFile);
  for (;;) {
    io::Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd.get() < 0) return io::io_error("cannot lock the cache folder", path, errno);
    if (!locks(fd.get(), operation)) {
      if (errno == EWOULDBLOCK) return io::Descriptor(-1);
      return io::io_error("cannot lock the cache folder", path, errno);
    }
    // Who had it before may have removed it.
    PLIMSOLL_ASSIGN(const bool stands, is_file(fd.get(), path));
    if (stands) return fd;
  }
}

/// The file of names that this process has in a folder, from its first lease to its end.
class NamesInUse {
 public:
  static Result<int> of(const std::string& folder) {
    auto& files = all();
    const auto known = files.find(folder);
    if (known != files.end() && known->second.stands()) return known->second.fd_.get();
    files.erase(folder);
    static int counter = 0;
    std::string path;
    int fd = -1;
    do {
      path = fmt::format("{}/{}{}-{}", folder, kInUse, ::getpid(), counter++);
      fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) return io::io_error("cannot record the use of the cache", path, errno);
    // Nobody removes it before it is locked: the caller holds the folder's lock.
    (void)locks(fd, LOCK_EX);
    return files.try_emplace(folder, std::move(path), fd).first->second.fd_.get();
  }
  static void forget(const std::string& folder) { all().erase(folder); }

  NamesInUse(std::string path, int fd) : path_(std::move(path)), fd_(fd), process_(::getpid()) {}
  NamesInUse(const NamesInUse&) = delete;
  NamesInUse& operator=(const NamesInUse&) = delete;
  ~NamesInUse() {
    if (::getpid() == process_ && stands()) ::unlink(path_.c_str());
  }

 private:
  static std::map<std::string, NamesInUse>& all() {
    static std::map<std::string, NamesInUse> files;
    return files;
  }
  /// Whether the folder was not removed meanwhile, or made anew.
  [[nodiscard]] bool stands() const {
    const auto same = is_file(fd_.get(), path_);
    return same && *same;
  }
  std::string path_;
  io::Descriptor fd_;
  pid_t process_;
};

}  // namespace

Result<std::vector<CacheEntry>> list_data_cache(const std::string& folder) {
  PLIMSOLL_ASSIGN(Contents contents, read_cache(folder, /*removes=*/false));
  return std::move(contents.entries);
}

Result<CacheTrim> trim_data_cache(const std::string& folder, int64_t limit_bytes) {
  CacheTrim trim;
  std::error_code code;
  if (!std::filesystem::exists(folder, code)) return trim;
  PLIMSOLL_ASSIGN(const auto lock, lock_folder(folder, LOCK_EX | LOCK_NB));
  trim.is_busy = !lock.is_open();
  PLIMSOLL_ASSIGN(const Contents contents, read_cache(folder, !trim.is_busy));
  for (const CacheEntry& entry : contents.entries) {
    trim.left_bytes += entry.bytes;
    ++trim.left_files;
  }
  if (trim.is_busy) return trim;
  for (const std::string& name : contents.unfinished) ::unlink((folder + "/" + name).c_str());
  std::string_view removed;  // pairs stand side by side
  for (auto entry = contents.entries.rbegin(); entry != contents.entries.rend(); ++entry) {
    if (trim.left_bytes <= limit_bytes && stem_of(entry->name) != removed) break;
    if (entry->in_use) continue;
    const std::string path = folder + "/" + entry->name;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      return io::io_error("cannot remove a file of the cache", path, errno);
    removed = stem_of(entry->name);
    trim.left_bytes -= entry->bytes;
    trim.removed_bytes += entry->bytes;
    --trim.left_files;
    ++trim.removed_files;
  }
  return trim;
}

Result<CacheLease> CacheLease::take(const std::string& folder) {
  PLIMSOLL_ASSIGN(auto lock, lock_folder(folder, LOCK_SH));
  PLIMSOLL_ASSIGN(const int names, NamesInUse::of(folder));
  return CacheLease(folder, std::move(lock), names);
}

void CacheLease::give_up() && {
  lock_.close();
  const auto alone = lock_folder(folder_, LOCK_EX | LOCK_NB);
  if (!alone || !alone->is_open()) return;
  std::error_code code;
  for (std::filesystem::directory_iterator file(folder_, code), end; file != end; file.increment(code)) {
    const std::string name = file->path().filename().string();
    if (name != kLockFile && !name.starts_with(kInUse)) return;
    if (code) return;
  }
  if (code) return;
  NamesInUse::forget(folder_);
  ::unlink(fmt::format("{}/{}", folder_, kLockFile).c_str());
}

Status CacheLease::use(const std::string& path) const {
  std::error_code code;
  const std::filesystem::path file(path);
  const std::string name = file.filename().string();
  if (!is_entry(name) || !std::filesystem::equivalent(io::folder_of(path), folder_, code)) return Ok{};
  const std::string line = name + '\0';
  if (::write(names_, line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return io::io_error("cannot record the use of the cache", folder_, errno);
  // A time that cannot be set makes a file look older than it is; in use, it stays all the same.
  (void)::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return Ok{};
}

}  // namespace plimsoll::preprocessing
