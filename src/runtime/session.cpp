#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "ir/network_queue.h"

namespace plimsoll::runtime {
namespace {

/// Which a program may read before it has written them.
bool starts_at_zero(ir::StateClass c) {
  return c == ir::StateClass::kOptimizerState || c == ir::StateClass::kScaler ||
         c == ir::StateClass::kCache || c == ir::StateClass::kOutput || c == ir::StateClass::kBuffer;
}

int64_t bytes_of(const passes::SessionState& s) { return s.decl.type.bytes().count; }

}  // namespace

// Parts of the staged states that lie side by side are one copy.
struct Session::Block {
  struct Run {
    int64_t begin = 0, end = 0;  // in the device's block of states
  };
  std::vector<const passes::SessionState*> states;
  std::vector<Run> runs;
};

Session::Session(Device& device, passes::SessionPlan plan) : device_(device), plan_(std::move(plan)) {}

Session::~Session() {
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) (void)device_.synchronize(static_cast<ir::Queue>(q));
}

Result<std::unique_ptr<Session>> Session::create(Device& device, passes::SessionPlan plan,
                                                 const SessionOptions& options) {
  std::unique_ptr<Session> session(new Session(device, std::move(plan)));
  if (options.communicator != nullptr) session->rank_ = options.communicator->rank();
  if (options.communicator != nullptr && !session->plan_.shared.empty())
    session->shared_ = std::make_unique<SharedStates>(*session, *options.communicator);
  PLIMSOLL_TRY(session->take_memory(options));
  PLIMSOLL_TRY(session->fill_states(options.poison));
  for (size_t p = 0; p < session->plan_.programs.size(); ++p) {
    PLIMSOLL_ASSIGN(auto executable,
                    Executable::create(device, session->plan_, p, session->memory_, options.poison));
    session->executables_.push_back(std::move(executable));
  }
  PLIMSOLL_TRY(session->synchronize());
  return session;
}

Status Session::take_memory(const SessionOptions& options) {
  for (size_t s = 0; s < ir::kNumSpaces; ++s) {
    const auto space = static_cast<ir::MemorySpace>(s);
    const passes::PoolBytes& pool = plan_.pools[s];
    const bool is_device = space == ir::MemorySpace::kDevice;
    const auto take = [&](int64_t bytes, std::unique_ptr<Memory>& memory) -> Status {
      if (bytes == 0 && !is_device) return Ok{};
      PLIMSOLL_ASSIGN(memory, device_.allocate(space, Bytes(bytes)));
      return Ok{};
    };
    PLIMSOLL_TRY(take(pool.persistent, memory_.persistent[s]));
    PLIMSOLL_TRY(take(pool.arena, memory_.arena[s]));
    if (options.poison && pool.arena > 0)
      PLIMSOLL_TRY(
          device_.fill({memory_.arena[s].get(), 0}, Bytes(pool.arena), kPoison, ir::Queue::kCompute));
  }
  PLIMSOLL_ASSIGN(staging_, device_.allocate(ir::MemorySpace::kHostPinned, Bytes(plan_.staging_bytes)));
  for (const passes::SessionState& s : plan_.states)
    if (passes::is_staged(s.decl))
      staged_bytes_ = std::max(staged_bytes_, round_up(s.offset + bytes_of(s), passes::kStorageAlignment));
  for (EventId& event : taken_) event = device_.make_event();
  transfer_ = std::make_unique<Transfer>(device_, ir::Queue::kCompute,
                                         Location{staging_.get(), 2 * staged_bytes_}, plan_.transfer_bytes);
  background_ = std::make_unique<Transfer>(
      device_, ir::Queue::kCopyOut, Location{staging_.get(), 2 * staged_bytes_ + 2 * plan_.transfer_bytes},
      plan_.transfer_bytes);
  return Ok{};
}

Status Session::fill_states(bool poison) {
  for (const passes::SessionState& s : plan_.states) {
    const bool zero = starts_at_zero(s.decl.state_class);
    if (!zero && !poison) continue;
    PLIMSOLL_TRY(device_.fill({memory_.persistent[static_cast<size_t>(s.decl.space)].get(), s.offset},
                              Bytes(bytes_of(s)), zero ? 0 : kPoison, ir::Queue::kCompute));
  }
  return Ok{};
}

Status Session::run(int program) {
  Executable& executable = *executables_[static_cast<size_t>(program)];
  if (run_observer_) run_observer_(program);
  if (timing_) return executable.run_timed(measures_memory_, update_gate_);
  PLIMSOLL_TRY(executable.run_to_update());
  if (!executable.updates()) return Ok{};
  if (update_gate_) update_gate_();
  return executable.run_update();
}

Status Session::enable_timing(bool on, bool memory) {
  const bool was_on = std::exchange(timing_, on);
  measures_memory_ = memory;
  return on != was_on && device_.logs_what_it_captures() ? log_queues(on) : Status(Ok{});
}

Status Session::log_queues(bool on) {
  for (size_t q = 0; q < ir::kNumAllQueues; ++q) PLIMSOLL_TRY(device_.synchronize(static_cast<ir::Queue>(q)));
  device_.log_queues(on);
  if (!device_.logs_what_it_captures()) return Ok{};
  for (const auto& executable : executables_) PLIMSOLL_TRY(executable->capture());
  return Ok{};
}

Status Session::run_twice(int program) {
  if (run_observer_) run_observer_(program);
  return executables_[static_cast<size_t>(program)]->run_twice(*transfer_, update_gate_);
}

Status Session::synchronize() { return device_.synchronize(ir::Queue::kCompute); }

const ir::TensorType& Session::type(std::string_view state) const {
  if (const passes::SharedState* shared = plan_.find_shared(state)) return shared->type;
  return held(state).decl.type;
}

const passes::SessionState& Session::held(std::string_view state) const {
  const passes::SharedState* shared = plan_.find_shared(state);
  const passes::SessionState* s =
      shared != nullptr ? &plan_.states[static_cast<size_t>(shared->state)] : plan_.find_state(state);
  PLIMSOLL_CHECK(s != nullptr, std::string(state));
  return *s;
}

Location Session::place(std::string_view state) const {
  const passes::SessionState& s = held(state);
  return {memory_.persistent[static_cast<size_t>(s.decl.space)].get(), s.offset};
}

// ---- blocks

BlockId Session::make_block(const std::vector<std::string_view>& states) {
  Block block;
  for (const std::string_view name : states) {
    const passes::SessionState* s = plan_.find_state(name);
    PLIMSOLL_CHECK(s != nullptr && passes::is_staged(s->decl),
                   "not a state of a block: " + std::string(name));
    block.states.push_back(s);
    block.runs.push_back({s->offset, s->offset + bytes_of(*s)});
  }
  std::sort(block.runs.begin(), block.runs.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<Block::Run> joined;
  for (const Block::Run& run : block.runs)
    if (!joined.empty() && run.begin <= round_up(joined.back().end, passes::kStorageAlignment))
      joined.back().end = run.end;
    else
      joined.push_back(run);
  block.runs = std::move(joined);
  blocks_.push_back(std::move(block));
  return {static_cast<int32_t>(blocks_.size()) - 1};
}

Status Session::begin(BlockId block) {
  PLIMSOLL_CHECK(begun_.index < 0, "a block is begun before the last one is committed");
  begun_ = block;
  slot_ = 1 - slot_;
  return device_.synchronize(taken_[slot_]);
}

std::span<std::byte> Session::staged(BlockId id, size_t state) {
  const Block& block = blocks_[static_cast<size_t>(id.index)];
  const passes::SessionState& s = *block.states[state];
  const int64_t at = static_cast<int64_t>(slot_) * staged_bytes_ + s.offset;
  return staging_->host().subspan(static_cast<size_t>(at), static_cast<size_t>(bytes_of(s)));
}

Status Session::commit(BlockId id) {
  PLIMSOLL_CHECK(begun_.index == id.index, "a block is committed that was not begun");
  begun_ = {};
  const Block& block = blocks_[static_cast<size_t>(id.index)];
  const Memory* device = memory_.persistent[static_cast<size_t>(ir::MemorySpace::kDevice)].get();
  for (const Block::Run& run : block.runs)
    PLIMSOLL_TRY(device_.copy({device, run.begin},
                              {staging_.get(), static_cast<int64_t>(slot_) * staged_bytes_ + run.begin},
                              Bytes(run.end - run.begin), ir::Queue::kCompute));
  return device_.record(taken_[slot_], ir::Queue::kCompute);
}

// ---- anything else

std::unique_lock<std::mutex> Session::lock_transfer(const Location& at) const {
  return at.memory->host().empty() ? std::unique_lock(transfer_mutex_) : std::unique_lock<std::mutex>();
}

/// What of a range of the tensor this rank has, where it lies in its memory.
OwnRange Session::own(std::string_view state, int64_t offset, int64_t bytes) const {
  const passes::SharedState* shared = plan_.find_shared(state);
  return shared == nullptr ? OwnRange{0, offset, bytes} : own_range(plan_, *shared, rank_, offset, bytes);
}

Status Session::read_pieces(std::string_view state, int64_t offset, int64_t bytes,
                            const TakePiece& take) const {
  const Location at = place(state);
  const OwnRange range = own(state, offset, bytes);
  if (range.bytes == 0) return Ok{};
  const auto lock = lock_transfer(at);
  const TakePiece behind = [&](std::span<const std::byte> piece, int64_t begin) {
    return take(piece, range.skipped + begin);
  };
  return transfer_->read({at.memory, at.offset + range.offset}, range.bytes,
                         range.skipped == 0 ? take : behind);
}

Status Session::write_pieces(std::string_view state, int64_t offset, int64_t bytes, const FillPiece& fill) {
  const Location at = place(state);
  const OwnRange range = own(state, offset, bytes);
  if (range.bytes == 0) return Ok{};
  const auto lock = lock_transfer(at);
  const FillPiece behind = [&](std::span<std::byte> piece, int64_t begin) {
    return fill(piece, range.skipped + begin);
  };
  return transfer_->write({at.memory, at.offset + range.offset}, range.bytes,
                          range.skipped == 0 ? fill : behind);
}

Status Session::serve_shared_states() { return shared_ == nullptr ? Status(Ok{}) : shared_->serve(); }
Status Session::end_shared_reads() { return shared_ == nullptr ? Status(Ok{}) : shared_->end(); }

Status Session::write(std::string_view state, std::span<const std::byte> bytes, int64_t offset) {
  PLIMSOLL_CHECK(offset + static_cast<int64_t>(bytes.size()) <= type(state).bytes().count,
                 std::string(state));
  return write_pieces(state, offset, static_cast<int64_t>(bytes.size()),
                      [&](std::span<std::byte> piece, int64_t at) -> Status {
                        std::memcpy(piece.data(), bytes.data() + at, piece.size());
                        return Ok{};
                      });
}

Status Session::read(std::string_view state, std::span<std::byte> bytes, int64_t offset) const {
  PLIMSOLL_CHECK(offset + static_cast<int64_t>(bytes.size()) <= type(state).bytes().count &&
                     plan_.find_shared(state) == nullptr,
                 std::string(state));
  return read_pieces(state, offset, static_cast<int64_t>(bytes.size()),
                     [&](std::span<const std::byte> piece, int64_t at) -> Status {
                       std::memcpy(bytes.data() + at, piece.data(), piece.size());
                       return Ok{};
                     });
}

std::span<const std::byte> Session::host_bytes(std::string_view state) const {
  const Location at = place(state);
  const std::span<std::byte> host = at.memory->host();
  if (host.empty()) return {};
  return host.subspan(static_cast<size_t>(at.offset), static_cast<size_t>(bytes_of(held(state))));
}

Status Session::fill(std::string_view state, uint32_t pattern) {
  return device_.fill(place(state), Bytes(bytes_of(held(state))), pattern, ir::Queue::kCompute);
}

const std::vector<TimedOp>& Session::timed_ops(int program) const {
  return executables_[static_cast<size_t>(program)]->timed_ops();
}

// ---- beside programs

BackgroundReader::BackgroundReader(Session& session)
    : session_(session), marked_(session.device_.make_event()) {}

Status BackgroundReader::mark() {
  PLIMSOLL_TRY(session_.device_.record(marked_, ir::Queue::kCompute));
  return session_.device_.wait(ir::Queue::kCopyOut, marked_);
}

Status BackgroundReader::read(std::string_view state, int64_t offset, int64_t bytes, const TakePiece& take) {
  if (session_.shared_ != nullptr && session_.plan_.find_shared(state) != nullptr)
    return session_.shared_->read(state, offset, bytes, take);
  const Location at = session_.place(state);
  return session_.background_->read({at.memory, at.offset + offset}, bytes, take);
}

}  // namespace plimsoll::runtime
