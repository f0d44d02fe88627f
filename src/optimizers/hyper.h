// Hyper-parameters that one optimizer alone has: settings of its section and fields of a step's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll::optimizers {

/// training.adafactor, as transformers.optimization.Adafactor names them; the defaults are those of the
/// Trainer.
struct AdafactorHyper {
  bool scale_parameter = false;  ///< the rate is relative to the tensor's root mean square
  bool relative_step = false;    ///< the rate follows from the step: min(1e-2, 1 / sqrt(step))
  bool warmup_init = false;      ///< with relative_step: min(1e-6 * step, 1 / sqrt(step))
  double clip_threshold = 1.0;   ///< of the update's root mean square
  double decay_rate = -0.8;      ///< beta2 is 1 - step^decay_rate
  std::optional<double> beta1 = {};
  /// Added to each squared gradient, and the least root mean square that scale_parameter takes.
  std::array<double, 2> eps = {1e-30, 1e-3};
};

/// training.muon, as torch.optim.Muon names them.
struct MuonHyper {
  double momentum = 0.95;
  bool nesterov = true;
  int64_t ns_steps = 5;  ///< of Newton and Schulz
  /// "original", or "match_rms_adamw", at which one rate serves AdamW's parameters too
  std::string adjust_lr_fn = "original";
};

}  // namespace plimsoll::optimizers
