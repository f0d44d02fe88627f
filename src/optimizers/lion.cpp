// Lion, Chen et al. 2023, arXiv:2302.06675: decoupled decay, the betas of Adam's settings with defaults of
// its own.
#include "ops/update_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

std::string_view lion_rule(const Ruled& /*parameter*/) { return "lion"; }

void write_lion(const StepHyper& hyper, double weight_decay, float* row) {
  row[ops::kLionDecay] = static_cast<float>(1.0 - hyper.learning_rate * weight_decay);
  row[ops::kLionRate] = static_cast<float>(hyper.learning_rate);
  row[ops::kLionBeta1] = static_cast<float>(hyper.beta1);
  row[ops::kLionOneMinusBeta1] = static_cast<float>(1.0 - hyper.beta1);
  row[ops::kLionBeta2] = static_cast<float>(hyper.beta2);
  row[ops::kLionOneMinusBeta2] = static_cast<float>(1.0 - hyper.beta2);
}

}  // namespace

OptimizerGroup lion_optimizers() {
  static constexpr std::string_view kSettings[] = {"adam_beta1", "adam_beta2"};
  static constexpr OptimizerDef kDefs[] = {{.name = "lion",
                                            .rule = lion_rule,
                                            .num_fields = ops::kLionFields,
                                            .write_row = write_lion,
                                            .default_beta2 = 0.99,
                                            .settings = kSettings}};
  return kDefs;
}

}  // namespace plimsoll::optimizers
