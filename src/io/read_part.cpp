#include "io/read_part.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "io/descriptor.h"
#include "io/file.h"

namespace plimsoll::io {

Result<int64_t> read_part(const char* path, int64_t offset, std::span<std::byte> out) {
  const Descriptor file(::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info = {};
  const bool opened = file.get() >= 0 && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
  if (!opened) {
    PLIMSOLL_TRY(ReadFile::open(path));  // says why
    return Error{ErrorCode::kIo, "cannot open the file", path, "check that its disk works"};
  }
  const int64_t size = info.st_size;
  if (offset < 0 || offset > size || static_cast<int64_t>(out.size()) > size - offset) return size;
  while (!out.empty()) {
    const ssize_t n = ::pread(file.get(), out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot read the file", path, errno);
    if (n == 0) return Error{ErrorCode::kBadData, "the file was cut while it was read", path, "run again"};
    out = out.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return size;
}

}  // namespace plimsoll::io
