// Stochastic gradient descent, with momentum, dampening and Nesterov's form, as torch.optim.SGD computes it:
// decay is added to the gradient, and the first step's buffer is the gradient, undampened.
#include "ops/update_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

std::string_view sgd_rule(const Ruled& parameter) { return parameter.momentum ? "sgd_momentum" : "sgd"; }

void write_sgd(const StepHyper& hyper, double weight_decay, float* row) {
  row[ops::kSgdRate] = static_cast<float>(hyper.learning_rate);
  row[ops::kSgdWeightDecay] = static_cast<float>(weight_decay);
  row[ops::kSgdMomentum] = static_cast<float>(hyper.momentum);
  row[ops::kSgdFresh] = static_cast<float>(hyper.step == 1 ? 1.0 : 1.0 - hyper.dampening);
  row[ops::kSgdNesterov] = hyper.nesterov ? 1.0F : 0.0F;
}

}  // namespace

OptimizerGroup sgd_optimizers() {
  static constexpr std::string_view kSettings[] = {"momentum", "dampening", "nesterov"};
  static constexpr OptimizerDef kDefs[] = {{.name = "sgd",
                                            .rule = sgd_rule,
                                            .num_fields = ops::kSgdFields,
                                            .write_row = write_sgd,
                                            .default_decay = 0,
                                            .settings = kSettings}};
  return kDefs;
}

}  // namespace plimsoll::optimizers
