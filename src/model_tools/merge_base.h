// The base of a merge: its tensors, and the dtypes and shapes that quantized ones are written in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoints/base_tensor.h"
#include "io/model_config.h"
#include "io/model_weights.h"
#include "io/safetensors_writer.h"
#include "models/model.h"
#include "models/quantize.h"

namespace plimsoll::model_tools {

class MergeBase {
 public:
  /// Errors: kBadData as training's of a folder that it would not load.
  static Result<MergeBase> open(const std::string& folder);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const io::ConfigJson& config() const { return config_; }
  [[nodiscard]] const io::ModelWeights& weights() const { return weights_; }
  /// How the base is quantized, where it is.
  [[nodiscard]] const std::optional<models::QuantizeSpec>& stored() const { return stored_; }
  [[nodiscard]] const std::map<std::string, checkpoints::QuantizedTensor>& quantized() const {
    return quantized_;
  }

  /// The tensor of a parameter's view, by the name that the base's files have for it.
  [[nodiscard]] std::optional<io::WeightRef> find(const models::Model& model, std::string_view view) const;
  /// Whether the tensor is a quantized one, or a part of it.
  [[nodiscard]] bool is_quantized(const io::SafetensorsTensor* tensor) const {
    return part_of_.contains(tensor);
  }
  /// Whether it is such a part that is not written by itself: codes' scales.
  [[nodiscard]] bool is_part(const io::SafetensorsTensor* tensor) const;
  /// The tensor without its values: of a quantized one what it becomes.
  [[nodiscard]] io::SafetensorsEntry entry_of(const io::WeightRef& ref) const;
  [[nodiscard]] Result<checkpoints::BaseTensor> tensor_of(const io::WeightRef& ref) const;

 private:
  MergeBase(std::string folder, io::ConfigJson config, io::ModelWeights weights)
      : folder_(std::move(folder)), config_(std::move(config)), weights_(std::move(weights)) {}
  Status find_quantized();
  [[nodiscard]] Status check() const;
  [[nodiscard]] std::string plain_dtype(const checkpoints::QuantizedTensor& tensor) const;

  std::string folder_;
  io::ConfigJson config_;
  io::ModelWeights weights_;
  std::optional<models::QuantizeSpec> stored_;
  std::map<std::string, checkpoints::QuantizedTensor> quantized_;
  std::map<const io::SafetensorsTensor*, const checkpoints::QuantizedTensor*> part_of_;
  std::set<const io::SafetensorsTensor*> turned_;  ///< GPT-2's, which are [in, out] where they are whole
};

}  // namespace plimsoll::model_tools
