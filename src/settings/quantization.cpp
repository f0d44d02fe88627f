#include "settings/quantization.h"

#include <fmt/format.h>

#include "models/quantization_config.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

/// The words that BitsAndBytesConfig has for what products are computed in, against training.precision's.
bool agrees(const std::string& word, const RunConfig& config) {
  if (word == "auto") return true;
  const Precision precision = config.training.precision;
  if (word == "bfloat16") return precision == Precision::kBf16;
  if (word == "float16") return precision == Precision::kFp16;
  return precision != Precision::kBf16 && precision != Precision::kFp16;
}

constexpr const char* kAdaptersBeside = "train adapters instead: lora: {r: 16, target_modules: all-linear}";

/// What is said of the files a second time must be what they have.
Status check_agrees(const QuantizationSettings& settings, const models::QuantizeSpec& stored) {
  const auto given = quantize_spec(settings);
  constexpr const char* kLeaveOut = "leave quantization out: the model's files decide it";
  if (!given) return Ok{};
  if (given->dtype != stored.dtype)
    return wrong_setting(
        fmt::format("quantization is {}, and the model's files are already quantized to {}",
                    models::quantized_name(given->dtype), models::quantized_name(stored.dtype)),
        kLeaveOut);
  if (!given->skip_modules.empty() && given->skip_modules != stored.skip_modules)
    return wrong_setting("quantization.llm_int8_skip_modules differs from the list of the model's files",
                         kLeaveOut);
  return Ok{};
}

}  // namespace

std::optional<models::QuantizeSpec> quantize_spec(const QuantizationSettings& s) {
  if (!s.quantizes()) return std::nullopt;
  const bool is_fp4 = s.bnb_4bit_quant_type == "fp4";
  const ir::DType single = is_fp4 ? ir::DType::kFp4 : ir::DType::kNf4;
  const ir::DType twice = is_fp4 ? ir::DType::kFp4Double : ir::DType::kNf4Double;
  return models::QuantizeSpec{s.load_in_8bit                ? ir::DType::kI8Rows
                              : s.bnb_4bit_use_double_quant ? twice
                                                            : single,
                              /*learns=*/true, s.llm_int8_skip_modules};
}

Result<models::QuantizeSpec> settle_stored(const RunConfig& config, models::QuantizeSpec stored,
                                           bool trains) {
  PLIMSOLL_TRY(check_agrees(config.quantization, stored));
  const auto refused = [&](const std::string& what, const char* hint) {
    return wrong_setting(
        fmt::format("{} is quantized, to {}, {}", config.model.path.empty() ? "the model" : config.model.path,
                    models::quantized_name(stored.dtype), what),
        hint);
  };
  if (trains && !config.lora.enabled)
    return refused("and lora is not set: quantized weights cannot be trained themselves", kAdaptersBeside);
  const std::string& init = config.lora.init_lora_weights;
  if (trains && config.lora.adapter.empty() &&
      (init == "olora" || init == "loftq" || init.starts_with("pissa")))
    return refused("and lora.init_lora_weights takes the adapters from the original weights",
                   "set lora.init_lora_weights=true, or take the original model with quantization");
  if (!starts_pretrained(config.model))
    return refused(
        "and weights are drawn at random: there are no codes to take",
        "name the folder that has them in model.path, or set quantization with the original's config");
  stored.learns = trains;
  return stored;
}

Status check_quantization(const RunConfig& config) {
  const QuantizationSettings& s = config.quantization;
  if (!s.quantizes()) return Ok{};
  if (s.load_in_4bit && s.load_in_8bit)
    return wrong_setting(
        "quantization.load_in_4bit and load_in_8bit are both true, and weights are kept once",
        "leave one of them out");
  if (s.load_in_4bit && !agrees(s.bnb_4bit_compute_dtype, config))
    return wrong_setting(
        fmt::format("quantization.bnb_4bit_compute_dtype is {}, and training.precision is another",
                    s.bnb_4bit_compute_dtype),
        "leave it out: products are computed in training.precision");
  return Ok{};
}

Status check_quantized_use(const RunConfig& config, RunUse use) {
  if (!config.quantization.quantizes() || use == RunUse::kPlan) return Ok{};
  if (use == RunUse::kTraining && !config.lora.enabled)
    return wrong_setting("quantization is set without lora: quantized weights cannot be trained themselves",
                         kAdaptersBeside);
  if (!starts_pretrained(config.model))
    return wrong_setting("quantization is set, and weights are drawn at random: there are none to quantize",
                         "write such a model with plimsoll init, and name its folder in model.path");
  return Ok{};
}

}  // namespace plimsoll::settings
