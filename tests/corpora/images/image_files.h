// Small pictures for tests: whole PNG files made of filter bytes and stored deflate blocks.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll::corpora {

inline std::string big_endian(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text.push_back(static_cast<char>(value >> shift));
  return text;
}

inline std::string png_chunk(std::string_view type, const std::string& data) {
  const std::string content = std::string(type) + data;
  const auto crc =
      ::crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + content + big_endian(static_cast<uint32_t>(crc));
}

/// An RGB picture of one colour.
inline std::string png_of(uint32_t width, uint32_t height, uint8_t red, uint8_t green, uint8_t blue) {
  std::string rows;
  for (uint32_t y = 0; y < height; ++y) {
    rows.push_back('\0');
    for (uint32_t x = 0; x < width; ++x)
      for (const uint8_t value : {red, green, blue}) rows.push_back(static_cast<char>(value));
  }
  uLongf size = ::compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  ::compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(rows.data()),
             static_cast<uLong>(rows.size()));
  packed.resize(size);
  const std::string header = big_endian(width) + big_endian(height) + std::string("\x08\x02\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

}  // namespace plimsoll::corpora
