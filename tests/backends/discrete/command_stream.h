// Random programs over buffers in all spaces and all queues, and their right execution: whatever touches what
// another queue's work or the host touches waits for it, and for nothing else. Some stretches are captured
// and replayed.
#pragma once

#include <map>
#include <random>

#include "devices.h"

namespace plimsoll::discrete::fixtures {

struct Command {
  enum class Kind { kAdd, kCopy, kFill, kHostWrite, kBeginCapture, kEndCapture } kind = Kind::kAdd;
  Queue queue = Queue::kCompute;
  size_t to = 0, a = 0, b = 0;
  float value = 0;
  int replays = 0;
};

inline constexpr MemorySpace kBuffers[] = {
    MemorySpace::kDevice,     MemorySpace::kDevice,     MemorySpace::kDevice,       MemorySpace::kDevice,
    MemorySpace::kHostPinned, MemorySpace::kHostPinned, MemorySpace::kHostPageable, MemorySpace::kDisk};
inline constexpr size_t kNumBuffers = std::size(kBuffers), kNumDevice = 4, kNumHost = 3;

/// Determinism: a function of the seed.
inline std::vector<Command> random_commands(unsigned seed, int count) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % n; };
  std::vector<Command> commands;
  bool captures = false;
  for (int i = 0; i < count; ++i) {
    Command c;
    c.queue = kQueues[below(3)];
    c.to = below(kNumBuffers);
    c.a = below(kNumBuffers);
    c.value = static_cast<float>(below(100));
    const size_t sort = below(20);
    if (sort < 7) {
      c.kind = Command::Kind::kAdd;
      c.to = below(kNumDevice), c.a = below(kNumDevice), c.b = below(kNumDevice);
    } else if (sort < 15) {
      c.kind = Command::Kind::kCopy;
      if (c.a == c.to) c.a = (c.a + 1) % kNumBuffers;
    } else if (sort < 17) {
      c.kind = Command::Kind::kFill;
    } else if (sort < 19) {
      if (captures) continue;
      c.kind = Command::Kind::kHostWrite;
      c.to = kNumDevice + below(kNumHost);
    } else {
      c.kind = captures ? Command::Kind::kEndCapture : Command::Kind::kBeginCapture;
      c.replays = static_cast<int>(1 + below(3));
      captures = !captures;
    }
    commands.push_back(c);
  }
  if (captures) commands.push_back({.kind = Command::Kind::kEndCapture, .replays = 2});
  return commands;
}

class CommandRunner {
 public:
  explicit CommandRunner(Device& device) : device_(device), program_(device) {
    for (const MemorySpace space : kBuffers) {
      buffers_.push_back(program_.array(space, kCount));
      PLIMSOLL_CHECK(program_.fill(buffers_.back(), 1, Queue::kCompute).ok());
    }
    PLIMSOLL_CHECK(device.synchronize(Queue::kCompute).ok());
    users_.resize(kNumBuffers);
  }

  /// What the buffers hold in the end.
  std::vector<std::vector<float>> run(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
      switch (command.kind) {
        case Command::Kind::kHostWrite:
          host_write(command);
          break;
        case Command::Kind::kBeginCapture:
          join();
          PLIMSOLL_CHECK(device_.begin_capture().ok());
          break;
        case Command::Kind::kEndCapture:
          replay(command.replays);
          break;
        default:
          issue(command);
      }
    }
    std::vector<std::vector<float>> result;
    for (const auto& buffer : buffers_) result.push_back(program_.read(buffer));
    return result;
  }

 private:
  static constexpr int64_t kCount = 700;
  /// Work that has touched a buffer: its event, and its number among all of its queue.
  struct Use {
    Queue queue;
    runtime::EventId event;
    int number;
  };
  struct Users {
    std::vector<Use> writers, readers;  // the last writer; readers since
  };

  // Events are made beforehand, for none can be made while capturing.
  runtime::EventId next_event() {
    if (free_events_.empty())
      for (int i = 0; i < 64; ++i) free_events_.push_back(device_.make_event());
    const runtime::EventId event = free_events_.back();
    free_events_.pop_back();
    return event;
  }

  void wait_for(const std::vector<Use>& uses, Queue queue) {
    for (const Use& use : uses) {
      int& seen = seen_[{queue, use.queue}];
      if (use.queue == queue || seen >= use.number) continue;
      PLIMSOLL_CHECK(device_.wait(queue, use.event).ok());
      seen = use.number;
    }
  }

  void issue(const Command& c) {
    std::vector<size_t> reads;
    if (c.kind == Command::Kind::kCopy) reads = {c.a};
    if (c.kind == Command::Kind::kAdd) reads = {c.a, c.b};
    for (const size_t r : reads) wait_for(users_[r].writers, c.queue);
    wait_for(users_[c.to].writers, c.queue);
    wait_for(users_[c.to].readers, c.queue);
    const auto& to = buffers_[c.to];
    const Status status = c.kind == Command::Kind::kAdd
                              ? program_.add(to, buffers_[c.a], buffers_[c.b], c.queue)
                          : c.kind == Command::Kind::kCopy ? program_.copy(to, buffers_[c.a], c.queue)
                                                           : program_.fill(to, c.value, c.queue);
    const Use use{c.queue, next_event(), ++issued_};
    PLIMSOLL_CHECK(status.ok() && device_.record(use.event, c.queue).ok());
    for (const size_t r : reads) users_[r].readers.push_back(use);
    users_[c.to] = {{use}, {}};
    last_[c.queue] = use;
  }

  void host_write(const Command& c) {
    for (const auto* uses : {&users_[c.to].writers, &users_[c.to].readers})
      for (const Use& use : *uses) PLIMSOLL_CHECK(device_.synchronize(use.event).ok());
    for (float& value : buffers_[c.to].host()) value = value * 0.5F + c.value;
  }

  /// All queues' work before what kCompute does next; forgets who used what.
  void join() {
    for (const auto& [queue, use] : last_)
      if (queue != Queue::kCompute) PLIMSOLL_CHECK(device_.wait(Queue::kCompute, use.event).ok());
    last_.clear();
    users_.assign(kNumBuffers, {});
    seen_.clear();
    while (free_events_.size() < 512) free_events_.push_back(device_.make_event());
  }

  void replay(int times) {
    join_captured();
    auto graph = device_.end_capture();
    PLIMSOLL_CHECK(graph.ok());
    for (int i = 0; i < times; ++i) PLIMSOLL_CHECK(device_.replay(**graph).ok());
    graphs_.push_back(std::move(*graph));
    // From here on everything is behind the replays.
    const Use use{Queue::kCompute, next_event(), ++issued_};
    PLIMSOLL_CHECK(device_.record(use.event, Queue::kCompute).ok());
    users_.assign(kNumBuffers, {{use}, {}});
    last_ = {{Queue::kCompute, use}};
    seen_.clear();
  }
  void join_captured() {
    for (const auto& [queue, use] : last_)
      if (queue != Queue::kCompute) PLIMSOLL_CHECK(device_.wait(Queue::kCompute, use.event).ok());
  }

  Device& device_;
  Program program_;
  std::vector<Program::Array> buffers_;
  std::vector<Users> users_;
  std::map<std::pair<Queue, Queue>, int>
      seen_;  // the newest work of the second that the first has waited for
  std::map<Queue, Use> last_;
  std::vector<runtime::EventId> free_events_;
  std::vector<std::unique_ptr<runtime::CapturedGraph>> graphs_;
  int issued_ = 0;
};

}  // namespace plimsoll::discrete::fixtures
