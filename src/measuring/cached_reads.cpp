#include "measuring/cached_reads.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/process.h"
#include "io/descriptor.h"
#include "io/file.h"

namespace plimsoll::measuring {
namespace {

constexpr size_t kBlock = 1 << 20;
constexpr int kBlocks = 32, kRounds = 4;

}  // namespace

Result<double> cached_read_bandwidth(const std::string& folder) {
  const io::Descriptor file(::open(folder.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file.is_open()) return 0.0;
  std::vector<char> block(kBlock, 'x');
  const auto whole = [&](auto&& call, off_t offset) {
    for (size_t done = 0; done < kBlock;) {
      const ssize_t n =
          call(file.get(), block.data() + done, kBlock - done, offset + static_cast<off_t>(done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      done += static_cast<size_t>(n);
    }
    return true;
  };
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {  // the first fills the cache
    const double start = now_seconds();
    for (int i = 0; i < kBlocks; ++i) {
      const off_t offset = static_cast<off_t>(kBlock) * i;
      if (!(round == 0 ? whole(::pwrite, offset) : whole(::pread, offset)))
        return io::io_error("cannot measure the disk", folder, errno);
    }
    if (round > 0) best = std::max(best, static_cast<double>(kBlock) * kBlocks / (now_seconds() - start));
  }
  return best;
}

}  // namespace plimsoll::measuring
