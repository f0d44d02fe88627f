// AdamW, Loshchilov & Hutter 2019, arXiv:1711.05101, as torch.optim.AdamW computes it; Adam, which is the
// same without decay; and Adam with decay in the gradient, as torch.optim.Adam has it.
#include <cmath>

#include "ops/update_rules.h"
#include "optimizers/adamw_row.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

std::string_view adamw_rule(const Ruled& /*parameter*/) { return "adamw"; }

void write_adam(const StepHyper& hyper, double /*weight_decay*/, float* row) {
  write_adamw_row(hyper, 0.0, row);
}

std::string_view adam_l2_rule(const Ruled& /*parameter*/) { return "adam_l2"; }

void write_adam_l2(const StepHyper& hyper, double weight_decay, float* row) {
  write_adamw_row(hyper, 0.0, row);
  row[ops::kAdamL2Decay] = static_cast<float>(weight_decay);
}

}  // namespace

void write_adamw_row(const StepHyper& hyper, double weight_decay, float* row) {
  const double correction1 = 1.0 - std::pow(hyper.beta1, static_cast<double>(hyper.step));
  const double correction2 = 1.0 - std::pow(hyper.beta2, static_cast<double>(hyper.step));
  row[ops::kAdamwDecay] = static_cast<float>(1.0 - hyper.learning_rate * weight_decay);
  row[ops::kAdamwBeta1] = static_cast<float>(hyper.beta1);
  row[ops::kAdamwOneMinusBeta1] = static_cast<float>(1.0 - hyper.beta1);
  row[ops::kAdamwBeta2] = static_cast<float>(hyper.beta2);
  row[ops::kAdamwOneMinusBeta2] = static_cast<float>(1.0 - hyper.beta2);
  row[ops::kAdamwEpsilon] = static_cast<float>(hyper.epsilon);
  row[ops::kAdamwStepSize] = static_cast<float>(hyper.learning_rate / correction1);
  row[ops::kAdamwSqrtCorrection2] = static_cast<float>(std::sqrt(correction2));
}

OptimizerGroup adamw_optimizers() {
  static constexpr std::string_view kSettings[] = {"adam_beta1", "adam_beta2", "adam_epsilon"};
  static constexpr OptimizerDef kDefs[] = {{.name = "adamw",
                                            .rule = adamw_rule,
                                            .num_fields = ops::kAdamwFields,
                                            .write_row = write_adamw_row,
                                            .settings = kSettings},
                                           {.name = "adam",
                                            .rule = adamw_rule,
                                            .num_fields = ops::kAdamwFields,
                                            .write_row = write_adam,
                                            .decays = false,
                                            .default_decay = 0,
                                            .settings = kSettings},
                                           {.name = "adam_l2",
                                            .rule = adam_l2_rule,
                                            .num_fields = ops::kAdamL2Fields,
                                            .write_row = write_adam_l2,
                                            .default_decay = 0,
                                            .settings = kSettings}};
  return kDefs;
}

}  // namespace plimsoll::optimizers
