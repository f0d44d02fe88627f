// plimsoll doctor: this machine, what is fast on it, what is missing. With --measure-overhead it runs two
// small trainings to find out what a process costs beyond its plan, and stores that beside the binary.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backends/cpu/kernels/isa.h"
#include "base/machine_memory.h"
#include "base/process.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/data/data_json.h"
#include "cli/doctor_ranks.h"
#include "cli/profile/rates_text.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/scratch_folder.h"
#include "io/tree.h"
#include "planner/cost/overhead.h"
#include "strategy/machine_rates.h"

namespace plimsoll::cli {
namespace {

/// The rest of the line after `key` in a file of the kernel, which has no size and is read to its end.
std::string first_line_after(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (const size_t at = line.find(key); at != std::string::npos) {
      const size_t begin = line.find_first_not_of(" \t:", at + key.size());
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  return "unknown";
}

void print_row(const char* label, const std::string& value) {
  print_text(fmt::format("  {:<20}{}\n", label, value));
}

struct Report {
  std::string processor, huge_pages;
  MachineMemory memory;
  planner::ProcessOverhead overhead;
  std::string rates;   ///< where plans take seconds from
  std::string copies;  ///< and what they know of copies and of the disk, as lines
  RanksReport ranks;
  std::vector<std::string> advice;
};

/// The profile that plans go by, or what is to be done about there being none.
void look_at_rates(Report& r) {
  const std::string path = strategy::calibrated_path(), isa(cpu::isa_name(cpu::current_isa()));
  std::error_code ignored;
  const bool is_there = !path.empty() && std::filesystem::exists(path, ignored);
  const auto calibrated = strategy::calibrated_rates(isa);
  if (!calibrated) {
    r.advice.push_back("run 'plimsoll calibrate' again: " + calibrated.error().message());
  } else if (*calibrated) {
    r.rates = "calibrated, " + path;
    r.copies = copies_text(**calibrated);
  } else {
    if (strategy::first_rates(isa)) r.rates = "measured at first use, " + strategy::first_rates_path(isa);
    r.advice.emplace_back(is_there
                              ? "run 'plimsoll calibrate' again: it was measured with another instruction set"
                              : "run 'plimsoll calibrate' so that plans can estimate times for this machine");
  }
}

Report look_at_machine() {
  const std::string processor = processor_name();
  Report r{.processor = processor.empty() ? "unknown" : processor,
           .huge_pages = first_line_after("/sys/kernel/mm/transparent_hugepage/enabled", ""),
           .memory = read_machine_memory(),
           .overhead = planner::load_overhead(),
           .rates = "built in, not measured",
           .copies = {},
           .ranks = look_at_ranks(),
           .advice = {}};
  look_at_rates(r);
  if (!r.ranks.advice.empty()) r.advice.push_back(r.ranks.advice);
  const auto advise = [&](bool bad, const char* text) {
    if (bad) r.advice.emplace_back(text);
  };
  advise(cpu::current_isa() == cpu::Isa::kPortable,
         "no AVX2: kernels run portable code, several times slower");
  advise(
      r.huge_pages.find("[never]") != std::string::npos,
      "transparent huge pages are off: start-up touches memory several times slower (set them to madvise)");
  advise(!r.overhead.measured,
         "run 'plimsoll doctor --measure-overhead' so that plans include the memory of the process itself");
  return r;
}

std::string memory_limit(const MachineMemory& memory) {
  if (memory.limited_by.empty()) return "none of a control group";
  return fmt::format("{} by {}", to_string(Bytes(memory.limit_bytes)), memory.limited_by);
}

void print_report(const Report& r) {
  print_text("Machine\n");
  print_row("processor", r.processor);
  print_row("threads", fmt::format("{} usable", num_available_cpus()));
  print_row("memory", fmt::format("{} in all, {} available", to_string(Bytes(r.memory.physical_bytes)),
                                  to_string(Bytes(r.memory.available_bytes))));
  print_row("memory limit", memory_limit(r.memory));
  print_row("features", fmt::format("{}", fmt::join(cpu::cpu_features(), " ")));
  print_row("kernels", fmt::format("{} (PLIMSOLL_ISA caps it: portable, avx2, avx512, avx512_bf16, amx)",
                                   cpu::isa_name(cpu::current_isa())));
  print_row("huge pages", r.huge_pages);
  const planner::ProcessOverhead& overhead = r.overhead;
  print_text("\nPlimsoll\n");
  print_row("overhead",
            fmt::format("{} + {} a thread + {} an op ({})", to_string(Bytes(overhead.base_bytes)),
                        to_string(Bytes(overhead.per_thread_bytes)), to_string(Bytes(overhead.per_op_bytes)),
                        overhead.measured ? "measured for this build" : "built-in, not measured"));
  print_row("rates", r.rates);
  print_text(r.copies);
  print_text("\nRanks\n");
  for (const auto& [label, value] : ranks_rows(r.ranks)) print_row(label.c_str(), value);
  print_text("\nAdvice\n");
  for (const std::string& text : r.advice) print_text(fmt::format("  - {}\n", text));
  if (r.advice.empty()) print_text("  nothing is missing\n");
}

void print_json(const Report& r) {
  const auto texts = [](const std::vector<std::string>& list) {
    io::Tree tree = io::Tree::list();
    for (const std::string& text : list) tree.items.push_back(json_text(text));
    return tree;
  };
  const MachineMemory& m = r.memory;
  fmt::print(
      "{}\n",
      io::to_json(io::Tree::map(
          {{"event", io::Tree::of(std::string("doctor"))},
           {"processor", json_text(r.processor)},
           {"threads", io::Tree::of(int64_t{num_available_cpus()})},
           {"memory",
            io::Tree::map({{"total_bytes", io::Tree::of(m.physical_bytes)},
                           {"available_bytes", io::Tree::of(m.available_bytes)},
                           {"limit_bytes", io::Tree::of(m.limit_bytes)},
                           {"limited_by", m.limited_by.empty() ? io::Tree{} : json_text(m.limited_by)}})},
           {"features", texts(cpu::cpu_features())},
           {"kernels", json_text(cpu::isa_name(cpu::current_isa()))},
           {"huge_pages", json_text(r.huge_pages)},
           {"overhead", io::Tree::map({{"base_bytes", io::Tree::of(r.overhead.base_bytes)},
                                       {"per_thread_bytes", io::Tree::of(r.overhead.per_thread_bytes)},
                                       {"per_op_bytes", io::Tree::of(r.overhead.per_op_bytes)},
                                       {"measured", io::Tree::of(r.overhead.measured)}})},
           {"rates", json_text(r.rates)},
           {"ranks", ranks_json(r.ranks)},
           {"advice", texts(r.advice)}})));
}

/// The number after `"key":` in a line of JSON that this program printed.
int64_t json_number(const std::string& text, const std::string& key) {
  const size_t at = text.rfind("\"" + key + "\":");
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at + key.size() + 3, nullptr, 10);
}

struct Probe {
  int64_t overhead_bytes = 0, num_ops = 0;
};

/// Runs this binary on a small model of `layers` layers and takes what the plan does not explain.
Result<Probe> probe(const std::string& folder, int layers, int threads) {
  const std::string yaml = fmt::format(
      "model:\n  config: {{model_type: llama, vocab_size: 256, hidden_size: 64, intermediate_size: 128, "
      "num_hidden_layers: {}, "
      "num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 128, rms_norm_eps: "
      "1.0e-5}}\n  init: random\n"
      "data: {{train: {}/tokens.txt, eval: {}/tokens.txt, sequence_length: 64}}\n"
      "training: {{global_batch_size: 4, max_steps: 3, learning_rate: 1.0e-3, lr_scheduler: constant}}\n"
      "runtime: {{threads: {}}}\noutput: {{dir: {}/out}}\nmemory: {{budget: 8GiB}}\n",
      layers, folder, folder, threads, folder);
  PLIMSOLL_TRY(io::write_file_atomically(folder + "/run.yaml", yaml));
  const std::string binary = executable_path();
  FILE* pipe = popen(
      fmt::format("'{}' train '{}/run.yaml' --resume never --json 2>/dev/null", binary, folder).c_str(), "r");
  if (pipe == nullptr) return Error{ErrorCode::kIo, "cannot start this binary", binary};
  std::string output;
  std::array<char, 4096> buffer{};
  for (size_t n; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) output.append(buffer.data(), n);
  if (pclose(pipe) != 0)
    return Error{ErrorCode::kIo, "the probing run failed", folder + "/run.yaml", "run it by hand to see why"};
  // A run as small as this hardly touches its host buffers: counting them as used would hide as much of the
  // overhead. Where they are used, a plan is high by what these runs did touch.
  const int64_t explained = json_number(output, "planned_peak_bytes") -
                            json_number(output, "overhead_bytes") - json_number(output, "pageable_bytes");
  return Probe{json_number(output, "measured_peak_bytes") - explained, json_number(output, "num_ops")};
}

/// Two sizes of model and two numbers of threads give the three terms; the largest of a few runs, and some
/// slack, because a plan may never be below.
Status measure_overhead(const std::string& path) {
  constexpr int kRuns = 3;
  constexpr int64_t kSlackBytes = 2 << 20;
  PLIMSOLL_ASSIGN(const io::ScratchFolder scratch, io::ScratchFolder::create("doctor"));
  const std::string& folder = scratch.path();
  PLIMSOLL_TRY(io::write_file_atomically(folder + "/tokens.txt", std::string(4096, 'a')));
  const auto most = [&](int layers, int threads) -> Result<Probe> {
    Probe worst;
    for (int i = 0; i < kRuns; ++i) {
      PLIMSOLL_ASSIGN(const Probe p, probe(folder, layers, threads));
      if (p.overhead_bytes > worst.overhead_bytes) worst = p;
    }
    return worst;
  };
  PLIMSOLL_ASSIGN(const Probe small, most(2, 1));
  PLIMSOLL_ASSIGN(const Probe large, most(48, 1));
  PLIMSOLL_ASSIGN(const Probe threaded, most(2, 5));
  planner::ProcessOverhead o;
  o.per_op_bytes = std::max<int64_t>(
      0, (large.overhead_bytes - small.overhead_bytes) / std::max<int64_t>(1, large.num_ops - small.num_ops));
  o.per_thread_bytes = std::max<int64_t>(0, (threaded.overhead_bytes - small.overhead_bytes) / 4);
  o.base_bytes = small.overhead_bytes - o.per_op_bytes * small.num_ops - o.per_thread_bytes + kSlackBytes;
  PLIMSOLL_TRY(planner::store_overhead(o, path));
  print_text(fmt::format("overhead: {} + {} a thread + {} an op, stored in {}\n",
                         to_string(Bytes(o.base_bytes)), to_string(Bytes(o.per_thread_bytes)),
                         to_string(Bytes(o.per_op_bytes)), path));
  return Ok{};
}

}  // namespace

Command add_doctor(Parser app) {
  struct Arguments {
    bool measure = false, json = false;
  };
  return add_command<Arguments>(
      app, "doctor", "show this machine: what is fast on it and what is missing",
      [](Parser command, Arguments& a) {
        command.add_flag("--measure-overhead", a.measure,
                         "measure the memory of a process outside its plan; the build does this once");
        command.add_flag("--json", a.json, "print one JSON object on stdout and nothing else");
      },
      [](const Arguments& a) -> Status {
        if (a.measure) return measure_overhead(planner::overhead_path());
        const Report report = look_at_machine();
        a.json ? print_json(report) : print_report(report);
        return Ok{};
      });
}

}  // namespace plimsoll::cli
