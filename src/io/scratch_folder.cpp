#include "io/scratch_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "io/file.h"

namespace plimsoll::io {

Result<ScratchFolder> ScratchFolder::create(const std::string& purpose) {
  std::error_code code;
  std::string path =
      (std::filesystem::temp_directory_path(code) / ("plimsoll-" + purpose + "-XXXXXX")).string();
  if (code || ::mkdtemp(path.data()) == nullptr)
    return io_error("cannot create a temporary folder", path, code ? code.value() : errno);
  return ScratchFolder(std::move(path));
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace plimsoll::io
