// .npy files: an accepted header lies within the file, and every sequence of it can be read or is refused for
// its ids.
#include "io/npy.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "datasets/dataset.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file(".npy");
  const auto header =
      plimsoll::io::parse_npy_header(std::as_bytes(std::span(data, size)), static_cast<int64_t>(size));
  if (header)
    PLIMSOLL_CHECK(header->data_offset >= 0 && header->num_elements() >= 0 &&
                   header->data_offset + header->num_elements() * header->element_bytes <=
                       static_cast<int64_t>(size));
  file.hold(std::as_bytes(std::span(data, size)));
  const std::vector<std::string> paths = {file.path()};
  const int64_t length =
      header && header->rank == 2 && header->columns > 0 && header->columns < 4096 ? header->columns : 3;
  const auto dataset = plimsoll::datasets::Dataset::open(
      paths, {.sequence_length = length, .vocab_size = 300, .keep_tail = true});
  if (!dataset) return 0;
  PLIMSOLL_CHECK(header.ok(), "a dataset over a header that is refused");
  std::vector<int32_t> tokens(static_cast<size_t>(length));
  std::array<std::byte, 16> scratch = {};
  for (int64_t i = 0; i < dataset->num_sequences(); ++i) {
    PLIMSOLL_CHECK(dataset->read_sequence(i, tokens, scratch).ok(), "checked ids are refused later");
    for (const int32_t token : tokens) PLIMSOLL_CHECK(token >= 0 && token < 300);
  }
  return 0;
}
