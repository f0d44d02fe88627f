// AdamW with moments of 8 bits, Dettmers et al. 2022, arXiv:2110.02861, as bitsandbytes' AdamW8bit: tensors
// of fewer than 4,096 elements keep theirs as adamw does, and blocks begin with each tensor. Embeddings are
// no exception.
#include <algorithm>

#include "ops/tensor_rules.h"
#include "optimizers/adamw_row.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

std::string_view adamw_8bit_rule(const Ruled& parameter) {
  return parameter.shape.num_elements() < kLeastCodedElements ? "adamw" : "adamw_8bit";
}

}  // namespace

bool lie_together_in_blocks(std::span<const ir::Shape> tensors) {
  const auto is_small = [](const ir::Shape& shape) { return shape.num_elements() < kLeastCodedElements; };
  int64_t elements = 0;
  for (const ir::Shape& shape : tensors) elements += shape.num_elements();
  if (elements < kLeastCodedElements) return true;
  const auto ends_a_block = [](const ir::Shape& shape) {
    return shape.num_elements() % ops::kCodeBlock == 0;
  };
  return std::ranges::none_of(tensors, is_small) &&
         std::ranges::all_of(tensors.first(tensors.size() - 1), ends_a_block);
}

OptimizerGroup adamw_8bit_optimizers() {
  static constexpr std::string_view kSettings[] = {"adam_beta1", "adam_beta2", "adam_epsilon"};
  static constexpr OptimizerDef kDefs[] = {{.name = "adamw_8bit",
                                            .rule = adamw_8bit_rule,
                                            .num_fields = ops::kAdamwFields,
                                            .write_row = write_adamw_row,
                                            .lie_together = lie_together_in_blocks,
                                            .settings = kSettings}};
  return kDefs;
}

}  // namespace plimsoll::optimizers
