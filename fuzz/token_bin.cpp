// nanoGPT's and llm.c's .bin files: what is accepted lies within the file, and every token of it can be read
// or is refused for its id.
#include "data/token_bin.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "data/token_source.h"

namespace {

/// A file in memory under a name that ends in .bin.
struct MemoryFile {
  int fd = ::memfd_create("fuzz", 0);
  std::string path =
      std::filesystem::temp_directory_path() / ("plimsoll-fuzz-" + std::to_string(::getpid()) + ".bin");
  MemoryFile() {
    ::unlink(path.c_str());
    PLIMSOLL_CHECK(fd >= 0 && ::symlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.c_str()) == 0);
  }
  ~MemoryFile() { ::unlink(path.c_str()); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const MemoryFile file;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto header = plimsoll::parse_token_bin(
      bytes.first(std::min<size_t>(size, plimsoll::kTokenBinPrefixBytes)), static_cast<int64_t>(size));
  if (header)
    PLIMSOLL_CHECK(header->num_elements() >= 0 &&
                   header->data_offset + header->num_elements() * header->element_bytes ==
                       static_cast<int64_t>(size));
  PLIMSOLL_CHECK(::ftruncate(file.fd, 0) == 0 &&
                 ::pwrite(file.fd, data, size, 0) == static_cast<ssize_t>(size));
  const auto source = plimsoll::TokenSource::open(file.path, 300);
  PLIMSOLL_CHECK(source.ok() == (header.ok() && header->num_elements() > 0), "two readers disagree");
  if (!source) return 0;
  std::array<std::byte, 16> scratch = {};
  std::vector<int32_t> tokens(static_cast<size_t>(source->num_tokens()));
  if (source->read(0, tokens, scratch))
    for (const int32_t token : tokens) PLIMSOLL_CHECK(token >= 0 && token < 300);
  return 0;
}
