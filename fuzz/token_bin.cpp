// nanoGPT's and llm.c's .bin files: what is accepted lies within the file, and every token of it can be read
// or is refused for its id.
#include "datasets/token_bin.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "datasets/token_source.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file(".bin");
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = plimsoll::datasets::parse_token_bin(
      bytes.first(std::min<size_t>(size, plimsoll::datasets::kTokenBinPrefixBytes)),
      static_cast<int64_t>(size));
  if (header)
    PLIMSOLL_CHECK(header->num_elements() >= 0 &&
                   header->data_offset + header->num_elements() * header->element_bytes ==
                       static_cast<int64_t>(size));
  file.hold(std::as_bytes(std::span(data, size)));
  const auto source = plimsoll::datasets::TokenSource::open(file.path(), 300);
  PLIMSOLL_CHECK(source.ok() == (header.ok() && header->num_elements() > 0), "two readers disagree");
  if (!source) return 0;
  std::array<std::byte, 16> scratch = {};
  std::vector<int32_t> tokens(static_cast<size_t>(source->num_tokens()));
  if (source->read(0, tokens, scratch))
    for (const int32_t token : tokens) PLIMSOLL_CHECK(token >= 0 && token < 300);
  return 0;
}
