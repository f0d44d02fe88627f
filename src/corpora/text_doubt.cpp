#include "corpora/text_doubt.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "corpora/input_stream.h"
#include "io/json_cursor.h"

namespace plimsoll::corpora {
namespace {

constexpr size_t kLookedAt = 64 << 10;
/// A machine's log with its escapes stays below, random bytes have 11 % of them.
constexpr double kMostControls = 0.02;
/// A page with some broken characters stays below, a text in UTF-16 or an 8-bit code of another script does
/// not.
constexpr double kMostBroken = 0.05;

/// No blank, no line or page break, no start of a terminal's escape.
bool is_control(unsigned char c) { return (c < 0x20 && (c < '\t' || c > '\r') && c != 0x1b) || c == 0x7f; }

size_t broken_bytes(std::string_view bytes) {
  size_t broken = 0;
  while (!bytes.empty()) {
    const int64_t at = io::utf8_error_at(bytes);
    if (at < 0 || bytes.size() - static_cast<size_t>(at) < 4) break;  // the last character may be cut
    ++broken;
    bytes.remove_prefix(static_cast<size_t>(at) + 1);
  }
  return broken;
}

}  // namespace

std::string doubt_of(std::string_view bytes) {
  bytes = bytes.substr(0, kLookedAt);
  const auto size = static_cast<double>(bytes.size());
  const auto say = [&](size_t count, std::string_view what) {
    return fmt::format("{:.1f} % of the first {} bytes are {}", 100 * static_cast<double>(count) / size,
                       bytes.size(), what);
  };
  const auto controls = static_cast<size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char c) { return is_control(static_cast<unsigned char>(c)); }));
  if (static_cast<double>(controls) > kMostControls * size) return say(controls, "control characters");
  const size_t broken = broken_bytes(bytes);
  if (static_cast<double>(broken) > kMostBroken * size) return say(broken, "no UTF-8");
  return {};
}

std::string doubt_of_file(const std::string& path) {
  auto stream = InputStream::open(path);
  if (!stream) return {};
  std::string bytes(kLookedAt, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const auto count = (*stream)->read(std::span(bytes).subspan(filled));
    if (!count || *count == 0) break;
    filled += *count;
  }
  return doubt_of(std::string_view(bytes).substr(0, filled));
}

}  // namespace plimsoll::corpora
