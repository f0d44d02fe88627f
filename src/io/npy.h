// NumPy's .npy header (versions 1 to 3) for integer arrays of one or two dimensions. Other code reads the
// payload by position; nothing here allocates by what the file claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll::io {

/// What the header says, checked against the file's size.
struct NpyHeader {
  int64_t data_offset = 0;  ///< byte at which the elements start
  int element_bytes = 0;    ///< 1, 2, 4 or 8
  bool is_signed = false;
  bool big_endian = false;
  int rank = 1;         ///< 1 or 2
  int64_t rows = 1;     ///< 2-D: samples; 1-D: 1
  int64_t columns = 0;  ///< 2-D: tokens a sample; 1-D: all tokens

  [[nodiscard]] int64_t num_elements() const { return rows * columns; }
};

/// Reads and checks the header.
/// Errors: kBadData for anything that is not a C-ordered 1-D or 2-D integer array that the file holds whole.
Result<NpyHeader> read_npy_header(const ReadFile& file);
/// The same from bytes: `prefix` holds the file's start (its first 64 KiB or all of it).
Result<NpyHeader> parse_npy_header(std::span<const std::byte> prefix, int64_t file_bytes);

}  // namespace plimsoll::io
