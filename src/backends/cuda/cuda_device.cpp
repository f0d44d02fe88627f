#include "backends/cuda/cuda_device.h"

#include <cstdlib>
#include <utility>

#include "backends/cuda/cuda_memory.h"
#include "backends/cuda/product_tuning.h"
#include "backends/cuda/rehearsal.h"
#include "base/check.h"

namespace plimsoll::cuda {
namespace {

constexpr ir::Queue kOtherQueues[] = {ir::Queue::kCopyIn, ir::Queue::kCopyOut, ir::Queue::kHost,
                                      ir::kNetworkQueue};
static_assert(std::size(kOtherQueues) + 1 == ir::kNumAllQueues);

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
  begins_early_ = can_begin_early();
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

/// The card, its kernels' code and the driver, within graphs too. Where each launch is waited for there is
/// nothing to gain.
bool CudaDevice::can_begin_early() const {
  constexpr int kDriver = 12030, kCapability = 90;
  int version = 0;
  return !synchronous_ && driver_.version(&version) == 0 && version >= kDriver &&
         compiled_capability(api_.compiler, card_.capability) >= kCapability;
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
