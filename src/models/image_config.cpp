#include "models/image_config.h"

#include <algorithm>

namespace plimsoll::models {

Result<ImageExtent> read_extent(const io::ConfigJson& config, std::string_view field, int64_t if_missing) {
  PLIMSOLL_ASSIGN(const std::vector<int64_t> sides, config.integers(field, {1, kMostPixels}));
  if (sides.empty()) return ImageExtent{if_missing, if_missing};
  if (sides.size() > 2) return config.error(field, "a side in pixels, or [height, width]");
  return ImageExtent{sides.front(), sides.back()};
}

Result<ops::Gelu> read_gelu(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(const std::string name, config.string("hidden_act", "gelu"));
  const ops::GeluForm* form = ops::find_gelu_by_name(name);
  if (form == nullptr)
    return config.error("hidden_act", "one of " + ops::gelu_names(), "other activations are not supported");
  return form->form;
}

Result<std::vector<int64_t>> read_stages(const io::ConfigJson& config, std::string_view field, int64_t most,
                                         std::vector<int64_t> if_missing) {
  if (!config.has(field)) return if_missing;
  constexpr size_t kMostStages = 64;
  PLIMSOLL_ASSIGN(std::vector<int64_t> stages, config.integers(field, {1, most}));
  if (config.fields().find(field)->kind != io::Tree::Kind::kList || stages.empty() ||
      stages.size() > kMostStages)
    return config.error(field, "a list with a number for each of at most 64 stages");
  return stages;
}

std::vector<std::string> finish_image_config(const io::ConfigJson& config) {
  config.ignore({"architectures", "model_type", "torch_dtype", "dtype", "transformers_version",
                 "_name_or_path", "name_or_path", "quantization_config", "gradient_checkpointing",
                 "finetuning_task", "return_dict", "output_attentions", "output_hidden_states",
                 // Read where images are prepared.
                 "pretrained_cfg",
                 // Of backbones that detectors are built on.
                 "out_features", "out_indices", "stage_names", "_out_features", "_out_indices",
                 "apply_layernorm", "reshape_hidden_states"});
  return config.unread_fields();
}

}  // namespace plimsoll::models
