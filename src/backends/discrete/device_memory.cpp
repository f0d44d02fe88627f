#include "backends/discrete/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "backends/cpu/cpu_memory.h"
#include "base/check.h"
#include "ir/op_def.h"

namespace plimsoll::discrete {
namespace {

constexpr int64_t kPage = 4096;

size_t mapped_bytes(Bytes bytes) { return static_cast<size_t>(round_up(bytes.count, kPage)); }

// Addresses of several mappings are compared as numbers.
int64_t number(const std::byte* address) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address));
}

/// Null where the system refuses, with errno set.
std::byte* mapped(void* at) { return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at); }

/// Gives the pages now: one that cannot be had is an error here and no signal later. Success where the system
/// is too old to be asked.
bool populate(std::byte* at, Bytes bytes) {
#if defined(MADV_POPULATE_WRITE)
  return madvise(at, mapped_bytes(bytes), MADV_POPULATE_WRITE) == 0 || errno == EINVAL;
#else
  (void)at, (void)bytes;
  return true;
#endif
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  if (plain_ == nullptr) {
    book_->forget(*this);
    if (address_ != nullptr) munmap(address_, mapped_bytes(bytes_));
    if (reach_ != nullptr) munmap(reach_, mapped_bytes(bytes_));
  }
  book_->give_back(bytes_);
}

Status MemoryBook::take(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  if (size_.count > 0 && bytes > size_ - taken_) {
    const Bytes least = taken_ + bytes;
    return Error{ErrorCode::kDoesNotFit,
                 "the device has " + to_string(size_) + ", " + to_string(taken_) + " of it taken; " +
                     to_string(bytes) + " more do not fit",
                 "device memory",
                 "raise runtime.discrete.memory to " + to_string(least) + " (" + std::to_string(least.count) +
                     " bytes), or lower the micro-batch or the sequence length"};
  }
  taken_ += bytes;
  peak_ = std::max(peak_, taken_);
  return Ok{};
}

Bytes MemoryBook::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void MemoryBook::give_back(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  taken_ -= bytes;
}

void MemoryBook::add(const DeviceMemory& mapped_twice) {
  const std::lock_guard lock(mutex_);
  mapped_twice_.push_back(&mapped_twice);
}

void MemoryBook::forget(const DeviceMemory& memory) {
  const std::lock_guard lock(mutex_);
  std::erase(mapped_twice_, &memory);
}

std::byte* MemoryBook::reach(const std::byte* address) const {
  const std::lock_guard lock(mutex_);
  for (const DeviceMemory* memory : mapped_twice_) {
    const int64_t at = number(address) - number(memory->address());
    if (at >= 0 && at < memory->size().count) return memory->reach() + at;
  }
  return nullptr;
}

Result<std::unique_ptr<DeviceMemory>> DevicePool::allocate(Bytes bytes, cpu::ThreadPool& threads) {
  PLIMSOLL_TRY(book_->take(bytes));
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(book_, bytes));
  if (checks_ && bytes.count > 0) {
    PLIMSOLL_TRY(map_twice(*memory));
    return memory;
  }
  PLIMSOLL_ASSIGN(memory->plain_, cpu::allocate_memory(ir::MemorySpace::kDevice, bytes, threads));
  memory->address_ = memory->reach_ = memory->plain_->address();
  return memory;
}

Status DevicePool::map_twice(DeviceMemory& memory) {
  const Bytes bytes = memory.bytes_;
  PLIMSOLL_TRY(cpu::check_available(bytes));
  // No file behind it: limits of file sizes are none of the device's. A length of 0 maps the same pages
  // again.
  memory.reach_ =
      mapped(mmap(nullptr, mapped_bytes(bytes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (memory.reach_ == nullptr) return cpu::refusal_to_reserve(bytes, errno);
  memory.address_ = mapped(mremap(memory.reach_, 0, mapped_bytes(bytes), MREMAP_MAYMOVE));
  if (memory.address_ == nullptr || mprotect(memory.address_, mapped_bytes(bytes), PROT_NONE) != 0 ||
      !populate(memory.reach_, bytes))
    return cpu::refusal_to_reserve(bytes, errno);
  memory.book_->add(memory);
  return Ok{};
}

std::byte* DevicePool::reach(const std::byte* address, const ir::Op& op) const {
  if (address == nullptr) return nullptr;  // an optional operand that is absent
  std::byte* const reach = book_->reach(address);
  PLIMSOLL_CHECK(reach != nullptr,
                 "an operand is no device memory: " + std::string(op.def->name) + " (" + op.layer + ")");
  return reach;
}

runtime::KernelCall DevicePool::reach(const runtime::KernelCall& call,
                                      std::vector<runtime::TensorRef>& operands) const {
  operands.assign(call.inputs.begin(), call.inputs.end());
  operands.insert(operands.end(), call.outputs.begin(), call.outputs.end());
  for (runtime::TensorRef& operand : operands) operand.data = reach(operand.data, *call.op);
  const std::span<const runtime::TensorRef> all(operands);
  const std::span<std::byte> scratch = call.workspace;
  return {call.op, all.first(call.inputs.size()), all.subspan(call.inputs.size()),
          scratch.empty() ? scratch : std::span(reach(scratch.data(), *call.op), scratch.size())};
}

}  // namespace plimsoll::discrete
