#include "profiling/profile_trace.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <optional>

#include "io/tree.h"

namespace plimsoll::profiling {
namespace {

/// Processes of the trace: a card's work stands under its number, as Kineto's does.
constexpr int kDevice = 0, kHost = 1;
/// Threads of the trace.
enum Lane : int { kSteps = 1, kCopies = 2, kCheckpoint = 3, kKernels = 4, kFirstLoader = 5 };

class Trace {
 public:
  explicit Trace(bool on_device) : on_device_(on_device) {
    text_ =
        "{\"schemaVersion\": 1, \"deviceProperties\": [], \"displayTimeUnit\": \"ms\", "
        "\"baseTimeNanoseconds\": 0,\n"
        "\"traceEvents\": [\n"
        "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"tid\": 0, \"args\": {\"name\": "
        "\"plimsoll\"}}";
    if (on_device)
      text_ +=
          ",\n{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"tid\": 0, \"args\": {\"name\": "
          "\"device\"}}";
    name_lane(kSteps, on_device ? "steps" : "steps and ops");
    if (on_device) name_lane(kKernels, "kernels");
    name_lane(kCopies, "copies");
  }
  void name_lane(int lane, const std::string& name) {
    append(
        ",\n{{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": {}, \"tid\": {}, \"args\": {{\"name\": "
        "\"{}\"}}}}",
        process_of(lane), lane, name);
  }
  void span(const char* category, std::string_view name, int lane, double start, double seconds,
            const std::string& args = "") {
    append(
        ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": {}, \"tid\": {}, \"ts\": {:.3f}, "
        "\"dur\": {:.3f}, \"args\": {{{}}}}}",
        category, name, process_of(lane), lane, 1e6 * start, 1e6 * seconds, args);
  }
  void op(const OpFacts& f, const OpRun& run) {
    const bool kernel = on_device_ && !f.copies && !f.on_host;
    span(f.copies ? "gpu_memcpy"
         : kernel ? "kernel"
                  : "cpu_op",
         f.op,
         f.copies ? kCopies
         : kernel ? kKernels
                  : kSteps,
         run.start, run.seconds,
         fmt::format("{}\"layer\": {}, \"Input Dims\": {}, \"Input type\": {}, \"bytes\": {:.0f}, "
                     "\"flops\": {:.0f}",
                     kernel ? "\"device\": 0, \"stream\": 0, " : "", io::to_json(io::Tree::of(f.layer)),
                     f.dims, f.types, f.bytes, f.flops));
  }
  /// Live bytes from there on; nothing where they are as they were.
  void live(double at, const planner::ClassBytes& bytes) {
    if (live_ == bytes) return;
    live_ = bytes;
    std::string series;
    for (size_t c = 0; c < planner::kNumMemoryClasses; ++c)
      fmt::format_to(std::back_inserter(series), "{}\"{}\": {}", c == 0 ? "" : ", ",
                     planner::name(static_cast<planner::MemoryClass>(c)), bytes[c]);
    append(
        ",\n{{\"ph\": \"C\", \"name\": \"memory\", \"pid\": 1, \"tid\": 0, \"ts\": {:.3f}, \"args\": "
        "{{{}}}}}",
        1e6 * at, series);
  }
  std::string text() { return std::move(text_) + "\n]}\n"; }

 private:
  [[nodiscard]] int process_of(int lane) const {
    return on_device_ && (lane == kKernels || lane == kCopies) ? kDevice : kHost;
  }
  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  const bool on_device_;
  std::string text_;
  std::optional<planner::ClassBytes> live_;
};

int lane_of(const Span& span) {
  return span.lane == SpanLane::kStep         ? kSteps
         : span.lane == SpanLane::kCheckpoint ? kCheckpoint
                                              : kFirstLoader + span.thread;
}

void name_lanes(const Profile& profile, Trace& trace) {
  std::map<int, std::string> names;
  for (const ProfiledStep& step : profile.steps)
    for (const Span& span : step.spans)
      if (span.lane == SpanLane::kLoader)
        names[lane_of(span)] = fmt::format("loader {}", span.thread);
      else if (span.lane == SpanLane::kCheckpoint)
        names[lane_of(span)] = "checkpoints";
  for (const auto& [lane, name] : names) trace.name_lane(lane, name);
}

}  // namespace

std::string profile_trace(const Profile& profile) {
  Trace trace(profile.on_device);
  name_lanes(profile, trace);
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfiledStep& step = profile.steps[i];
    trace.live(step.start, profile.live);
    trace.span("user_annotation", fmt::format("ProfilerStep#{}", i), kSteps, step.start, step.seconds);
    for (const Span& span : step.spans)
      trace.span("user_annotation", span.name, lane_of(span), span.start, span.end - span.start);
    for (const OpRun& run : step.ops) {
      const OpFacts& f = profile.facts[run.op];
      trace.live(run.start, f.live);
      trace.op(f, run);
    }
    if (!step.ops.empty()) trace.live(step.ops.back().start + step.ops.back().seconds, profile.live);
  }
  return trace.text();
}

}  // namespace plimsoll::profiling
