#include "io/check_writable.h"

#include "io/file.h"

namespace plimsoll::io {

Status check_writable(const std::string& path) {
  auto probe = AtomicFile::create(path);
  if (!probe) return std::move(probe).error();
  return Ok{};
}

}  // namespace plimsoll::io
