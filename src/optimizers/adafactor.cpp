// Adafactor, Shazeer & Stern 2018, arXiv:1804.04235, as transformers.optimization.Adafactor computes it: a
// matrix's second moment is a row and a column, those of a convolution are so for each output and input; no
// first moment unless beta1 is given.
#include <algorithm>
#include <cmath>

#include "ops/tensor_rules.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

std::string_view adafactor_rule(const Ruled& parameter) {
  if (parameter.kind == ir::ParameterKind::kStack) return {};  // map by map: not in this version
  if (parameter.kind == ir::ParameterKind::kFilters)
    return parameter.momentum ? "adafactor_filters_moment" : "adafactor_filters";
  if (parameter.kind == ir::ParameterKind::kVector)
    return parameter.momentum ? "adafactor_vector_moment" : "adafactor_vector";
  return parameter.momentum ? "adafactor_moment" : "adafactor";
}

double rate_of(const StepHyper& hyper) {
  const AdafactorHyper& a = hyper.adafactor;
  if (!a.relative_step) return hyper.learning_rate;
  const auto step = static_cast<double>(hyper.step);
  return std::min(a.warmup_init ? 1e-6 * step : 1e-2, 1.0 / std::sqrt(step));
}

void write_adafactor_row(const StepHyper& hyper, double weight_decay, float* row) {
  const AdafactorHyper& a = hyper.adafactor;
  const double one_minus_beta2 = std::pow(static_cast<double>(hyper.step), a.decay_rate);
  row[ops::kAdafactorRate] = static_cast<float>(rate_of(hyper));
  row[ops::kAdafactorDecay] = static_cast<float>(weight_decay);
  row[ops::kAdafactorBeta2] = static_cast<float>(1.0 - one_minus_beta2);
  row[ops::kAdafactorOneMinusBeta2] = static_cast<float>(one_minus_beta2);
  row[ops::kAdafactorEpsilon1] = static_cast<float>(a.eps[0]);
  row[ops::kAdafactorEpsilon2] = static_cast<float>(a.eps[1]);
  row[ops::kAdafactorThreshold] = static_cast<float>(a.clip_threshold);
  row[ops::kAdafactorScale] = a.scale_parameter ? 1.0F : 0.0F;
  row[ops::kAdafactorBeta1] = static_cast<float>(a.beta1.value_or(0.0));
  row[ops::kAdafactorOneMinusBeta1] = static_cast<float>(1.0 - a.beta1.value_or(0.0));
}

}  // namespace

OptimizerGroup adafactor_optimizers() {
  static constexpr std::string_view kSettings[] = {"adafactor."};
  static constexpr OptimizerDef kDefs[] = {{.name = "adafactor",
                                            .rule = adafactor_rule,
                                            .num_fields = ops::kAdafactorFields,
                                            .write_row = write_adafactor_row,
                                            .default_decay = 0,
                                            .settings = kSettings}};
  return kDefs;
}

}  // namespace plimsoll::optimizers
