// Muon, Jordan 2024, kellerjordan.github.io/posts/muon, as torch.optim.Muon computes it, on the matrices of
// the repeated blocks; embeddings, head and vectors take AdamW's rule, at the same rate.
#include "ops/tensor_rules.h"
#include "optimizers/adamw_row.h"
#include "optimizers/optimizer_list.h"

namespace plimsoll::optimizers {
namespace {

std::string_view muon_rule(const Ruled& parameter) {
  if (parameter.kind == ir::ParameterKind::kStack) return {};  // map by map: not in this version
  return parameter.is_hidden && parameter.kind == ir::ParameterKind::kLinear ? "muon" : "adamw";
}

void write_muon_row(const StepHyper& hyper, double weight_decay, float* row) {
  write_adamw_row(hyper, weight_decay, row);
  row[ops::kMuonRate] = static_cast<float>(hyper.learning_rate);
  row[ops::kMuonDecay] = static_cast<float>(1.0 - hyper.learning_rate * weight_decay);
  row[ops::kMuonMomentum] = static_cast<float>(hyper.muon.momentum);
  row[ops::kMuonOneMinusMomentum] = static_cast<float>(1.0 - hyper.muon.momentum);
  row[ops::kMuonNesterov] = hyper.muon.nesterov ? 1.0F : 0.0F;
  row[ops::kMuonMatchesRms] = hyper.muon.adjust_lr_fn == "match_rms_adamw" ? 1.0F : 0.0F;
}

}  // namespace

OptimizerGroup muon_optimizers() {
  static constexpr std::string_view kSettings[] = {"muon.", "adam_beta1", "adam_beta2", "adam_epsilon"};
  static constexpr OptimizerDef kDefs[] = {{.name = "muon",
                                            .rule = muon_rule,
                                            .num_fields = ops::kMuonFields,
                                            .write_row = write_muon_row,
                                            .settings = kSettings}};
  return kDefs;
}

}  // namespace plimsoll::optimizers
