#include "images/stored_pixels.h"

#include <algorithm>
#include <cstring>

#include "images/decode.h"
#include "images/resample.h"

namespace plimsoll::images {
namespace {

constexpr std::string_view kMagic = "PLMPIXEL";
constexpr uint32_t kReady = 1, kDamaged = 2;

uint32_t word(Bytes file, int64_t offset) { return read_number(file, offset, 4, /*little_endian=*/true); }

}  // namespace

std::array<std::byte, kStoredHeaderBytes> stored_header(const StoredPixels& stored) {
  std::array<std::byte, kStoredHeaderBytes> header{};
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  const uint32_t flags = (stored.ready ? kReady : 0) | (stored.damaged ? kDamaged : 0);
  const std::array words = {static_cast<uint32_t>(stored.width), static_cast<uint32_t>(stored.height), flags};
  for (size_t i = 0; i < words.size(); ++i)
    for (size_t byte = 0; byte < 4; ++byte)
      header[kMagic.size() + 4 * i + byte] = static_cast<std::byte>(words[i] >> (8 * byte));
  return header;
}

bool is_stored(Bytes file) { return starts_with(file, 0, kMagic); }

Result<ImageInfo> probe_stored(Bytes file) {
  if (!has(file, 0, kStoredHeaderBytes)) return bad_picture("the stored pixels end within their header");
  const uint32_t flags = word(file, 16);
  if ((flags & kDamaged) != 0) return bad_picture("the image was damaged when it was packed");
  ImageInfo info{.width = word(file, 8), .height = word(file, 12), .format = Format::kStored};
  constexpr int64_t kMostSide = int64_t{1} << 30;
  if (info.width == 0 || info.height == 0 || info.width > kMostSide || info.height > kMostSide ||
      flags > kReady)
    return bad_picture("the stored pixels' header is damaged");
  info.ready = flags == kReady;
  info.decode_bytes = arena_piece(3 * info.width + kRowSlack);
  return info;
}

Bytes stored_rows(Bytes file, const ImageInfo& info) {
  const int64_t bytes = 3 * info.width * info.height;
  return has(file, kStoredHeaderBytes, bytes) ? file.subspan(kStoredHeaderBytes, at(bytes)) : Bytes();
}

Status decode_stored(Bytes file, const ImageInfo& info, RowSink& sink, Arena& arena) {
  const Bytes rows = stored_rows(file, info);
  if (rows.empty()) return bad_picture("the stored pixels are cut off");
  const int64_t used = arena.used(), row_bytes = 3 * info.width;
  // The sink may write to a row.
  const std::span<uint8_t> row = arena.take<uint8_t>(row_bytes + kRowSlack);
  const Needed needed = sink.needed(info);
  const int64_t first = 3 * needed.first_pixel, end = std::min(3 * needed.end_pixel + kRowSlack, row_bytes);
  for (int64_t y = needed.first_row; y < needed.end_row; ++y) {
    std::memcpy(row.data() + first, rows.data() + y * row_bytes + first, at(end - first));
    if (!sink.row(y, row.data())) break;
  }
  arena.rewind(used);
  return Ok{};
}

}  // namespace plimsoll::images
