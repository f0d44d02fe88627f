// A folder that is made for something that may come to nothing.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::io {

/// Remembers which of a path's folders are not there yet. At the end those that are there and empty are
/// removed again.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

 private:
  std::vector<std::string> absent_;  // the innermost first
};

}  // namespace plimsoll::io
