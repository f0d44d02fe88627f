#include "settings/optimizer_in_backward.h"

#include <fmt/format.h>

#include "settings/wrong.h"

namespace plimsoll::train {
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
  if (config.scales_loss())
    return {
        "a step whose fp16 gradients overflow is skipped, which is known once all are there "
        "(training.precision, precision_overrides)",
        "use bf16"};
  if (config.clip_norm())
    return {fmt::format("clipping to training.max_grad_norm={} needs the norm of all gradients first",
                        *config.clip_norm()),
            "set training.max_grad_norm=0"};
  return {};
}

}  // namespace

std::string against_optimizer_in_backward(const RunConfig& config, int64_t grad_accum_steps) {
  return obstacle(config, grad_accum_steps).why;
}

Status check_optimizer_in_backward(const RunConfig& config) {
  if (config.memory.optimizer_in_backward != OptimizerInBackward::kTrue) return Ok{};
  const auto split = fixed_batch_split(config.training);
  const Obstacle found = obstacle(config, split ? split->grad_accum_steps : 1);
  if (found.why.empty()) return Ok{};
  return wrong_setting("memory.optimizer_in_backward is true, and " + found.why,
                       found.remedy + ", or memory.optimizer_in_backward=auto");
}

}  // namespace plimsoll::train
