// Parquet and Arrow files as lines of JSON, read by a module that is there or is not (column_module.h).
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "corpora/input_stream.h"

namespace plimsoll::corpora {

/// Whether a file of this name is one of columns: .parquet or .arrow.
bool has_columns_by_name(const std::string& path);

/// Opens it. Of its columns those that an example may have are read, and the one named `text_key`; all where
/// there is none of them. Errors: kBadData where there is no such file, or a damaged one; kInvalidArgument,
/// with the command that converts the file, where this program has no module for it; kIo.
Result<std::unique_ptr<InputStream>> open_columns(const std::string& path, const std::string& text_key);

/// What datasets wrote of a file's columns beside them, as JSON; empty where there is nothing, or the file
/// cannot be read.
std::string column_features(const std::string& path);

}  // namespace plimsoll::corpora
