// Decoding of token files: any integer width and byte order into int32, checked against the vocabulary on the
// way.
#include "datasets/token_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "datasets/token_bin.h"

namespace plimsoll::datasets {
namespace {

template <typename T>
T byte_swapped(T value) {
  T result = 0;
  auto* to = reinterpret_cast<unsigned char*>(&result);
  const auto* from = reinterpret_cast<const unsigned char*>(&value);
  std::reverse_copy(from, from + sizeof(T), to);
  return result;
}

/// Decodes out.size() elements; true where one is outside [0, vocab_size).
template <typename T>
bool decode(const std::byte* from, bool swap, int64_t vocab_size, std::span<int32_t> out) {
  bool outside = false;
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    if (sizeof(T) > 1 && swap) value = byte_swapped(value);
    // A negative id becomes a huge one.
    outside |= static_cast<uint64_t>(value) >= static_cast<uint64_t>(vocab_size);
    out[i] = static_cast<int32_t>(value);
  }
  return outside;
}

bool decode(const io::NpyHeader& header, const std::byte* from, int64_t vocab_size, std::span<int32_t> out) {
  const bool swap = header.big_endian;  // the machines this runs on are little-endian
  switch (header.element_bytes * 2 + (header.is_signed ? 1 : 0)) {
    case 2:
      return decode<uint8_t>(from, swap, vocab_size, out);
    case 3:
      return decode<int8_t>(from, swap, vocab_size, out);
    case 4:
      return decode<uint16_t>(from, swap, vocab_size, out);
    case 5:
      return decode<int16_t>(from, swap, vocab_size, out);
    case 8:
      return decode<uint32_t>(from, swap, vocab_size, out);
    case 9:
      return decode<int32_t>(from, swap, vocab_size, out);
    case 16:
      return decode<uint64_t>(from, swap, vocab_size, out);
    case 17:
      return decode<int64_t>(from, swap, vocab_size, out);
    default:
      PLIMSOLL_FAIL("an element size that the header reader lets through by mistake");
  }
}

/// The element as it stands in the file, for the message about it.
std::string element_text(const io::NpyHeader& header, const std::byte* from) {
  uint64_t bits = 0;
  for (int i = 0; i < header.element_bytes; ++i) {
    const int shift = 8 * (header.big_endian ? header.element_bytes - 1 - i : i);
    bits |= std::to_integer<uint64_t>(from[i]) << shift;
  }
  if (!header.is_signed) return std::to_string(bits);
  const int unused = 64 - 8 * header.element_bytes;
  return std::to_string(static_cast<int64_t>(bits << unused) >> unused);
}

}  // namespace

Result<TokenSource> TokenSource::open(const std::string& path, int64_t vocab_size) {
  const std::string_view name = path;
  const bool text = name.ends_with(".txt"), bin = name.ends_with(".bin");
  if (!text && !bin && !name.ends_with(".npy"))
    return Error{ErrorCode::kInvalidArgument, "neither ids as .npy or .bin, a .txt file nor a token shard",
                 path, "tokenize texts into a shard: plimsoll data tokenize"};
  PLIMSOLL_ASSIGN(io::ReadFile file, io::ReadFile::open(path));
  io::NpyHeader header{.element_bytes = 1, .columns = file.size_bytes()};
  if (!text) {
    PLIMSOLL_ASSIGN(header, bin ? read_token_bin(file) : io::read_npy_header(file));
  }
  if (header.num_elements() == 0)
    return Error{ErrorCode::kBadData, "the file holds no tokens", path, "remove it from the list"};
  return TokenSource(std::move(file), header, vocab_size);
}

Status TokenSource::read(int64_t begin, std::span<int32_t> out, std::span<std::byte> scratch) const {
  const int64_t width = header_.element_bytes;
  const int64_t at_once = static_cast<int64_t>(scratch.size()) / width;
  PLIMSOLL_CHECK(at_once > 0, "no scratch to read tokens through");
  PLIMSOLL_CHECK(begin >= 0 && begin + static_cast<int64_t>(out.size()) <= num_tokens(),
                 "tokens outside of the file");
  while (!out.empty()) {
    const auto count = static_cast<size_t>(std::min<int64_t>(at_once, static_cast<int64_t>(out.size())));
    const auto bytes = scratch.first(count * static_cast<size_t>(width));
    PLIMSOLL_TRY(file_.read_at(header_.data_offset + begin * width, bytes));
    if (decode(header_, bytes.data(), vocab_size_, out.first(count))) {
      for (size_t i = 0; i < count; ++i)
        if (int32_t id = 0;
            decode(header_, bytes.data() + i * static_cast<size_t>(width), vocab_size_, std::span(&id, 1)))
          return Error{
              ErrorCode::kBadData,
              fmt::format("token {} is id {}, outside of the vocabulary of {}",
                          begin + static_cast<int64_t>(i),
                          element_text(header_, bytes.data() + i * static_cast<size_t>(width)), vocab_size_),
              path(), "tokenize the data with the model's own tokenizer"};
    }
    out = out.subspan(count);
    begin += static_cast<int64_t>(count);
  }
  return Ok{};
}

}  // namespace plimsoll::datasets
