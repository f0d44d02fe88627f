// Detects files that are not text although their name says so: a look at its first bytes.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::corpora {

/// Why these bytes, the first of a file, are hardly text - "12.4 % of the first 65536 bytes are control
/// characters" - or empty. Text in any language of UTF-8 passes, with a few broken bytes too.
std::string doubt_of(std::string_view bytes);
/// The same of a file, unpacked where it is packed; empty where it cannot be read, which its reader will say.
std::string doubt_of_file(const std::string& path);

}  // namespace plimsoll::corpora
