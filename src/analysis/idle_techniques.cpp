// What is done elsewhere against a lack of memory and has nothing to do here, or is done already.
#include <fmt/format.h>

#include "analysis/techniques.h"
#include "base/units.h"
#include "models/language_model.h"

namespace plimsoll::analysis {
namespace {

std::string logits_note(const settings::RunConfig& config, const strategy::Prepared& base) {
  const int64_t bytes = base.split.micro_batch_size * config.data.sequence_length *
                        models::language_model(*base.model).vocab_size() *
                        static_cast<int64_t>(sizeof(float));
  return fmt::format("in force: head and loss hold the logits of a chunk of tokens; all would be {}",
                     to_string(Bytes(bytes)));
}

int64_t fragmentation_of(const planner::PlanReport& report) {
  for (const auto& [name, bytes] : report.classes)
    if (name == "fragmentation") return bytes;
  return 0;
}

}  // namespace

std::vector<Technique> idle_techniques(const settings::RunConfig& config, const strategy::Prepared& base) {
  const planner::PlanReport& report = base.report;
  std::vector<Technique> list;
  const auto add = [&](const char* name, std::string note) {
    list.push_back({.group = TechniqueGroup::kIdle, .name = name, .note = std::move(note)});
  };
  add("empty_cache", "there is no cache: nothing is held that could be returned");
  add("gc.collect", "no tensor waits for a collector: each one's bytes are taken again as its life ends");
  add("zero_grad(set_to_none)",
      base.programs.gradients.empty()
          ? "gradients live in the arena, from their op to the update"
          : "accumulators start from the first micro-batch; nothing is filled with zeros");
  add("expandable_segments, max_split_size_mb",
      fmt::format("there is no allocator: offsets are planned, fragmentation is {}",
                  to_string(Bytes(fragmentation_of(report)))));
  add("pin_memory", report.device_is_process ? "the device computes in the host's memory: nothing is copied"
                                             : "in force: staging memory is pinned, and planned");
  add("torch.compile, CUDA graphs", "in force: a step is a static program, fused and planned before it runs");
  add("flash attention", "in force: the scores are never kept whole");
  if (base.labels == std::nullopt) add("chunked or fused cross-entropy", logits_note(config, base));
  add("fused optimizer, foreach", "in force: one sweep updates all parameters, without temporaries");
  add("in-place activations", "in force: results take the place of operands that nobody reads again");
  add("no_grad in evaluation", "in force: an evaluation is a program without backward");
  if (report.device_is_process)
    add("offload to the host", "the device's memory is the host's: there is nowhere to go");
  return list;
}

}  // namespace plimsoll::analysis
