// Writes a memory snapshot in the form that torch/utils/viz/MemoryViz.js reads: blocks tile their segment
// in order of address; free_requested and free_completed stand side by side; what is allocated lies in a
// segment that lives; where entries have categories, "unknown" is one of them; addresses are exact as
// doubles.
#include "planner/report/memory_snapshot.h"

#include <algorithm>

#include "ir/op_def.h"
#include "planner/report/memory_timeline.h"

namespace plimsoll::planner {
namespace {

using ir::MemorySpace;

constexpr int64_t kBase = int64_t{1} << 32;  // where the states' block is shown
constexpr int64_t kGap = int64_t{1} << 21;   // between the segments, so that they do not look like one
constexpr int kEntriesATensor = 3;

struct Frame {
  std::string_view name, file;
  int64_t line = 0;
};

/// When a tensor of the arena comes and goes, by position in the order.
struct Lifetimes {
  std::vector<std::vector<int32_t>> made, freed;  ///< storages
};

bool is_shown(const passes::Storage& s) {
  return s.space == MemorySpace::kDevice && s.state < 0 && s.bytes > 0 && s.first >= 0;
}

Lifetimes lifetimes_of(const passes::Program& program) {
  Lifetimes lifetimes;
  lifetimes.made.resize(program.graph.order().size());
  lifetimes.freed.resize(program.graph.order().size());
  for (size_t i = 0; i < program.binding.storages.size(); ++i) {
    const passes::Storage& s = program.binding.storages[i];
    if (!is_shown(s)) continue;
    lifetimes.made[static_cast<size_t>(s.first)].push_back(static_cast<int32_t>(i));
    lifetimes.freed[static_cast<size_t>(s.last)].push_back(static_cast<int32_t>(i));
  }
  return lifetimes;
}

class Snapshot {
 public:
  Snapshot(const passes::SessionPlan& session, const io::PickleSink& sink)
      : session_(session), out_(sink), arena_(kBase + round_up(session.device().persistent, kGap) + kGap) {
    for (const passes::Program& program : session.programs) lifetimes_.push_back(lifetimes_of(program));
  }

  Status write(std::span<const ProgramRun> runs) {
    out_.begin_dict();
    out_.string("segments");
    out_.begin_list();
    persistent_segment();
    if (session_.device().arena > 0) arena_segment();
    out_.end();
    out_.string("device_traces");
    out_.begin_list();
    trace(runs);
    out_.end();
    out_.string("allocator_settings");
    out_.begin_dict();
    out_.end();
    out_.end();
    return out_.finish();
  }

 private:
  void frames(std::initializer_list<Frame> list) {
    out_.string("frames");
    out_.begin_list();
    for (const Frame& frame : list) {
      out_.begin_dict();
      out_.entry("name", frame.name);
      out_.entry("filename", frame.file);
      out_.entry("line", frame.line);
      out_.end();
    }
    out_.end();
  }

  /// Up to the blocks, which follow.
  void begin_segment(std::string_view what, int64_t address, int64_t size, int64_t active,
                     int64_t requested) {
    out_.begin_dict();
    out_.entry("device", int64_t{0});
    out_.entry("address", address);
    out_.entry("total_size", size);
    out_.entry("allocated_size", active);
    out_.entry("active_size", active);
    out_.entry("requested_size", requested);
    out_.entry("stream", int64_t{0});
    out_.entry("segment_type", "large");
    out_.string("segment_pool_id");
    out_.pair(0, 0);
    out_.string("is_expandable");
    out_.boolean(false);
    frames({{what, "plimsoll", 0}});
    out_.string("blocks");
    out_.begin_list();
  }
  void end_segment() {
    out_.end();
    out_.end();
  }

  void block(int64_t address, int64_t size, int64_t requested, std::string_view state) {
    out_.begin_dict();
    out_.entry("address", address);
    out_.entry("size", size);
    out_.entry("requested_size", requested);
    out_.entry("state", state);
  }
  void free_block(int64_t address, int64_t size) {
    block(address, size, 0, "inactive");
    frames({});
    out_.end();
  }

  /// The states of the device that have bytes, by address.
  [[nodiscard]] std::vector<const passes::SessionState*> states() const {
    std::vector<const passes::SessionState*> states;
    for (const passes::SessionState& s : session_.states)
      if (s.decl.space == MemorySpace::kDevice && s.decl.type.bytes().count > 0) states.push_back(&s);
    std::sort(states.begin(), states.end(),
              [](const auto* a, const auto* b) { return a->offset < b->offset; });
    return states;
  }

  void state_frames(const passes::SessionState& s) {
    frames({{s.decl.name, name(class_of(s.decl)), 0}, {"states", "session", 0}});
  }

  void persistent_segment() {
    const int64_t size = session_.device().persistent;
    int64_t active = 0, requested = 0;
    for (const passes::SessionState* s : states()) {
      requested += s->decl.type.bytes().count;
      active += round_up(s->decl.type.bytes().count, passes::kStorageAlignment);
    }
    begin_segment("persistent", kBase, size, active, requested);
    int64_t end = 0;
    for (const passes::SessionState* s : states()) {
      const int64_t bytes = s->decl.type.bytes().count;
      if (s->offset > end) free_block(kBase + end, s->offset - end);
      end = s->offset + round_up(bytes, passes::kStorageAlignment);
      block(kBase + s->offset, end - s->offset, bytes, "active_allocated");
      state_frames(*s);
      out_.end();
    }
    if (size > end) free_block(kBase + end, size - end);
    end_segment();
  }

  /// After the last program nothing lives there.
  void arena_segment() {
    begin_segment("arena", arena_, session_.device().arena, 0, 0);
    free_block(arena_, session_.device().arena);
    end_segment();
  }

  /// Up to the frames and the category, which follow.
  void begin_entry(std::string_view action, int64_t address, int64_t size) {
    out_.begin_dict();
    out_.entry("action", action);
    out_.entry("addr", address);
    out_.entry("size", size);
    out_.entry("stream", int64_t{0});
    out_.entry("time_us", time_us_);
  }

  void segment_entry(std::string_view what, int64_t address, int64_t size) {
    begin_entry("segment_alloc", address, size);
    frames({{what, "plimsoll", 0}});
    out_.entry("category", "unknown");
    out_.end();
  }

  void trace(std::span<const ProgramRun> runs) {
    out_.begin_list();
    segment_entry("persistent", kBase, session_.device().persistent);
    if (session_.device().arena > 0) segment_entry("arena", arena_, session_.device().arena);
    for (const passes::SessionState* s : states()) {
      begin_entry("alloc", kBase + s->offset, s->decl.type.bytes().count);
      state_frames(*s);
      out_.entry("category", name(class_of(s->decl)));
      out_.end();
    }
    for (const ProgramRun& run : runs) {
      time_us_ = run.time_us;
      program(static_cast<size_t>(run.program));
    }
    out_.end();
  }

  void program(size_t index) {
    const passes::Program& program = session_.programs[index];
    const Lifetimes& lifetimes = lifetimes_[index];
    for (size_t i = 0; i < program.graph.order().size(); ++i) {
      for (const int32_t s : lifetimes.made[i]) tensor("alloc", program, i, s);
      for (const int32_t s : lifetimes.freed[i]) {
        tensor("free_requested", program, i, s);
        tensor("free_completed", program, i, s);
      }
    }
  }

  void tensor(std::string_view action, const passes::Program& program, size_t position, int32_t storage) {
    const auto index = static_cast<size_t>(storage);
    const passes::Storage& s = program.binding.storages[index];
    const ir::Op& op = program.graph.op(program.graph.order()[position]);
    begin_entry(action, arena_ + program.plan.offsets[index], s.bytes);
    const std::string_view layer = op.layer.empty() ? "model" : std::string_view(op.layer);
    frames({{op.def->name, layer, static_cast<int64_t>(position)},
            {layer, program.graph.name, 0},
            {program.graph.name, "plimsoll", 0}});
    if (action == "alloc") out_.entry("category", name(class_of(s.category)));
    out_.end();
  }

  const passes::SessionPlan& session_;
  io::PickleWriter out_;
  int64_t arena_;
  int64_t time_us_ = 0;
  std::vector<Lifetimes> lifetimes_;
};

}  // namespace

std::vector<ProgramRun> planned_runs(const passes::SessionPlan& session) {
  std::vector<ProgramRun> runs;
  for (const bool first : {true, false})
    for (size_t i = 0; i < session.programs.size(); ++i)
      if (passes::draws_parameters(session.programs[i].id.role) == first)
        runs.push_back({static_cast<int32_t>(i), 0});
  return runs;
}

std::vector<int64_t> trace_entries(const passes::SessionPlan& session) {
  std::vector<int64_t> entries;
  for (const passes::Program& program : session.programs)
    entries.push_back(kEntriesATensor * std::count_if(program.binding.storages.begin(),
                                                      program.binding.storages.end(), is_shown));
  return entries;
}

Status write_memory_snapshot(const passes::SessionPlan& session, std::span<const ProgramRun> runs,
                             const io::PickleSink& sink) {
  return Snapshot(session, sink).write(runs);
}

Status save_memory_snapshot(const passes::SessionPlan& session, std::span<const ProgramRun> runs,
                            io::AtomicFile& file) {
  int64_t written = 0;
  const io::PickleSink sink = [&](std::span<const std::byte> bytes) {
    const int64_t at = written;
    written += static_cast<int64_t>(bytes.size());
    return file.write_at(at, bytes);
  };
  PLIMSOLL_TRY(write_memory_snapshot(session, runs, sink));
  return file.commit();
}

}  // namespace plimsoll::planner
