// Streams, events, captures and graphs of the fake driver. Work runs when somebody waits for it, or earlier:
// streams go on in an order that is drawn, and the nodes of a graph in any order that their dependencies
// leave (PLIMSOLL_FAKE_CUDA_SEED draws another). What is ordered by luck alone on a card shows here. The
// card's clock, which events read, is no real one: each piece of work begins when what it waits for has ended
// and takes what its size says, so that streams run beside each other and no order of the host's shows.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "backends/cuda/twin/kernel.h"
#include "driver.h"

namespace fake {
namespace {

/// Does it, begun at that second of the card's clock; when it ends.
using Work = std::function<double(double start)>;

struct Node {
  Work work;
  std::vector<size_t> after;
};
struct Graph {
  std::vector<Node> nodes;
};
struct Stream;
struct Capture {
  Graph graph;
  std::set<Stream*> streams;  // all but the one that began it
};

struct Line;
/// What a stream does next: work, or the wait for another's `count` items.
struct Item {
  Work work;
  std::shared_ptr<Line> other = nullptr;
  size_t count = 0;
};
/// A stream's queue, which events go on to name when the stream is gone.
struct Line {
  std::deque<Item> items;
  size_t queued = 0, done = 0;
  std::vector<double> ends = {};  // of what is done, by the card's clock
  [[nodiscard]] double end(size_t count) const { return count == 0 ? 0 : ends[count - 1]; }
};
struct Stream {
  std::shared_ptr<Line> line = std::make_shared<Line>();
  // While it is captured: the nodes that the next one comes after, and whether another stream of the capture
  // has waited for what it did last.
  Capture* capture = nullptr;
  std::vector<size_t> ends;
  size_t steps = 0;
  bool is_joined = true;
};
struct Event {
  std::shared_ptr<Line> line = nullptr;
  size_t count = 0;
  Capture* capture = nullptr;  // within which it was recorded last
  Stream* stream = nullptr;
  std::vector<size_t> ends;
  size_t steps = 0;
  std::shared_ptr<double> time = nullptr;  // of a timed one: below 0 until it was reached
};
constexpr double kNever = -1;

std::vector<std::shared_ptr<Line>> lines;  // with items

bool can_go_on(const Line& line) {
  if (line.items.empty()) return false;
  const Item& item = line.items.front();
  return item.other == nullptr || item.other->done >= item.count;
}

/// One item of a stream that can go on, drawn. False: there is none.
bool step() {
  std::erase_if(lines, [](const auto& line) { return line->items.empty(); });
  std::vector<Line*> able;
  for (const auto& line : lines)
    if (can_go_on(*line)) able.push_back(line.get());
  if (able.empty()) return false;
  Line& line = *able[twin::drawn(static_cast<unsigned>(able.size()))];
  const Item item = std::move(line.items.front());
  line.items.pop_front();
  const double start = line.end(line.done);
  line.ends.push_back(item.work ? item.work(start) : std::max(start, item.other->end(item.count)));
  ++line.done;
  return true;
}

void finish(const std::shared_ptr<Line>& line, size_t count) {
  while (line->done < count)
    if (!step()) {
      std::fprintf(stderr, "fake driver: streams wait for each other\n");
      std::abort();
    }
}

void push(const std::shared_ptr<Line>& line, Item item) {
  if (line->items.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  line->items.push_back(std::move(item));
  ++line->queued;
  for (unsigned early = twin::drawn(3); early > 0; --early) step();
}

size_t add_node(Stream& stream, Work work) {
  std::vector<Node>& nodes = stream.capture->graph.nodes;
  nodes.push_back({std::move(work), stream.ends});
  stream.ends = {nodes.size() - 1};
  ++stream.steps;
  stream.is_joined = false;
  return nodes.size() - 1;
}

double run(const Graph& graph, double start) {
  std::vector<double> starts(graph.nodes.size(), start);
  double last = start;
  std::vector<size_t> waits(graph.nodes.size()), able;
  std::vector<std::vector<size_t>> next(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    waits[n] = graph.nodes[n].after.size();
    for (const size_t before : graph.nodes[n].after) next[before].push_back(n);
    if (waits[n] == 0) able.push_back(n);
  }
  while (!able.empty()) {
    std::swap(able[twin::drawn(static_cast<unsigned>(able.size()))], able.back());
    const size_t n = able.back();
    able.pop_back();
    const double end = graph.nodes[n].work(starts[n]);
    last = std::max(last, end);
    for (const size_t after : next[n]) {
      starts[after] = std::max(starts[after], end);
      if (--waits[after] == 0) able.push_back(after);
    }
  }
  return last;
}

/// Writes down when the event was reached, in memory that outlives the event.
Work stamp(const Event& event) {
  return [time = event.time](double start) {
    if (time != nullptr) *time = start;
    return start;
  };
}

/// The stream's next comes behind the event's, too; it belongs to that capture from now on.
void join(Stream& stream, const Event& event) {
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.ends.clear();
    stream.is_joined = false;
    event.capture->streams.insert(&stream);
  } else if (event.stream != &stream && event.stream->steps == event.steps) {
    event.stream->is_joined = true;
  }
  std::set<size_t> ends(stream.ends.begin(), stream.ends.end());
  ends.insert(event.ends.begin(), event.ends.end());
  stream.ends.assign(ends.begin(), ends.end());
}

}  // namespace

std::string& loss() {
  static std::string words;
  return words;
}
int lost() { return loss().empty() ? kOk : kLaunchFailed; }

namespace {

int queue_work(Handle handle, Work work) {
  const std::lock_guard lock(turn());
  if (!has_context()) return kInvalidContext;
  if (lost() != kOk) return lost();
  auto& stream = *static_cast<Stream*>(handle);
  if (stream.capture != nullptr)
    add_node(stream, std::move(work));
  else
    push(stream.line, {std::move(work)});
  return kOk;
}

}  // namespace

int queue(Handle stream, double seconds, std::function<void()> work) {
  return queue_work(stream, [seconds, work = std::move(work)](double start) {
    work();
    return start + kQueueing + seconds;
  });
}

void finish_all() {
  while (step()) {
  }
}

}  // namespace fake

using namespace fake;

extern "C" {

int plimsollFakeQueue(Handle stream, double seconds, std::function<void()>* work) {
  return queue(stream, seconds, *work);
}

int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, Handle stream) {
  if (refused()) return kRefused;
  return queue(stream, 1e-10 * static_cast<double>(bytes),
               [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}
int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t count, Handle stream) {
  if (refused()) return kRefused;
  if (!is_reached(to, count)) return kInvalid;
  return queue(stream, 0, [=] { std::memset(reinterpret_cast<void*>(to), value, count); });
}
int cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, Handle stream) {
  if (refused()) return kRefused;
  if (to % 4 != 0 || !is_reached(to, 4 * count)) return kInvalid;
  return queue(stream, 1e-11 * static_cast<double>(count), [=] {
    for (size_t i = 0; i < count; ++i) reinterpret_cast<unsigned*>(to)[i] = value;
  });
}
int cuLaunchHostFunc(Handle stream, void (*function)(void*), void* data) {
  if (refused()) return kRefused;
  return queue(stream, 0, [=] { function(data); });
}
int cuStreamCreate(Handle* made, unsigned) {
  if (refused()) return kRefused;
  return *made = new Stream, kOk;
}
int cuStreamDestroy_v2(Handle stream) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  return delete static_cast<Stream*>(stream), kOk;  // what it has queued goes on
}
int cuStreamSynchronize(Handle handle) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  const auto* stream = static_cast<Stream*>(handle);
  if (stream->capture != nullptr) return kCaptureInvalid;
  finish(stream->line, stream->line->queued);
  return lost();
}
int cuStreamQuery(Handle handle) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  const auto* stream = static_cast<Stream*>(handle);
  if (stream->capture != nullptr) return kCaptureInvalid;
  step();
  if (lost() != kOk) return lost();
  return stream->line->items.empty() ? kOk : kNotReady;
}
int cuEventQuery(Handle handle) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  const auto* event = static_cast<Event*>(handle);
  if (event->capture != nullptr) return kCaptureInvalid;
  step();
  if (lost() != kOk) return lost();
  return event->line == nullptr || event->line->done >= event->count ? kOk : kNotReady;
}
int cuEventCreate(Handle* made, unsigned flags) {
  if (refused()) return kRefused;
  auto* event = new Event;
  if (flags != plimsoll::cuda::kNoTiming) event->time = std::make_shared<double>(kNever);
  return *made = event, kOk;
}
int cuEventDestroy_v2(Handle event) {
  if (refused()) return kRefused;
  return delete static_cast<Event*>(event), kOk;
}
int cuEventRecord(Handle handle, Handle on) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  auto* stream = static_cast<Stream*>(on);
  auto* event = static_cast<Event*>(handle);
  if (event->time != nullptr && stream->capture == nullptr) {
    *event->time = kNever;
    push(stream->line, {stamp(*event)});
  }
  *event = {stream->line, stream->line->queued, stream->capture, stream,
            stream->ends, stream->steps,        event->time};
  return kOk;
}
/// In a capture it becomes a node, that writes the time down at each launch.
int cuEventRecordWithFlags(Handle handle, Handle on, unsigned flags) {
  if (flags == 0) return cuEventRecord(handle, on);
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  auto* stream = static_cast<Stream*>(on);
  if (flags != plimsoll::cuda::kRecordExternal || stream->capture == nullptr) return kInvalid;
  return add_node(*stream, stamp(*static_cast<Event*>(handle))), kOk;
}
int cuEventElapsedTime(float* milliseconds, Handle from, Handle to) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  const auto &a = *static_cast<Event*>(from), &b = *static_cast<Event*>(to);
  if (a.time == nullptr || b.time == nullptr) return kInvalidHandle;
  if (*a.time < 0 || *b.time < 0) return kNotReady;
  return *milliseconds = static_cast<float>(1e3 * (*b.time - *a.time)), kOk;
}
int cuStreamWaitEvent(Handle on, Handle handle, unsigned) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  const auto& event = *static_cast<Event*>(handle);
  auto& stream = *static_cast<Stream*>(on);
  if (stream.capture != nullptr && event.capture != stream.capture) return kIsolation;
  if (event.capture != nullptr)
    join(stream, event);
  else if (event.line != nullptr && event.line != stream.line)
    push(stream.line, {nullptr, event.line, event.count});
  return kOk;
}
int cuEventSynchronize(Handle handle) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  const auto* event = static_cast<Event*>(handle);
  if (event->capture != nullptr) return kCaptureInvalid;
  if (event->line != nullptr) finish(event->line, event->count);
  return lost();
}
int cuStreamBeginCapture_v2(Handle handle, int) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  auto* stream = static_cast<Stream*>(handle);
  if (stream->capture != nullptr) return kCaptureInvalid;
  static std::vector<std::unique_ptr<Capture>> all;  // events point to them
  stream->capture = all.emplace_back(std::make_unique<Capture>()).get();
  stream->ends.clear();
  return kOk;
}
int cuStreamEndCapture(Handle handle, Handle* made) {
  if (refused()) return kRefused;
  const std::lock_guard lock(turn());
  auto* stream = static_cast<Stream*>(handle);
  Capture* capture = stream->capture;
  *made = nullptr;
  if (capture == nullptr) return kCaptureInvalid;
  bool joined = true;
  stream->capture = nullptr;
  for (Stream* other : capture->streams) {
    joined = joined && (other == stream || other->is_joined);
    other->capture = nullptr;
  }
  if (joined) *made = new Graph(std::move(capture->graph));
  capture->graph = {};
  return joined ? kOk : kUnjoined;
}
int cuGraphInstantiateWithFlags(Handle* made, Handle graph, unsigned long long) {
  if (refused()) return kRefused;
  return *made = new std::shared_ptr<Graph>(std::make_shared<Graph>(*static_cast<Graph*>(graph))), kOk;
}
int cuGraphLaunch(Handle executable, Handle stream) {
  if (refused()) return kRefused;
  if (static_cast<Stream*>(stream)->capture != nullptr) return kCaptureInvalid;
  return queue_work(stream, [graph = *static_cast<std::shared_ptr<Graph>*>(executable)](double start) {
    return run(*graph, start);
  });
}
int cuGraphDestroy(Handle graph) {
  delete static_cast<Graph*>(graph);  // whatever is answered: nobody asks twice
  return refused() ? kRefused : kOk;
}
int cuGraphExecDestroy(Handle executable) {
  delete static_cast<std::shared_ptr<Graph>*>(executable);  // whatever is answered: nobody asks twice
  return refused() ? kRefused : kOk;
}

}  // extern "C"
