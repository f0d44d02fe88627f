// What the files of data.train and data.eval are.
#pragma once

#include <string>
#include <vector>

namespace plimsoll::train {

enum class FileKind { kTokens, kShard, kJson, kText };

/// By its name, and where that does not tell, by its first bytes.
FileKind kind_of(const std::string& path);

/// The files of each pattern; a pattern without a match stands for itself, for plans without data.
std::vector<std::string> files_of(const std::vector<std::string>& patterns);

}  // namespace plimsoll::train
