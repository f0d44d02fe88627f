#include "settings/state_settings.h"

#include <fmt/format.h>

#include "settings/state_formats.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

bool keeps_masters(const StateSettings& s) {
  return s.master_weights.value_or(s.weights != StateWord::kFp32);
}

/// Whether the update keeps anything in bf16 that it has nowhere in fp32.
bool keeps_bf16(const StateSettings& s) {
  return s.moments == MomentsWord::kBf16 || (s.weights == StateWord::kBf16 && !keeps_masters(s));
}

/// Weights and gradients are fp32, or what the products are computed in.
Status check_format(const char* name, StateWord format, Precision precision) {
  if (precision == Precision::kFp8) precision = Precision::kBf16;  // what all other products are computed in
  if (format == StateWord::kFp32 || word(format) == word(precision)) return Ok{};
  return wrong_setting(
      fmt::format("training.state.{} is {}, and training.precision is {}", name, word(format),
                  word(precision)),
      fmt::format("set training.precision={}, or training.state.{}=fp32", word(format), name));
}

Error inexact(const char* name, std::string_view now, std::string_view then) {
  return wrong_setting(
      fmt::format(
          "training.state.{} is {}, but the checkpoint was made with {}, which would have to be rounded",
          name, now, then),
      fmt::format("set training.state.{}={}, or start a new run with --resume never or another output.dir",
                  name, then));
}

optimizers::MomentCodes moment_codes(MomentsWord moments) {
  if (moments == MomentsWord::kFp8Lm) return optimizers::MomentCodes::kFp8Lm;
  return moments == MomentsWord::kCoat ? optimizers::MomentCodes::kCoat : optimizers::MomentCodes::kNone;
}

/// Codes are those of AdamW's two moments.
Status check_moment_codes(const TrainingSettings& training) {
  const bool has_codes = moment_codes(training.state.moments) != optimizers::MomentCodes::kNone;
  if (!has_codes || training.optimizer == "adamw" || training.optimizer == "adam") return Ok{};
  return wrong_setting(fmt::format("training.state.moments is {}, and training.optimizer is {}",
                                   word(training.state.moments), training.optimizer),
                       "set training.optimizer to adamw or adam, or training.state.moments to fp32");
}

}  // namespace

StateChoice state_choice(const TrainingSettings& training, bool adapters) {
  const StateSettings& s = training.state;
  return {state_format(s.weights).dtype,
          {.masters = keeps_masters(s) && !adapters,
           .gradients = state_format(s.gradients).dtype,
           .accumulators = state_format(s.accumulators).dtype,
           .moments = s.moments == MomentsWord::kBf16 ? ir::DType::kBf16 : ir::DType::kF32,
           .codes = moment_codes(s.moments),
           .stochastic = s.rounding != UpdateRounding::kNearest}};
}

std::vector<std::pair<std::string, std::string>> state_words(const TrainingSettings& training,
                                                             bool accumulates, bool adapters) {
  const StateSettings& s = training.state;
  std::vector<std::pair<std::string, std::string>> words = {
      {"weights", std::string(word(s.weights))},
      {"master_weights", keeps_masters(s) && !adapters ? "fp32" : "none"},
      {"gradients", std::string(word(accumulates ? s.accumulators : s.gradients)) +
                        (accumulates ? " accumulators" : "") +
                        (accumulates && s.accumulators != StateWord::kFp32
                             ? ", rounded stochastically: results depend on the number of micro-batches"
                             : "")},
      {"moments", std::string(word(s.moments))},
      {"rounding",
       keeps_bf16(s) ? (s.rounding == UpdateRounding::kNearest ? "nearest" : "stochastic") : "none"}};
  if (training.ema_decay) words.emplace_back("averages", "fp32");
  return words;
}

Status check_state(const TrainingSettings& training, std::vector<std::string>& notes) {
  const StateSettings& s = training.state;
  PLIMSOLL_TRY(check_format("weights", s.weights, training.precision));
  PLIMSOLL_TRY(check_format("gradients", s.gradients, training.precision));
  PLIMSOLL_TRY(check_moment_codes(training));
  if (s.weights == StateWord::kFp32 && s.master_weights.value_or(false))
    return wrong_setting(
        "training.state.master_weights is true, and the weights are fp32 themselves",
        "set training.state.weights=bf16 for masters of 16-bit weights, or master_weights=auto");
  if (s.weights == StateWord::kFp16 && !keeps_masters(s))
    return wrong_setting("training.state.weights is fp16 without masters, whose range no update fits in",
                         "set training.state.master_weights=true, or training.state.weights=bf16");
  if (training.ema_decay && s.weights != StateWord::kFp32)
    return wrong_setting("training.ema_decay averages fp32 weights, and training.state.weights is not fp32",
                         "leave one of them out");
  if (s.rounding != UpdateRounding::kAuto && !keeps_bf16(s))
    notes.push_back(fmt::format("training.state.rounding {} has no effect: no state is kept only in bf16",
                                word(s.rounding)));
  return Ok{};
}

Status check_conversion(const TrainingSettings& then, const TrainingSettings& now) {
  const StateSettings &a = then.state, &b = now.state;
  const bool is_coded = moment_codes(a.moments) != optimizers::MomentCodes::kNone;
  if (a.moments != b.moments && (is_coded || b.moments != MomentsWord::kFp32))
    return inexact("moments", word(b.moments), word(a.moments));
  const bool had_f32 = a.weights == StateWord::kFp32 || keeps_masters(a),
             has_f32 = b.weights == StateWord::kFp32 || keeps_masters(b);
  // What is frozen has no master to stay exact in.
  if (!now.freeze.empty() && a.weights == StateWord::kFp32 && b.weights != StateWord::kFp32)
    return inexact("weights", word(b.weights), word(a.weights));
  if (!had_f32 || has_f32) return Ok{};
  if (a.weights == StateWord::kFp32) return inexact("weights", word(b.weights), word(a.weights));
  return inexact("master_weights", "false", "true");
}

}  // namespace plimsoll::settings
