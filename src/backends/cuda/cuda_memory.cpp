#include "backends/cuda/cuda_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/machine_memory.h"

namespace plimsoll::cuda {
namespace {

struct Owner {
  const Driver& driver;
  Handle context;
  std::shared_ptr<DeviceMemoryCount> count;
};

class CudaMemory final : public runtime::Memory {
 public:
  CudaMemory(Owner owner, ir::MemorySpace space, std::byte* data, int64_t bytes)
      : owner_(std::move(owner)), space_(space), data_(data), bytes_(bytes) {
    if (space == ir::MemorySpace::kDevice) owner_.count->add(bytes);
  }
  ~CudaMemory() override {
    if (space_ == ir::MemorySpace::kDevice) owner_.count->add(-bytes_);
    if (data_ == nullptr) return;
    owner_.driver.context_set(owner_.context);
    if (space_ == ir::MemorySpace::kDevice)
      owner_.driver.memory_free(reinterpret_cast<DevicePointer>(data_));
    else if (space_ == ir::MemorySpace::kHostPinned)
      owner_.driver.host_free(data_);
    else
      munmap(data_, static_cast<size_t>(bytes_));
  }
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  [[nodiscard]] ir::MemorySpace space() const override { return space_; }
  [[nodiscard]] Bytes size() const override { return Bytes(bytes_); }
  [[nodiscard]] std::byte* address() const override { return data_; }
  [[nodiscard]] std::span<std::byte> host() const override {
    if (space_ == ir::MemorySpace::kDevice) return {};
    return {data_, static_cast<size_t>(bytes_)};
  }

 private:
  Owner owner_;
  ir::MemorySpace space_;
  std::byte* data_;
  int64_t bytes_;
};

Error refusal(ir::MemorySpace space, Bytes bytes, const std::string& why) {
  const bool device = space == ir::MemorySpace::kDevice;
  return {
      ErrorCode::kIo, "cannot reserve " + to_string(bytes) + ": " + why,
      device ? "memory of the card" : "host memory",
      device
          ? "lower memory.device_budget, the micro-batch or the sequence length, or free memory on the card"
          : "lower the memory budget, the micro-batch or the sequence length, or free memory on this "
            "machine"};
}

Status check_host(ir::MemorySpace space, Bytes bytes) {
  const int64_t available = read_machine_memory().available_bytes;
  if (bytes.count <= available) return Ok{};
  return refusal(space, bytes, "only " + to_string(Bytes(available)) + " are available");
}

Result<void*> take(const Driver& driver, ir::MemorySpace space, Bytes bytes) {
  const auto size = static_cast<size_t>(bytes.count);
  if (space == ir::MemorySpace::kDevice) {
    DevicePointer at = 0;
    const int error = driver.memory_allocate(&at, size);
    if (error != 0) return refusal(space, bytes, error_text(driver, error));
    return reinterpret_cast<void*>(at);
  }
  PLIMSOLL_TRY(check_host(space, bytes));
  void* at = nullptr;
  if (space == ir::MemorySpace::kHostPinned) {
    const int error = driver.host_allocate(&at, size, 0);
    if (error != 0) return refusal(space, bytes, error_text(driver, error));
    return at;
  }
  at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return refusal(space, bytes, std::strerror(errno));
  return at;
}

}  // namespace

Result<std::unique_ptr<runtime::Memory>> allocate_memory(const Driver& driver, Handle context,
                                                         ir::MemorySpace space, Bytes bytes,
                                                         const std::shared_ptr<DeviceMemoryCount>& count) {
  PLIMSOLL_CHECK(bytes.count >= 0);
  if (space == ir::MemorySpace::kDisk)
    return Error{ErrorCode::kInvalidArgument, "there is no memory on the disk beside a card",
                 "runtime.device", "leave memory.offload to the host"};
  void* data = nullptr;
  if (bytes.count > 0) {
    PLIMSOLL_ASSIGN(data, take(driver, space, bytes));
  }
  return std::unique_ptr<runtime::Memory>(std::make_unique<CudaMemory>(
      Owner{driver, context, count}, space, static_cast<std::byte*>(data), bytes.count));
}

}  // namespace plimsoll::cuda
