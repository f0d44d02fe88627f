// The words under which examples that cannot be used are counted.
#pragma once

#include <string_view>

namespace plimsoll::corpora::reason {

inline constexpr std::string_view kDamaged = "damaged file";
inline constexpr std::string_view kEmptyFile = "empty file";
inline constexpr std::string_view kTooLong = "too long";
inline constexpr std::string_view kNotJson = "not JSON";
inline constexpr std::string_view kNotCsv = "not CSV";
inline constexpr std::string_view kNotAnObject = "not an object";
inline constexpr std::string_view kMissingField = "missing field";
inline constexpr std::string_view kWrongType = "wrong type";
inline constexpr std::string_view kPreference = "preference pair";
inline constexpr std::string_view kDuplicateKey = "a key twice";
inline constexpr std::string_view kBadConversation = "bad conversation";
inline constexpr std::string_view kTemplate = "chat template fails";
inline constexpr std::string_view kBadLabel = "bad label";
inline constexpr std::string_view kUnencodable = "no tokens for it";

}  // namespace plimsoll::corpora::reason

namespace plimsoll::corpora {

inline constexpr const char* kSkipHint = "correct it, or skip such examples and count them: --on-error skip";

}  // namespace plimsoll::corpora
