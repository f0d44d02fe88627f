#include "images/exif.h"

namespace plimsoll::images {
namespace {

constexpr uint32_t kOrientationTag = 0x0112;
constexpr int64_t kEntryBytes = 12;

// The value of an entry that holds one small integer in itself; 0 for other types.
uint32_t small_value(Bytes tiff, int64_t entry, bool little) {
  constexpr uint32_t kByte = 1, kShort = 3, kLong = 4;
  if (read_number(tiff, entry + 4, 4, little) == 0) return 0;
  switch (read_number(tiff, entry + 2, 2, little)) {
    case kByte:
      return read_number(tiff, entry + 8, 1, little);
    case kShort:
      return read_number(tiff, entry + 8, 2, little);
    case kLong:
      return read_number(tiff, entry + 8, 4, little);
    default:
      return 0;
  }
}

}  // namespace

int exif_orientation(Bytes tiff) {
  using namespace std::string_view_literals;
  const bool little = starts_with(tiff, 0, "II*\0"sv);
  if (!little && !starts_with(tiff, 0, "MM\0*"sv)) return 1;
  const auto directory = static_cast<int64_t>(read_number(tiff, 4, 4, little));
  const int64_t entries = read_number(tiff, directory, 2, little);
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t entry = directory + 2 + i * kEntryBytes;
    if (!has(tiff, entry, kEntryBytes)) return 1;
    if (read_number(tiff, entry, 2, little) != kOrientationTag) continue;
    const uint32_t value = small_value(tiff, entry, little);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace plimsoll::images
