// Classifies the files of data.train and data.eval.
#pragma once

#include <string>
#include <vector>

#include "settings/run_config.h"

namespace plimsoll::preprocessing {

enum class FileKind { kTokens, kShard, kJson, kText };

/// By its name, and where that does not tell, by its first bytes.
FileKind kind_of(const std::string& path);

/// The files of each pattern; a pattern without a match stands for itself, for plans without data.
std::vector<std::string> files_of(const std::vector<std::string>& patterns);

/// A line for each kind of file that the data has and that settings which are given do not act on, naming
/// them. `train`: data.train is read too; `as_bytes`: texts are read without a tokenizer.
std::vector<std::string> idle_settings(const settings::DataSettings& data, bool train, bool as_bytes);

}  // namespace plimsoll::preprocessing
