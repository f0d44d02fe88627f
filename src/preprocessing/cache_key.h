// Names of cached files: a checksum over all that a file was made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/checksum.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::preprocessing {

/// A small file's content, so that a copy of a model's folder is as good as the folder; empty where there is
/// none.
std::string content_of(const std::string& path);

class CacheKey {
 public:
  void add(std::string_view part);
  /// What decides which ids a text gets: the tokenizer, its file where `path` names one, and those that lie
  /// in `folder`.
  void add_tokenizer(const tokenizers::Tokenizer& tokenizer, const std::string& path,
                     const std::string& folder);
  /// Where each lies and what is in it. Reads them: 10 GB take some seconds, their tokens many minutes.
  void add_files(const std::vector<std::string>& paths);
  [[nodiscard]] std::string text() const { return io::checksum_text(sum_.value()); }

 private:
  io::Checksum sum_;
};

}  // namespace plimsoll::preprocessing
