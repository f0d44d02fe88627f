#include "io/new_folder.h"

#include <unistd.h>

#include <filesystem>

namespace plimsoll::io {

NewFolder::NewFolder(const std::string& path) {
  std::error_code code;
  const auto absent = [&](const std::filesystem::path& at) {
    return std::filesystem::symlink_status(at, code).type() == std::filesystem::file_type::not_found;
  };
  for (std::filesystem::path at = path; !at.empty() && absent(at); at = at.parent_path())
    absent_.push_back(at.string());
}

NewFolder::~NewFolder() {
  for (const std::string& folder : absent_) ::rmdir(folder.c_str());  // fails where something is in it
}

}  // namespace plimsoll::io
