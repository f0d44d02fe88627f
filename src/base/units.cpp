#include "base/units.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

namespace plimsoll {

std::string to_string(Bytes bytes) {
  static constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes.count);
  size_t unit = 0;
  while (std::abs(value) >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes.count);
  return fmt::format("{:.{}f} {}", value, std::abs(value) < 10 ? 2 : 1, kUnits[unit]);
}

Result<Bytes> parse_bytes(std::string_view text) {
  const auto wrong = [&] {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("'{}' is not a size in bytes", text),
                 {},
                 "write for example 6GiB, 512MiB or 2GB"};
  };
  double value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (ec != std::errc() || !std::isfinite(value) || value < 0) return wrong();
  std::string unit;
  for (const char* p = end; p != text.data() + text.size(); ++p)
    if (*p != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  struct Unit {
    const char* name;
    double scale;
  };
  static constexpr std::array<Unit, 18> kUnits = {{{"", 1},
                                                   {"b", 1},
                                                   {"kib", 0x1p10},
                                                   {"mib", 0x1p20},
                                                   {"gib", 0x1p30},
                                                   {"tib", 0x1p40},
                                                   {"pib", 0x1p50},
                                                   {"eib", 0x1p60},
                                                   {"kb", 1e3},
                                                   {"mb", 1e6},
                                                   {"gb", 1e9},
                                                   {"tb", 1e12},
                                                   {"pb", 1e15},
                                                   {"eb", 1e18},
                                                   {"k", 0x1p10},
                                                   {"m", 0x1p20},
                                                   {"g", 0x1p30},
                                                   {"t", 0x1p40}}};
  for (const auto& u : kUnits)
    if (unit == u.name) {
      const double bytes = value * u.scale;
      if (bytes > 0x1p62) return wrong();
      return Bytes(static_cast<int64_t>(bytes));
    }
  return wrong();
}

}  // namespace plimsoll
