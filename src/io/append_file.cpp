#include "io/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "io/file.h"

namespace plimsoll::io {

Result<AppendFile> AppendFile::open(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  struct stat about = {};
  if (!fd.is_open() || ::fstat(fd.get(), &about) != 0) return io_error("cannot open", path, errno);
  if (!S_ISREG(about.st_mode)) return Error{ErrorCode::kIo, "is no regular file", path, "move it away"};
  return AppendFile(path, std::move(fd), about.st_size);
}

Status AppendFile::add(std::string_view record) {
  if (static_cast<int64_t>(pending_.size() + record.size()) > kMostPending) flush();
  if (static_cast<int64_t>(pending_.size() + record.size()) > kMostPending) return Ok{};
  int code = 0;
  if (pending_.empty()) {
    code = append(record);
    if (code == 0) return Ok{};
    pending_.assign(record);
  } else {
    pending_.append(record);
    code = append(pending_);
    if (code == 0) pending_.clear();
  }
  if (code == 0 || std::exchange(told_, true)) return Ok{};
  return io_error("cannot write", path_, code);
}

void AppendFile::flush() {
  if (!pending_.empty() && append(pending_) == 0) pending_.clear();
}

int AppendFile::append(std::string_view records) {
  size_t done = 0;
  while (done < records.size()) {
    const ssize_t n = ::pwrite(fd_.get(), records.data() + done, records.size() - done,
                               static_cast<off_t>(size_ + static_cast<int64_t>(done)));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int code = n < 0 ? errno : ENOSPC;
      if (::ftruncate(fd_.get(), static_cast<off_t>(size_)) != 0) return code;  // the next try writes over it
      return code;
    }
    done += static_cast<size_t>(n);
  }
  size_ += static_cast<int64_t>(records.size());
  return 0;
}

Status truncate_file(const std::string& path, int64_t bytes) {
  if (::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) return io_error("cannot cut", path, errno);
  return Ok{};
}

}  // namespace plimsoll::io
