// Queues work on a card: kernels on it and on the host, copies and fills.
#include <utility>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/kernel.h"
#include "base/check.h"

namespace plimsoll::cuda {
namespace {

DevicePointer address(const runtime::Location& place) {
  return reinterpret_cast<DevicePointer>(place.memory->address() + place.offset);
}

}  // namespace

/// What a kernel's work is queued on.
class CudaDevice::Queued final : public Stream {
 public:
  Queued(CudaDevice& device, Handle stream) : device_(device), stream_(stream) {}

  [[nodiscard]] int capability() const override { return device_.card_.capability; }
  Status multiply(const Product& product) override { return device_.products_->multiply(product, stream_); }
  bool multiplies(const Product& product) override { return device_.products_->multiplies(product); }
  Status fill(void* data, int64_t bytes, uint32_t pattern) override {
    const auto at = reinterpret_cast<DevicePointer>(data);
    const auto words = static_cast<size_t>(bytes / 4);
    if (words > 0)
      PLIMSOLL_TRY(device_.checked(device_.driver_.set32(at, pattern, words, stream_), "filling memory"));
    for (int64_t i = 4 * static_cast<int64_t>(words); i < bytes; ++i) {
      const auto value = static_cast<unsigned char>(pattern >> (8 * (i % 4)));
      PLIMSOLL_TRY(device_.checked(
          device_.driver_.set8(at + static_cast<DevicePointer>(i), value, 1, stream_), "filling memory"));
    }
    return Ok{};
  }
  Status copy(void* to, const void* from, int64_t bytes) override {
    if (bytes == 0) return Ok{};
    return device_.checked(
        device_.driver_.copy(reinterpret_cast<DevicePointer>(to), reinterpret_cast<DevicePointer>(from),
                             static_cast<size_t>(bytes), stream_),
        "copying");
  }
  Status run_on_host(std::function<void()> work) override {
    return device_.run_on_host(std::move(work), stream_, "queueing work of the host");
  }
  [[nodiscard]] Collectives* collectives() const override { return device_.collectives_.get(); }
  [[nodiscard]] Handle handle() const override { return stream_; }

 protected:
  Status launch_raw(const Function& function, Dim grid, Dim block, uint32_t shared_bytes,
                    const void* arguments) override {
    PLIMSOLL_ASSIGN(Handle handle, device_.modules_.function(function.module, function.defines, function.name,
                                                             shared_bytes));
    void* one[] = {const_cast<void*>(arguments), nullptr};  // the driver copies, and writes nothing
    LaunchAttribute early{.id = kEarlyBegin, .value = 1};
    const LaunchConfig config{.grid_x = grid.x,
                              .grid_y = grid.y,
                              .grid_z = grid.z,
                              .block_x = block.x,
                              .block_y = block.y,
                              .block_z = block.z,
                              .shared_bytes = shared_bytes,
                              .stream = stream_,
                              .attributes = &early,
                              .num_attributes = device_.begins_early_ ? 1U : 0U};
    return device_.checked(device_.driver_.launch(&config, handle, one, nullptr), function.name);
  }

 private:
  CudaDevice& device_;
  Handle stream_;
};

/// Operands live as long as their call's arrays, so that a replay finds them. What runs once is gone when it
/// has: an op-by-op run has as many launches as it has steps.
Status CudaDevice::run_on_host(std::function<void()> work, Handle stream, std::string_view what,
                               const ir::Op* op) {
  std::unique_ptr<HostWork> once;
  HostWork* queued = nullptr;
  if (capturing_) {
    const std::lock_guard lock(host_turn_);
    queued = &captured_.emplace_back(HostWork{std::move(work), true});
  } else {
    once = std::make_unique<HostWork>(HostWork{std::move(work)});
    queued = once.get();
  }
  const auto run = [](void* data) {
    auto* w = static_cast<HostWork*>(data);
    w->run();
    if (!w->is_kept) delete w;
  };
  PLIMSOLL_TRY(checked(driver_.host_function(stream, run, queued), what, op));
  (void)once.release();
  return Ok{};
}

Status CudaDevice::launch_on_host(const runtime::KernelCall& call) {
  if (host_pool_ == nullptr) host_pool_ = std::make_unique<cpu::ThreadPool>(host_threads_);
  // Of ops between ranks the host has those that ask for its rank alone, and no kernel fails.
  const auto run = [pool = host_pool_.get(), work = cpu::Work::launch(call, communicator_)] {
    (void)cpu::run(work, pool);
  };
  return run_on_host(run, stream(ir::Queue::kHost), "launching", call.op);
}

Status CudaDevice::launch_on_card(const runtime::KernelCall& call, ir::Queue queue) {
  const Kernel* kernel = find_kernel(call.op->def->name);
  PLIMSOLL_CHECK(kernel != nullptr, "no CUDA kernel for " + std::string(call.op->def->name));
  Queued stream(*this, this->stream(queue));
  return kernel->run(call, stream);
}

template <typename Queueing>
Status CudaDevice::timed(const runtime::QueueWork& work, Queueing&& queueing) {
  if (!timer_.is_on()) return queueing();
  QueueTimer::Begun begun;
  PLIMSOLL_TRY(checked(log_error_, "timing"));
  PLIMSOLL_TRY(checked(timer_.begin(work, stream(work.queue), capturing_, begun), "timing", work.op));
  PLIMSOLL_TRY(queueing());
  return checked(timer_.end(begun, stream(work.queue), capturing_), "timing", work.op);
}

Status CudaDevice::launch(const runtime::KernelCall& call, ir::Queue queue) {
  if (deferred_ != nullptr) {
    deferred_->exchanges = deferred_->exchanges || call.op->def->traffic != nullptr;
    return defer([this, call, queue] { return launch(call, queue); });
  }
  PLIMSOLL_TRY(use_context());
  Status status = timed({.op = call.op, .queue = queue}, [&] {
    return queue == ir::Queue::kHost ? launch_on_host(call) : launch_on_card(call, queue);
  });
  if (status.ok() && synchronous_ && !capturing_)
    status = checked(driver_.stream_synchronize(this->stream(queue)), "", call.op);
  if (status.ok()) return Ok{};
  Error error = std::move(status).error();
  const std::string name(call.op->def->name);
  return std::move(error).at(call.op->layer.empty() ? name : name + " of " + call.op->layer);
}

Status CudaDevice::copy(runtime::Location destination, runtime::Location source, Bytes bytes, ir::Queue queue,
                        const ir::Op* op) {
  if (bytes.count == 0) return Ok{};
  if (deferred_ != nullptr) return defer([=, this] { return copy(destination, source, bytes, queue, op); });
  PLIMSOLL_TRY(use_context());
  return timed({.op = op, .queue = queue, .is_copy = true, .bytes = bytes.count}, [&] {
    return checked(
        driver_.copy(address(destination), address(source), static_cast<size_t>(bytes.count), stream(queue)),
        "copying", op);
  });
}

Status CudaDevice::fill(runtime::Location destination, Bytes bytes, uint32_t pattern, ir::Queue queue) {
  if (bytes.count == 0) return Ok{};
  if (deferred_ != nullptr) return defer([=, this] { return fill(destination, bytes, pattern, queue); });
  PLIMSOLL_TRY(use_context());
  std::byte* begin = destination.memory->address() + destination.offset;
  return timed({.queue = queue, .bytes = bytes.count}, [&] {
    if (destination.memory->space() != ir::MemorySpace::kHostPageable)
      return Queued(*this, stream(queue)).fill(begin, bytes.count, pattern);
    const cpu::Place place{.data = begin, .space = ir::MemorySpace::kHostPageable};
    // Fills come from several queues, each on its own thread.
    const auto run = [work = cpu::Work::fill(place, bytes, pattern)] { (void)cpu::run(work, nullptr); };
    return run_on_host(run, stream(queue), "filling host memory");
  });
}

}  // namespace plimsoll::cuda
