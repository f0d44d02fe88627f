#include "model_tools/merge_base.h"

#include <utility>

#include "checkpoints/load_weights.h"
#include "models/quantization_config.h"

namespace plimsoll::model_tools {

Result<MergeBase> MergeBase::open(const std::string& folder) {
  PLIMSOLL_ASSIGN(io::ModelWeights weights, io::ModelWeights::open(folder));
  PLIMSOLL_ASSIGN(io::ConfigJson config, io::read_config_json(folder + "/config.json"));
  MergeBase base(folder, std::move(config), std::move(weights));
  PLIMSOLL_ASSIGN(base.stored_, models::read_quantization_config(base.config_));
  PLIMSOLL_TRY(base.check());
  if (base.stored_) PLIMSOLL_TRY(base.find_quantized());
  return base;
}

/// What training would not load is not merged into either.
Status MergeBase::check() const {
  PLIMSOLL_ASSIGN(const auto model, models::make_model(config_));
  if (stored_) {
    models::QuantizeSpec spec = *stored_;
    spec.learns = false;
    PLIMSOLL_TRY(models::quantize(*model, spec));
  }
  return checkpoints::check_weights(*model, weights_);
}

Status MergeBase::find_quantized() {
  PLIMSOLL_ASSIGN(quantized_, checkpoints::find_quantized(weights_));
  PLIMSOLL_ASSIGN(const auto model, models::make_model(config_));
  for (const models::Parameter& p : model->parameters())
    for (const models::ParameterView& view : p.views)
      if (const auto ref = find(*model, view.name); ref && p.transposed) turned_.insert(ref->tensor);
  for (const auto& [name, tensor] : quantized_)
    for (const io::SafetensorsTensor* part : tensor.parts) part_of_.emplace(part, &tensor);
  return Ok{};
}

std::optional<io::WeightRef> MergeBase::find(const models::Model& model, std::string_view view) const {
  auto ref = weights_.find(view);
  const std::string_view prefix = model.base_prefix();
  if (!ref && view.starts_with(prefix)) ref = weights_.find(view.substr(prefix.size()));
  return ref;
}

bool MergeBase::is_part(const io::SafetensorsTensor* tensor) const {
  const auto found = part_of_.find(tensor);
  return found != part_of_.end() && found->second->weight.tensor != tensor;
}

/// Of a matrix in few bits, the dtype that it was made from, as far as that is said.
std::string MergeBase::plain_dtype(const checkpoints::QuantizedTensor& tensor) const {
  std::string name = tensor.source_dtype;
  for (const char* field : {"dtype", "torch_dtype"})
    if (const io::Tree* value = config_.fields().find(field); name.empty() && value != nullptr)
      name = value->text;
  return name == "bfloat16" ? "BF16" : name == "float16" ? "F16" : "F32";
}

io::SafetensorsEntry MergeBase::entry_of(const io::WeightRef& ref) const {
  const auto found = part_of_.find(ref.tensor);
  if (found == part_of_.end()) return {ref.tensor->name, ref.tensor->dtype, ref.tensor->shape};
  io::SafetensorsEntry entry{ref.tensor->name, plain_dtype(*found->second), found->second->shape};
  if (turned_.contains(ref.tensor)) std::swap(entry.shape[0], entry.shape[1]);
  return entry;
}

Result<checkpoints::BaseTensor> MergeBase::tensor_of(const io::WeightRef& ref) const {
  const auto found = part_of_.find(ref.tensor);
  if (found == part_of_.end()) return checkpoints::BaseTensor::plain(ref);
  return checkpoints::BaseTensor::dequantised(*found->second, plain_dtype(*found->second),
                                              turned_.contains(ref.tensor));
}

}  // namespace plimsoll::model_tools
