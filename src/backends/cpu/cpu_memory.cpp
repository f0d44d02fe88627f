#include "backends/cpu/cpu_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/machine_memory.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kPage = 4096;
constexpr int64_t kHugePage = 2 << 20;

class CpuMemory final : public runtime::Memory {
 public:
  CpuMemory(ir::MemorySpace space, std::byte* data, int64_t bytes)
      : space_(space), data_(data), bytes_(bytes) {}
  ~CpuMemory() override {
    if (data_ != nullptr) munmap(data_, static_cast<size_t>(round_up(bytes_, kPage)));
  }
  CpuMemory(const CpuMemory&) = delete;
  CpuMemory& operator=(const CpuMemory&) = delete;

  [[nodiscard]] ir::MemorySpace space() const override { return space_; }
  [[nodiscard]] Bytes size() const override { return Bytes(bytes_); }
  [[nodiscard]] std::byte* address() const override { return data_; }
  [[nodiscard]] std::span<std::byte> host() const override { return {data_, static_cast<size_t>(bytes_)}; }

 private:
  ir::MemorySpace space_;
  std::byte* data_;
  int64_t bytes_;
};

Error refusal(Bytes bytes, const std::string& why) {
  return {ErrorCode::kIo, "cannot reserve " + to_string(bytes) + ": " + why, "host memory",
          "lower the memory budget, the micro-batch or the sequence length, or free memory on this machine"};
}

// Memory is touched when it is reserved, so that no page fault comes later and a refusal comes at once. For
// measurements of how much of it a run really writes, PLIMSOLL_UNTOUCHED=1 leaves that to the run: the
// resident memory is then the pages written.
bool is_touched() {
  const char* untouched = std::getenv("PLIMSOLL_UNTOUCHED");
  return untouched == nullptr || *untouched == '\0' || *untouched == '0';
}

// A mapping whose first byte lies on a huge page's boundary: map more, give back both ends.
std::byte* map_aligned(int64_t length) {
  const int64_t mapped = length + kHugePage;
  void* raw =
      mmap(nullptr, static_cast<size_t>(mapped), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(raw);
  const int64_t skip = round_up(static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin)), kHugePage) -
                       static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin));
  if (skip > 0) munmap(begin, static_cast<size_t>(skip));
  if (mapped - skip - length > 0) munmap(begin + skip + length, static_cast<size_t>(mapped - skip - length));
  return begin + skip;
}

}  // namespace

Status check_available(Bytes bytes) {
  const int64_t available = read_machine_memory().available_bytes;
  if (bytes.count <= available) return Ok{};
  return refusal(bytes, "only " + to_string(Bytes(available)) + " are available");
}

Error refusal_to_reserve(Bytes bytes, int error) { return refusal(bytes, std::strerror(error)); }

Result<std::unique_ptr<runtime::Memory>> allocate_memory(ir::MemorySpace space, Bytes bytes,
                                                         ThreadPool& pool) {
  PLIMSOLL_CHECK(bytes.count >= 0);
  if (bytes.count == 0)
    return std::unique_ptr<runtime::Memory>(std::make_unique<CpuMemory>(space, nullptr, 0));
  PLIMSOLL_TRY(check_available(bytes));
  const int64_t length = round_up(bytes.count, kPage);
  std::byte* data = map_aligned(length);
  if (data == nullptr) return refusal_to_reserve(bytes, errno);
  if (!is_touched()) {
    madvise(data, static_cast<size_t>(length), MADV_NOHUGEPAGE);
    return std::unique_ptr<runtime::Memory>(std::make_unique<CpuMemory>(space, data, bytes.count));
  }
  madvise(data, static_cast<size_t>(length), MADV_HUGEPAGE);  // a wish: small pages will do
  pool.run(ceil_div(length, kHugePage), [&](int64_t tile, int) {
    const int64_t end = std::min(length, (tile + 1) * kHugePage);
    for (int64_t at = tile * kHugePage; at < end; at += kPage)
      *static_cast<volatile std::byte*>(data + at) = std::byte{0};
  });
  return std::unique_ptr<runtime::Memory>(std::make_unique<CpuMemory>(space, data, bytes.count));
}

}  // namespace plimsoll::cpu
