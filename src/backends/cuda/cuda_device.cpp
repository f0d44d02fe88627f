#include "backends/cuda/cuda_device.h"

#include <cstdlib>
#include <utility>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/kernel.h"
#include "backends/cuda/product_tuning.h"
#include "backends/cuda/rehearsal.h"
#include "base/check.h"

namespace plimsoll::cuda {
namespace {

constexpr ir::Queue kOtherQueues[] = {ir::Queue::kCopyIn, ir::Queue::kCopyOut, ir::Queue::kHost,
                                      ir::kNetworkQueue};
static_assert(std::size(kOtherQueues) + 1 == ir::kNumAllQueues);

DevicePointer address(const runtime::Location& place) {
  return reinterpret_cast<DevicePointer>(place.memory->address() + place.offset);
}

}  // namespace

/// What was captured, and the host's part of it, which replays come back to.
class CudaDevice::Graph final : public runtime::CapturedGraph {
 public:
  Graph(const Driver& driver, Handle context, Handle stream, Handle executable,
        std::deque<HostWork> host_work, std::shared_ptr<CapturedTimes> times)
      : driver_(driver),
        context_(context),
        stream_(stream),
        executable_(executable),
        host_work_(std::move(host_work)),
        times_(std::move(times)) {}
  ~Graph() override {
    driver_.context_set(context_);
    driver_.stream_synchronize(stream_);
    driver_.graph_executable_destroy(executable_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  [[nodiscard]] Handle executable() const { return executable_; }
  /// Null where queues were not logged when it was captured.
  [[nodiscard]] const std::shared_ptr<CapturedTimes>& times() const { return times_; }

 private:
  const Driver& driver_;
  Handle context_, stream_, executable_;
  const std::deque<HostWork> host_work_;  // moved here as a whole: its elements stay where they are
  const std::shared_ptr<CapturedTimes> times_;
};

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
    return device_.checked(device_.driver_.launch(handle, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                                  shared_bytes, stream_, one, nullptr),
                           function.name);
  }

 private:
  CudaDevice& device_;
  Handle stream_;
};

CudaDevice::CudaDevice(const Api& api, const CardInfo& card, const CudaOptions& options)
    : api_(api),
      driver_(api.driver),
      card_(card),
      target_(card.capability, options.memory, options.host_threads),
      synchronous_(std::getenv("PLIMSOLL_CUDA_SYNCHRONOUS") != nullptr),
      modules_(api.driver, api.compiler, card.capability, !options.compiles_within),
      communicator_(options.communicator),
      host_threads_(options.host_threads),
      timer_(api.driver),
      count_(std::make_shared<DeviceMemoryCount>()) {}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const CudaOptions& options) {
  PLIMSOLL_ASSIGN(const Api* api, load_api());
  PLIMSOLL_ASSIGN(const int device, device_of(api->driver, options.ordinal));
  PLIMSOLL_ASSIGN(const CardInfo card, describe_card(api->driver, device));
  std::unique_ptr<CudaDevice> made(new CudaDevice(*api, card, options));
  made->device_ = device;
  PLIMSOLL_TRY(made->start(options));
  if (options.communicator != nullptr) PLIMSOLL_TRY(made->take_ranks(options));
  return made;
}

Status CudaDevice::start(const CudaOptions& options) {
  // Before there is a context or a thread, because it may be done in a child process.
  if (!options.compiles_within)
    PLIMSOLL_TRY(modules_.find_images(
        options.programs.empty() ? plain_modules() : modules_of(options.programs, card_.capability)));
  PLIMSOLL_TRY(checked(driver_.context_retain(&context_, device_), "making a context"));
  PLIMSOLL_TRY(use_context());
  for (Handle& queue : streams_)
    PLIMSOLL_TRY(checked(driver_.stream_create(&queue, kNonBlocking), "making a queue"));
  PLIMSOLL_TRY(checked(driver_.event_create(&fork_, kNoTiming), "making an event"));
  for (Handle& join : joins_)
    PLIMSOLL_TRY(checked(driver_.event_create(&join, kNoTiming), "making an event"));
  PLIMSOLL_TRY(modules_.load());
  PLIMSOLL_ASSIGN(Products products, Products::create(api_.blas));
  if (!options.products.empty()) {
    PLIMSOLL_ASSIGN(const ProductChoices choices, parse_choices(options.products));
    products.choose(choices);
  }
  products_.emplace(std::move(products));
  return Ok{};
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  driver_.context_set(context_);
  collectives_.reset();  // ends what waits for ranks that are lost
  for (const Handle queue : streams_)
    if (queue != nullptr) driver_.stream_synchronize(queue);
  products_.reset();
  rank_staging_.reset();
  modules_.unload();
  (void)timer_.log(false, nullptr);
  for (const Event& event : events_)
    for (const Handle handle : {event.outside, event.within})
      if (handle != nullptr) driver_.event_destroy(handle);
  if (fork_ != nullptr) driver_.event_destroy(fork_);
  for (const Handle join : joins_)
    if (join != nullptr) driver_.event_destroy(join);
  for (const Handle queue : streams_)
    if (queue != nullptr) driver_.stream_destroy(queue);
  driver_.context_release(device_);
}

Status CudaDevice::checked(int error, std::string_view what, const ir::Op* op) const {
  if (error == 0) return Ok{};
  std::string where = op == nullptr ? std::string(what) : std::string(op->def->name);
  if (op != nullptr && !op->layer.empty()) where += " of " + op->layer;
  return Error{ErrorCode::kIo, error_text(driver_, error), where + " on " + card_.name};
}

/// Every call begins so, and brings the error of an earlier exchange.
Status CudaDevice::use_context() const {
  PLIMSOLL_TRY(exchanged());
  return checked(driver_.context_set(context_), "using the context");
}

Status CudaDevice::exchanged() const {
  return collectives_ == nullptr ? Status(Ok{}) : collectives_->status();
}

Bytes CudaDevice::peak_memory() const {
  const std::lock_guard lock(count_->turn);
  return Bytes(count_->peak);
}

Result<std::unique_ptr<runtime::Memory>> CudaDevice::allocate(ir::MemorySpace space, Bytes bytes) {
  PLIMSOLL_TRY(use_context());
  return allocate_memory(driver_, context_, space, bytes, count_);
}

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

Result<std::string> CudaDevice::tune_products(std::span<const ir::Graph* const> programs) {
  PLIMSOLL_TRY(use_context());
  PLIMSOLL_ASSIGN(const ProductChoices choices,
                  cuda::tune_products(driver_, api_.blas, *products_, products_of(programs, card_.capability),
                                      stream(ir::Queue::kCompute)));
  return choices_text(choices);
}

void CudaDevice::log_queues(bool on) {
  log_error_ = driver_.context_set(context_);
  if (log_error_ == 0) log_error_ = timer_.log(on, stream(ir::Queue::kCompute));
}

std::vector<runtime::QueueWork> CudaDevice::take_queue_log() {
  if (!use_context().ok()) return {};
  return timer_.take();
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

runtime::EventId CudaDevice::make_event() {
  PLIMSOLL_CHECK(!capturing_, "make_event while capturing");
  Event event;  // one that is refused says so when it is used
  event.error = driver_.context_set(context_);
  for (Handle* handle : {&event.outside, &event.within})
    if (event.error == 0) event.error = driver_.event_create(handle, kNoTiming);
  const std::lock_guard lock(events_turn_);
  events_.push_back(event);
  return {static_cast<int32_t>(events_.size()) - 1};
}

Status CudaDevice::record(runtime::EventId event, ir::Queue queue) {
  if (deferred_ != nullptr) return defer([=, this] { return record(event, queue); });
  PLIMSOLL_TRY(use_context());
  const std::lock_guard lock(events_turn_);
  Event& e = events_[static_cast<size_t>(event.index)];
  PLIMSOLL_TRY(checked(e.error, "making an event"));
  if (capturing_)
    e.capture = captures_;
  else
    e.recorded = true;
  return checked(driver_.event_record(capturing_ ? e.within : e.outside, stream(queue)),
                 "recording an event");
}

Status CudaDevice::wait(ir::Queue queue, runtime::EventId event) {
  if (deferred_ != nullptr) return defer([=, this] { return wait(queue, event); });
  PLIMSOLL_TRY(use_context());
  const std::lock_guard lock(events_turn_);
  const Event& e = events_[static_cast<size_t>(event.index)];
  const bool stands = capturing_ ? e.capture == captures_ : e.recorded;
  if (!stands) return Ok{};
  return checked(driver_.stream_wait(stream(queue), capturing_ ? e.within : e.outside, 0),
                 "waiting for an event");
}

Status CudaDevice::synchronize(ir::Queue queue) {
  PLIMSOLL_CHECK(!capturing_, "synchronize while capturing");
  PLIMSOLL_TRY(use_context());
  constexpr std::string_view kNames[] = {"the queue compute", "the queue copy_in", "the queue copy_out",
                                         "the queue host", "the queue network"};
  return wait_for(driver_.stream_synchronize, driver_.stream_query, stream(queue),
                  kNames[static_cast<size_t>(queue)]);
}

Status CudaDevice::synchronize(runtime::EventId event) {
  PLIMSOLL_CHECK(!capturing_, "synchronize while capturing");
  PLIMSOLL_TRY(use_context());
  Handle handle = nullptr;
  {
    const std::lock_guard lock(events_turn_);
    const Event& e = events_[static_cast<size_t>(event.index)];
    if (!e.recorded) return Ok{};
    handle = e.outside;
  }
  return wait_for(driver_.event_synchronize, driver_.event_query, handle, "waiting for an event");
}

/// Every queue is a part of what is captured, from its begin to its end.
int CudaDevice::join_capture() const {
  int error = driver_.event_record(fork_, stream(ir::Queue::kCompute));
  for (const ir::Queue queue : kOtherQueues)
    if (error == 0) error = driver_.stream_wait(stream(queue), fork_, 0);
  return error;
}

/// Whatever has failed within it, the capture is over: `error`, or the one of its end.
int CudaDevice::leave_capture(int error, Handle* graph) {
  const int ended = driver_.capture_end(stream(ir::Queue::kCompute), graph);
  capturing_ = false;
  return error != 0 ? error : ended;
}

Status CudaDevice::begin_capture() {
  PLIMSOLL_CHECK(!capturing_ && deferred_ == nullptr, "begin_capture while capturing");
  if (defers_) {
    deferred_ = std::make_shared<DeferredCapture>();
    return Ok{};
  }
  PLIMSOLL_TRY(use_context());
  PLIMSOLL_TRY(checked(driver_.capture_begin(stream(ir::Queue::kCompute), kCaptureRelaxed), "capturing"));
  capturing_ = true;
  ++captures_;
  captured_.clear();
  const int error = join_capture();
  if (error == 0) return Ok{};
  Handle graph = nullptr;
  (void)leave_capture(error, &graph);
  if (graph != nullptr) driver_.graph_destroy(graph);
  return checked(error, "capturing");
}

Result<std::unique_ptr<runtime::CapturedGraph>> CudaDevice::end_capture() {
  if (deferred_ != nullptr) {
    all_deferred_.push_back(deferred_);
    return std::unique_ptr<runtime::CapturedGraph>(
        std::make_unique<DeferredGraph>(std::exchange(deferred_, nullptr)));
  }
  PLIMSOLL_CHECK(capturing_, "end_capture without begin_capture");
  int error = driver_.context_set(context_);
  for (const ir::Queue queue : kOtherQueues) {
    const Handle join = joins_[static_cast<size_t>(queue)];
    if (error == 0) error = driver_.event_record(join, stream(queue));
    if (error == 0) error = driver_.stream_wait(stream(ir::Queue::kCompute), join, 0);
  }
  Handle graph = nullptr, executable = nullptr;
  error = leave_capture(error, &graph);
  std::shared_ptr<CapturedTimes> times = timer_.take_captured();
  if (error == 0) error = driver_.graph_instantiate(&executable, graph, 0);
  if (graph != nullptr) driver_.graph_destroy(graph);
  PLIMSOLL_TRY(checked(error, "capturing"));
  return std::unique_ptr<runtime::CapturedGraph>(
      std::make_unique<Graph>(driver_, context_, stream(ir::Queue::kCompute), executable,
                              std::exchange(captured_, {}), std::move(times)));
}

Status CudaDevice::replay(const runtime::CapturedGraph& graph) {
  PLIMSOLL_CHECK(!capturing_ && deferred_ == nullptr, "replay while capturing");
  if (const auto* deferred = dynamic_cast<const DeferredGraph*>(&graph)) {
    PLIMSOLL_TRY(connect_for(deferred->capture()));
    return replay(*deferred->capture().made);
  }
  PLIMSOLL_TRY(use_context());
  const auto& captured = static_cast<const Graph&>(graph);
  const Handle compute = stream(ir::Queue::kCompute);
  if (timer_.is_on() && captured.times() != nullptr)
    PLIMSOLL_TRY(checked(timer_.before_replay(captured.times(), compute), "replaying"));
  return checked(driver_.graph_launch(captured.executable(), compute), "replaying");
}

}  // namespace plimsoll::cuda
