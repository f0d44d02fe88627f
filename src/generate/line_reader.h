// Lines of standard input, for a process that waits for a person and for signals alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace plimsoll::generate {

/// Reads what is there and no further ahead than that.
class LineReader {
 public:
  explicit LineReader(int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// The next line without its end; the last one may have none. Nothing at the end of the input, and once a
  /// signal has asked the process to stop. Errors: kBadData for a line beyond the bound; kIo.
  Result<std::optional<std::string>> next();
  /// Whether something was there before it was asked for: typed ahead, and shown by the terminal already.
  [[nodiscard]] bool is_ahead() const;

 private:
  Status fill();
  int64_t most_bytes_;
  std::string held_;
  bool at_end_ = false;
};

}  // namespace plimsoll::generate
