#include "ranks/error_text.h"

#include <algorithm>
#include <array>
#include <vector>

namespace plimsoll::ranks {

std::string error_text(const Error& error) {
  std::string text(1, static_cast<char>('A' + static_cast<int>(error.code)));
  for (const std::string* part : {&error.what, &error.where, &error.hint}) text += *part + '\0';
  return text;
}

Error parse_error(std::string_view text) {
  const int code = text.empty() ? -1 : text.front() - 'A';
  if (code < 0 || code > static_cast<int>(ErrorCode::kInternal))
    return {ErrorCode::kInternal, "a rank failed, and its error cannot be read"};
  text.remove_prefix(1);
  std::array<std::string, 3> parts;
  for (std::string& part : parts) {
    const size_t end = std::min(text.find('\0'), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {static_cast<ErrorCode>(code), parts[0], parts[1], parts[2]};
}

}  // namespace plimsoll::ranks
