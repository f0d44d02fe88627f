#include "settings/micro_batch.h"

#include <fmt/format.h>

#include <string>

#include "settings/distributed.h"

namespace plimsoll::settings {

std::string micro_batch_dependence(const RunConfig& config) {
  const std::string& recipe = config.training.fp8.recipe;
  if (config.computes_in(Precision::kFp8) && (recipe == "current" || recipe == "nvfp4"))
    return fmt::format("training.fp8.recipe {} takes scales from the tensors of a micro-batch", recipe);
  if (config.training.state.accumulators != StateWord::kFp32)
    return fmt::format("training.state.accumulators {} rounds the sum of gradients after each micro-batch",
                       word(config.training.state.accumulators));
  if (shares_gradients(config.distributed))
    return fmt::format("distributed.mode {} adds the ranks' gradients after each micro-batch",
                       word(config.distributed.mode));
  return {};
}

bool depends_by_order_alone(const RunConfig& config) {
  RunConfig whole_gradients = config;
  whole_gradients.distributed.mode = RankMode::kDdp;
  return !micro_batch_dependence(config).empty() && micro_batch_dependence(whole_gradients).empty();
}

std::string micro_batch_note(const RunConfig& config) {
  if (fixed_batch_split(config.training)) return {};
  const std::string why = micro_batch_dependence(config);
  if (why.empty()) return {};
  return fmt::format(
      "{}: the size of the micro-batch changes the results{}, so the planner does not choose it; without "
      "training.micro_batch_size the whole batch is computed at once",
      why, depends_by_order_alone(config) ? " (by the order of additions)" : "");
}

}  // namespace plimsoll::settings
