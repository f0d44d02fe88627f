#include "runtime/communicator.h"

#include <algorithm>
#include <array>

namespace plimsoll::runtime {

Status Communicator::broadcast(int root, std::span<std::byte> bytes) {
  std::array<std::byte, size_t{64} << 10> all;
  const auto count = static_cast<size_t>(ranks());
  const size_t most = std::max<size_t>(1, all.size() / count);
  for (std::span<std::byte> rest = bytes; !rest.empty();) {
    const auto part = rest.first(std::min(rest.size(), most));
    PLIMSOLL_TRY(gather(part, std::span(all).first(part.size() * count)));
    std::ranges::copy(std::span(all).subspan(static_cast<size_t>(root) * part.size(), part.size()),
                      part.begin());
    rest = rest.subspan(part.size());
  }
  return Ok{};
}

}  // namespace plimsoll::runtime
