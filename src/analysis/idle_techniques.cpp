// Memory techniques of other frameworks that are always on here or have no effect.
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
  return fmt::format(
      "always on: the loss head holds the logits of one chunk of tokens; all logits would take {}",
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
  add("empty_cache", "no effect: there is no cache of freed memory");
  add("gc.collect", "no effect: the bytes of a tensor are reused as soon as its lifetime ends");
  add("zero_grad(set_to_none)", base.programs.gradients.empty()
                                    ? "always on: gradients live in the arena, from their op to the update"
                                    : "always on: accumulators start from the first micro-batch");
  add("expandable_segments, max_split_size_mb",
      fmt::format("no effect: offsets are planned, fragmentation is {}",
                  to_string(Bytes(fragmentation_of(report)))));
  add("pin_memory", report.device_is_process
                        ? "no effect: the device computes in host memory, nothing is copied"
                        : "always on: staging memory is pinned and planned");
  add("torch.compile, CUDA graphs",
      "always on: a step is a static program, fused and planned before it runs");
  add("flash attention", "always on: the scores are never stored in full");
  if (base.labels == std::nullopt) add("chunked or fused cross-entropy", logits_note(config, base));
  add("fused optimizer, foreach", "always on: one op updates all parameters, without temporaries");
  add("in-place activations", "always on: results overwrite operands that are not read again");
  add("no_grad in evaluation", "always on: an evaluation is a program without backward");
  if (report.device_is_process) add("offload to the host", "no effect: the device memory is host memory");
  return list;
}

}  // namespace plimsoll::analysis
