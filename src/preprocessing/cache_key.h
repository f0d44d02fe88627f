// Names of cached files: a checksum over what a file was made from, as far as it shows without reading texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/checksum.h"

namespace plimsoll::train {

/// A small file's content, so that a copy of a model's folder is as good as the folder; empty where there is
/// none.
std::string content_of(const std::string& path);

class CacheKey {
 public:
  void add(std::string_view part);
  /// Where each lies, its size, and when it was last changed.
  void add_files(const std::vector<std::string>& paths);
  [[nodiscard]] std::string text() const { return checksum_text(sum_.value()); }

 private:
  Checksum sum_;
};

}  // namespace plimsoll::train
