// The interface of the module for Parquet and Arrow files (src/columnar/module.cpp): rows as lines of JSON.
// It is loaded when the first such file is read, so that nobody else pays for its libraries, and a program
// without it works but for those files. Plain C, as it crosses the border of a shared object.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

/// Raised when what follows changes.
inline constexpr int kPlimsollColumnsVersion = 3;

struct PlimsollColumns;  // a file that is open

/// Members are pointers to functions; none throws. One thread at a time with a file.
struct PlimsollColumnsModule {
  int version;
  /// Opens a Parquet file, an Arrow IPC file or an Arrow IPC stream, told apart by their first bytes. Of the
  /// columns those named by `wanted` are read, where there is any, else all. Null: `error` (of `error_bytes`)
  /// says why, ended by a zero; `is_type` is 1 where it is the type of a column that is wanted, else 0.
  PlimsollColumns* (*open)(const char* path, const char* const* wanted, size_t num_wanted, int* is_type,
                           char* error, size_t error_bytes);
  /// The next rows, a line of JSON each: `text` of `size` bytes, until the next call. 1: there are some; 0:
  /// the end; -1: an error, as above.
  int (*next)(PlimsollColumns* file, const char** text, size_t* size, char* error, size_t error_bytes);
  /// How much of the file has been read, of `total` that it has, both in any unit.
  void (*progress)(const PlimsollColumns* file, int64_t* done, int64_t* total);
  /// What the schema says under "huggingface", where datasets describes the columns in JSON; empty: nothing.
  /// The text is there until the file is closed.
  const char* (*features)(const PlimsollColumns* file);
  void (*close)(PlimsollColumns* file);
};

/// The module's one symbol: "plimsoll_columns_module".
using PlimsollColumnsEntry = const PlimsollColumnsModule* (*)();
}
