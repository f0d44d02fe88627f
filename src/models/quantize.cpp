#include "models/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "io/suggest.h"
#include "models/lora_targets.h"
#include "models/module_names.h"
#include "models/quantization_config.h"

namespace plimsoll::models {
namespace {

Error wrong(std::string what, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), {}, std::move(hint)};
}

/// LoftQ's bits are those that the maps are kept in, and of an adapter's file the very codes.
Status check_loftq(const Loftq& loftq, const QuantizeSpec& spec) {
  const int64_t bits = spec.dtype == ir::DType::kI8Rows ? 8 : 4;
  if (loftq.bits != 0 && loftq.bits != bits)
    return wrong(fmt::format("lora.loftq_config.loftq_bits is {}, and the weights are quantized to {} bits",
                             loftq.bits, bits),
                 loftq.bits == 8 ? "set quantization={load_in_8bit: true}, or loftq_bits to 4"
                                 : "set quantization={load_in_4bit: true}, or loftq_bits to 8");
  constexpr const char* kAsItSays =
      "take the base as the adapter_config.json's loftq_config says: quantization with that code, or the "
      "original";
  if (loftq.dtype && *loftq.dtype != spec.dtype)
    return wrong(fmt::format("the adapter was initialised with LoftQ for weights in {}, and they are in {}",
                             quantized_name(*loftq.dtype), quantized_name(spec.dtype)),
                 kAsItSays);
  if (loftq.dtype && !spec.stored && loftq.skip_modules != spec.skip_modules)
    return wrong(
        "the adapter was initialised with LoftQ for another list of quantization.llm_int8_skip_modules",
        kAsItSays);
  if (spec.stored && loftq.iterations > 1)
    return wrong(
        fmt::format("LoftQ in {} iterations rounds the original weights, and the model's files are quantized",
                    loftq.iterations),
        "take the original model with quantization");
  return Ok{};
}

/// Adapters that read the weights as numbers.
Status check_adapters(const Adapters& adapters, const QuantizeSpec& spec) {
  if (adapters.factors == Factors::kNone) return Ok{};
  if (adapters.factors == Factors::kLoftq) return check_loftq(adapters.loftq, spec);
  if (!spec.stored) return Ok{};
  return wrong(
      "lora.init_lora_weights computes the adapters from the original weights, and the model's files are "
      "quantized",
      "take the original model with quantization, or set lora.init_lora_weights=true");
}

/// transformers' rule for a name in a directory's list: a pattern of the module or of what it lies in, from
/// the start, or what its name ends with, dot or none.
bool is_skipped_by(const std::string& module, const std::string& name) {
  if (module.ends_with(name)) return true;
  return matches({.names = {"(?:" + name + ")(?:\\..*)?"}, .is_pattern = true}, module);
}

/// A stack that would have to be quantised map by map: nothing does so yet. A directory's files have it
/// whole.
Status check_stacks(const Model& model, const std::function<bool(const ParameterView&)>& takes, bool learns) {
  for (const Parameter& p : model.parameters()) {
    if (p.kind != ParameterKind::kStack || p.block < 0 || (learns && p.trained)) continue;
    const auto taken = std::ranges::find_if(p.views, takes);
    if (taken != p.views.end())
      return wrong(fmt::format("{} is a stack of linear layers {}, which is not quantized in this version",
                               taken->name, ir::to_string(p.shape)),
                   "name its module in quantization.llm_int8_skip_modules");
  }
  return Ok{};
}

/// Of what the files have in few bits nothing may learn.
Status check_frozen(const Model& model, const std::function<bool(const ParameterView&)>& takes) {
  for (const Parameter& p : model.parameters()) {
    if (!p.trained || !is_linear_map(p)) continue;
    const auto taken = std::ranges::find_if(p.views, takes);
    if (taken != p.views.end())
      return wrong(
          taken->name + " is to be trained, and the model's files have it quantized",
          "leave it out of lora.modules_to_save and training.unfreeze, or train on the original model");
  }
  return Ok{};
}

}  // namespace

Status quantize(Model& model, const QuantizeSpec& spec) {
  if (model.adapters()) PLIMSOLL_TRY(check_adapters(*model.adapters(), spec));
  std::vector<std::string> modules;
  for (const Parameter& p : model.parameters())
    for (const ParameterView& view : p.views)
      if (!p.is_adapter && p.kind != ParameterKind::kVector) modules.push_back(module_of(view.name));
  for (const std::string& name : spec.skip_modules)
    if (!spec.stored &&  // a directory names what other families have too, lm_head where it is tied
        std::ranges::none_of(modules, [&](const std::string& m) { return is_within(m, name); })) {
      const std::string near = io::nearest_name(name, modules);
      return wrong(
          fmt::format("quantization.llm_int8_skip_modules: no linear layer is named {}", name.substr(0, 100)),
          near.empty() ? "name modules as the model has them, like layers.0.mlp.down_proj"
                       : "the nearest is " + near);
    }
  const auto takes = [&](const ParameterView& view) {
    const std::string module = module_of(view.name);
    return std::ranges::none_of(spec.skip_modules, [&](const std::string& name) {
      return spec.stored ? is_skipped_by(module, name) : is_within(module, name);
    });
  };
  const bool learns = spec.learns || model.adapters();
  if (spec.stored && learns) PLIMSOLL_TRY(check_frozen(model, takes));
  if (!spec.stored) PLIMSOLL_TRY(check_stacks(model, takes, learns));
  if (model.quantize(spec.dtype, takes, learns, spec.stored) == 0)
    return wrong("quantization has no effect: no linear layer of the model is frozen",
                 "train adapters instead (lora: {r: 16}), or leave quantization out");
  return Ok{};
}

Status check_whole(const Model& model) {
  if (!model.adapters() || model.adapters()->factors != Factors::kLoftq) return Ok{};
  return wrong(
      "lora.init_lora_weights is loftq, which compensates the quantization error, and the weights are not "
      "quantized",
      "set quantization={load_in_4bit: true}, or lora.init_lora_weights=true");
}

}  // namespace plimsoll::models
