#include "train/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/process.h"
#include "ir/op_def.h"
#include "train/step_waits.h"

namespace plimsoll::train {
namespace {

/// Takes down what the session's programs did, each when the next begins.
class Recorder {
 public:
  Recorder(runtime::Session& session, Profile& profile) : session_(session), profile_(profile) {
    session_.enable_timing(true);
    session_.set_run_observer([this](int program) {
      collect();
      program_ = program;
      began_ = now_seconds() - start_;
    });
  }
  ~Recorder() {
    session_.set_run_observer(nullptr);
    session_.enable_timing(false);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  [[nodiscard]] double now() const { return now_seconds() - start_; }
  void begin() { ops_.clear(), program_ = -1; }
  std::vector<OpRun> end() {
    collect();
    program_ = -1;
    return std::move(ops_);
  }

 private:
  void collect() {
    if (program_ < 0) return;
    double at = began_;
    for (const auto& [op, seconds] : session_.timed_ops(program_)) {
      ops_.push_back({fact_of(op), at, seconds});
      at += seconds;
    }
  }
  size_t fact_of(const ir::Op* op) {
    const auto [it, is_new] = facts_.emplace(op, profile_.facts.size());
    if (!is_new) return it->second;
    const ir::Graph& graph = session_.plan().programs[static_cast<size_t>(program_)].graph;
    const ir::Cost cost = ir::op_cost(graph, *op);
    OpFacts facts{.op = std::string(op->def->name),
                  .layer = op->layer,
                  .copies = op->queue != ir::Queue::kCompute,
                  .updates = op->block == ir::kUpdateBlock,
                  .recomputed = op->recomputed,
                  .flops = cost.flops,
                  .bytes = cost.bytes,
                  .dims = "[",
                  .types = "["};
    for (const ir::ValueId v : op->inputs) {
      if (!v.valid()) continue;
      const ir::TensorType& type = graph.type(v);
      const std::string separator = facts.dims.size() > 1 ? ", " : "";
      facts.dims += separator + ir::to_string(type.shape);
      facts.types += fmt::format("{}\"{}\"", separator, ir::name(type.dtype));
    }
    facts.dims += "]", facts.types += "]";
    profile_.facts.push_back(std::move(facts));
    return it->second;
  }

  runtime::Session& session_;
  Profile& profile_;
  const double start_ = now_seconds();
  double began_ = 0;
  int program_ = -1;
  std::vector<OpRun> ops_;
  std::map<const ir::Op*, size_t> facts_;
};

double mean(double sum, const Profile& profile) {
  return sum / static_cast<double>(std::max<size_t>(1, profile.steps.size()));
}

}  // namespace

bool ProfileSchedule::is_active(int64_t step) const {
  if (step < skip_first || step >= num_steps()) return false;
  return (step - skip_first) % (wait + warmup + active) >= wait + warmup;
}

Result<Profile> profile_steps(Trainer& trainer, const ProfileSchedule& schedule) {
  Profile profile;
  Recorder recorder(trainer.session(), profile);
  for (int64_t i = 0; i < schedule.num_steps(); ++i) {
    recorder.begin();
    ProfiledStep step;
    const StepWaits before = step_waits();
    step.start = recorder.now();
    PLIMSOLL_ASSIGN(const StepEvent event, trainer.step());
    step.seconds = recorder.now() - step.start;
    step.ops = recorder.end();
    step.data_wait_seconds = event.data_wait_seconds;
    step.tokens = event.tokens;
    const StepWaits after = step_waits();
    step.taken_seconds = after.taken_seconds - before.taken_seconds;
    step.read_bytes = after.read_bytes - before.read_bytes;
    if (schedule.is_active(i)) profile.steps.push_back(std::move(step));
  }
  return profile;
}

Tree profile_ops(const Profile& profile) {
  struct Row {
    int64_t calls = 0;
    double seconds = 0, flops = 0, bytes = 0;
  };
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const ProfiledStep& step : profile.steps)
    for (const OpRun& run : step.ops) {
      const OpFacts& f = profile.facts[run.op];
      Row& row = rows[{f.op, f.layer}];
      ++row.calls;
      row.seconds += run.seconds, row.flops += f.flops, row.bytes += f.bytes;
    }
  std::vector<Tree> list;
  for (const auto& [key, row] : rows)
    list.push_back(Tree::map({{"op", Tree::of(key.first)},
                              {"layer", Tree::of(key.second)},
                              {"calls", Tree::of(mean(static_cast<double>(row.calls), profile))},
                              {"seconds", Tree::of(mean(row.seconds, profile))},
                              {"flops", Tree::of(mean(row.flops, profile))},
                              {"bytes", Tree::of(mean(row.bytes, profile))}}));
  std::sort(list.begin(), list.end(), [](const Tree& a, const Tree& b) {
    return a.find("seconds")->number > b.find("seconds")->number;
  });
  return Tree::list(std::move(list));
}

std::string profile_trace(const Profile& profile) {
  std::string out =
      "{\"schemaVersion\": 1, \"deviceProperties\": [], \"displayTimeUnit\": \"ms\", "
      "\"baseTimeNanoseconds\": 0,\n"
      "\"traceEvents\": [\n"
      "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"tid\": 0, \"args\": {\"name\": "
      "\"plimsoll\"}},\n"
      "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": 1, \"args\": {\"name\": \"steps and "
      "ops\"}},\n"
      "{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": 1, \"tid\": 2, \"args\": {\"name\": \"copies\"}}";
  const auto add = [&](const char* category, const std::string& name, int tid, double start, double seconds,
                       const std::string& args) {
    out += fmt::format(
        ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {}, \"ts\": {:.3f}, "
        "\"dur\": {:.3f}, \"args\": {{{}}}}}",
        category, name, tid, 1e6 * start, 1e6 * seconds, args);
  };
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfiledStep& step = profile.steps[i];
    add("user_annotation", fmt::format("ProfilerStep#{}", i), 1, step.start, step.seconds, "");
    if (step.data_wait_seconds > 0)
      add("user_annotation", "wait for data", 1, step.start, step.data_wait_seconds, "");
    for (const OpRun& run : step.ops) {
      const OpFacts& f = profile.facts[run.op];
      add(f.copies ? "gpu_memcpy" : "cpu_op", f.op, f.copies ? 2 : 1, run.start, run.seconds,
          fmt::format(
              "\"layer\": {}, \"Input Dims\": {}, \"Input type\": {}, \"bytes\": {:.0f}, \"flops\": {:.0f}",
              to_json(Tree::of(f.layer)), f.dims, f.types, f.bytes, f.flops));
    }
  }
  return out + "\n]}\n";
}

}  // namespace plimsoll::train
