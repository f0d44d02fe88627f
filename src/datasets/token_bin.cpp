// A header is known by its first word. Read as a token that word's half would be 55432 or 55713, which
// GPT-2's vocabulary of 50257 does not have: a file without a header does not begin so.
#include "datasets/token_bin.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace plimsoll::datasets {
namespace {

using namespace std::string_view_literals;

constexpr int64_t kBinHeaderBytes = 1024;
constexpr const char* kHint =
    "expected are nanoGPT's (u16 alone) and llm.c's (u16, or u32 for Llama 3) files of tokens";

struct Kind {
  int32_t magic;
  int32_t version;
  int element_bytes;
};
constexpr std::array<Kind, 2> kKinds = {{{20240520, 1, 2}, {20240801, 7, 4}}};
constexpr int32_t kEvalMagic = 20240522;

struct Other {
  std::string_view begins;
  const char* what;
};
constexpr std::array<Other, 5> kOthers = {{{"PK\x03\x04"sv, "a PyTorch checkpoint or an archive"},
                                           {"\x80\x02\x8A\x0Al\xFC\x9C"sv, "an old PyTorch checkpoint"},
                                           {"GGUF"sv, "a GGUF model"},
                                           {"\x93NUMPY"sv, "an .npy array; name it so"},
                                           {"plmshard"sv, "a token shard"}}};

Error bad_token_bin(std::string what) { return {ErrorCode::kBadData, std::move(what), {}, kHint}; }

int32_t word_at(std::span<const std::byte> bytes, size_t number) {
  int32_t word = 0;
  std::memcpy(&word, bytes.data() + number * sizeof(word), sizeof(word));
  return word;
}

Result<io::NpyHeader> with_header(const Kind& kind, std::span<const std::byte> prefix, int64_t file_bytes) {
  if (file_bytes < kBinHeaderBytes) return bad_token_bin("the file ends within llm.c's header of 1024 bytes");
  if (word_at(prefix, 1) != kind.version)
    return bad_token_bin(
        fmt::format("llm.c's header says version {}, known is {}", word_at(prefix, 1), kind.version));
  const int64_t count = word_at(prefix, 2);
  const int64_t held = file_bytes - kBinHeaderBytes;
  if (count < 0 || held != count * kind.element_bytes)
    return bad_token_bin(fmt::format("llm.c's header says {} tokens of {} bytes, and {} bytes follow it",
                                     count, kind.element_bytes, held));
  return io::NpyHeader{.data_offset = kBinHeaderBytes, .element_bytes = kind.element_bytes, .columns = count};
}

}  // namespace

Result<io::NpyHeader> parse_token_bin(std::span<const std::byte> prefix, int64_t file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (prefix.size() >= 12) {
    const int32_t magic = word_at(prefix, 0);
    for (const Kind& kind : kKinds)
      if (magic == kind.magic) return with_header(kind, prefix, file_bytes);
    if (magic == kEvalMagic)
      return bad_token_bin("the file is one of llm.c's multiple-choice evaluations, no stream");
  }
  for (const Other& other : kOthers)
    if (text.starts_with(other.begins))
      return bad_token_bin(fmt::format("the file is {}, no tokens", other.what));
  if (file_bytes % 2 != 0)
    return bad_token_bin(fmt::format("the file has {} bytes, which is no whole number of u16", file_bytes));
  return io::NpyHeader{.element_bytes = 2, .columns = file_bytes / 2};
}

Result<io::NpyHeader> read_token_bin(const io::ReadFile& file) {
  std::vector<std::byte> prefix(
      static_cast<size_t>(std::min<int64_t>(kTokenBinPrefixBytes, file.size_bytes())));
  PLIMSOLL_TRY(file.read_at(0, prefix));
  auto header = parse_token_bin(prefix, file.size_bytes());
  if (!header) return std::move(header).error().at(file.path());
  return header;
}

}  // namespace plimsoll::datasets
