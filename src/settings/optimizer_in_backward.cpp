#include "settings/optimizer_in_backward.h"

#include <fmt/format.h>

#include <utility>

#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

struct Obstacle {
  std::string why;  ///< empty: none
  std::string remedy = {};
};

Obstacle obstacle(const RunConfig& config, int64_t grad_accum_steps) {
  if (grad_accum_steps > 1)
    return {fmt::format("gradients are accumulated over {} micro-batches "
                        "(training.gradient_accumulation_steps)",
                        grad_accum_steps),
            "set training.gradient_accumulation_steps=1"};
  if (!config.debug.dump_dir.empty() && config.dumps("gradients"))
    return {"debug.dump writes the gradients, all of them", "leave gradients out of debug.dump"};
  if (config.distributed.num_ranks() > 1)
    return {"the ranks add their gradients first, all of them (distributed.ranks)", "train with one rank"};
  if (config.scales_loss())
    return {
        "a step whose fp16 gradients overflow is skipped, which is known once all are there "
        "(training.precision, precision_overrides)",
        "use bf16"};
  return {};
}

std::string clipping(const RunConfig& config) {
  return fmt::format("clipping to training.max_grad_norm={} needs the norm of all gradients first",
                     *config.clip_norm());
}

/// Only where it is asked for, not where auto would take it.
bool may_run_twice(const RunConfig& config) {
  return config.memory.second_backward && config.memory.optimizer_in_backward == OptimizerInBackward::kTrue;
}

}  // namespace

std::string against_optimizer_in_backward(const RunConfig& config, int64_t grad_accum_steps) {
  Obstacle found = obstacle(config, grad_accum_steps);
  if (found.why.empty() && config.clip_norm() && !may_run_twice(config)) return clipping(config);
  return std::move(found.why);
}

Status check_optimizer_in_backward(const RunConfig& config) {
  if (config.memory.optimizer_in_backward != OptimizerInBackward::kTrue) return Ok{};
  const auto split = fixed_batch_split(config.training);
  const Obstacle found = obstacle(config, split ? split->grad_accum_steps : 1);
  if (found.why.empty()) return Ok{};
  return wrong_setting("memory.optimizer_in_backward is true, and " + found.why,
                       found.remedy + ", or memory.optimizer_in_backward=auto");
}

bool clipping_contradicts(const RunConfig& config) {
  return config.memory.optimizer_in_backward == OptimizerInBackward::kTrue && config.clip_norm() &&
         !config.memory.second_backward;
}

Error clipping_error(const RunConfig& config, double cost) {
  return wrong_setting("memory.optimizer_in_backward is true, and " + clipping(config),
                       fmt::format("set training.max_grad_norm=0; or memory.second_backward=true, which "
                                   "would take about {:.0f} % more time; or "
                                   "memory.optimizer_in_backward=auto",
                                   100 * cost));
}

}  // namespace plimsoll::settings
