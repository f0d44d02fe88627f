// Lines of standard input, for a process that waits for a person and for signals alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/stop.h"

namespace plimsoll::generate {

/// Reads what is there and no further ahead than that.
class LineReader {
 public:
  LineReader(int64_t most_bytes, Stop stop) : most_bytes_(most_bytes), stop_(std::move(stop)) {}

  /// The next line without its end; the last one may have none. Nothing at the end of the input, and once it
  /// is asked to stop. Errors: kBadData for a line beyond the bound; kIo.
  Result<std::optional<std::string>> next();
  /// Whether something was there before it was asked for: typed ahead, and shown by the terminal already.
  [[nodiscard]] bool is_ahead() const;

 private:
  Status fill();
  int64_t most_bytes_;
  Stop stop_;
  std::string held_;
  bool at_end_ = false;
};

}  // namespace plimsoll::generate
