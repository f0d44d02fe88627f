// Offset-assignment cases on disk: one CSV a case, a header that names id, lower, upper, size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "memory/buffer.h"
#include "memory/offsets.h"

namespace plimsoll::memory {

/// A case as read.
struct OffsetCase {
  std::vector<std::string> ids;  ///< one per buffer, unique
  std::vector<Buffer> buffers;
  std::optional<int64_t> capacity;  ///< the number in a name that ends in ".NUMBER.csv"
};

/// What `bench offsets` prints of a case.
struct CaseReport {
  std::string file;
  int64_t buffers = 0;
  int64_t lower_bound = 0;
  int64_t height = 0;
  double seconds = 0;  ///< of the assignment with its validation; reading is not counted
  bool optimal = false;
  std::optional<int64_t> capacity;
  std::string method;
};

/// Reads a case. Columns may stand in any order; others than the four are ignored, `alignment` is understood.
/// Errors: kIo if the file cannot be read; kBadData with file, line and column for a missing or repeated
/// column, a missing or non-integer cell, a negative one, lower >= upper, a repeated id, sums beyond
/// kMaxTotalBytes.
Result<OffsetCase> read_case(const std::string& path);

/// The same from text; `name` stands in messages and gives the capacity.
Result<OffsetCase> parse_case(std::string_view text, const std::string& name);

/// Options for a case on its own, where seconds are at hand rather than milliseconds.
OffsetOptions case_options();

/// Reads, assigns (the case's capacity is taken unless options have one), validates, times.
/// Errors: those of read_case.
Result<CaseReport> run_case(const std::string& path, OffsetOptions options = case_options());

}  // namespace plimsoll::memory
