#include "settings/micro_batch.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "numerics/fp8_recipes.h"
#include "settings/distributed.h"

namespace plimsoll::settings {
namespace {

/// Tokens that share a scale where a weight's gradient sums over them; 0: all do, or the recipe is unknown.
int64_t tokens_per_block(const std::string& name) {
  const auto recipe = numerics::find_fp8_recipe(name);
  if (!recipe) return 0;
  const auto form = numerics::operand_form({.recipe = *recipe}, numerics::OperandRole::kInput, true);
  return numerics::info(form.scheme).block_cols;
}

}  // namespace

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
  if (const std::string why = micro_batch_dependence(config); !why.empty())
    return why +
           ": its size is part of what is trained, and no search chooses it; set training.micro_batch_size, "
           "or "
           "the whole batch is computed at once";
  if (!config.computes_in(Precision::kFp8)) return {};
  const std::string& recipe = config.training.fp8.recipe;
  const int64_t block = tokens_per_block(recipe), tokens = config.data.sequence_length;
  if (block == 0 || tokens % block == 0) return {};
  return fmt::format(
      "training.fp8.recipe {} has blocks of {} tokens, which do not divide sequences of {}: blocks span "
      "sequences in the gradients of weights, so results depend on the micro-batch that the planner chooses; "
      "set training.micro_batch_size, or data.sequence_length to a multiple of {}",
      recipe, block, tokens, block);
}

}  // namespace plimsoll::settings
