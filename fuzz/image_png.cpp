// PNG files; the last byte chooses the processor. Checksums of chunks are made right, which opens the way to
// the rest.
#include <zlib.h>

#include "image_file.h"
#include "images/byte_reader.h"

namespace {

void correct_checksums(std::vector<std::byte>& file) {
  using plimsoll::images::has;
  for (int64_t offset = 8; has(file, offset, 12);) {
    const int64_t length = plimsoll::images::read_number(file, offset, 4);
    if (!has(file, offset, length + 12)) return;
    const auto* begin = reinterpret_cast<const Bytef*>(file.data() + offset + 4);
    const auto checksum = static_cast<uint32_t>(crc32(0, begin, static_cast<uInt>(length + 4)));
    for (int i = 0; i < 4; ++i)
      file[static_cast<size_t>(offset + 8 + length + i)] = static_cast<std::byte>(checksum >> (24 - 8 * i));
    offset += length + 12;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size - 1));
  image_file::check(bytes, data[size - 1]);
  std::vector<std::byte> correct(bytes.begin(), bytes.end());
  correct_checksums(correct);
  image_file::check(correct, data[size - 1]);
  return 0;
}
