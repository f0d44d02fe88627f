#include "model_tools/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "checkpoints/load_weights.h"
#include "checkpoints/quantize_tensor.h"
#include "io/adapter_folder.h"
#include "io/json.h"
#include "io/tensor_convert.h"
#include "model_tools/rewrite_model.h"
#include "models/lora_targets.h"
#include "models/quantize.h"

namespace plimsoll::model_tools {
namespace {

/// The fields that transformers' BitsAndBytesConfig writes, with its defaults; a threshold without a point it
/// would refuse.
std::string quantization_config(const QuantizeRequest& request, const std::vector<std::string>& skipped) {
  std::vector<io::Tree> names;
  for (const std::string& name : skipped) names.push_back(io::Tree::of(name));
  const bool is_int8 = request.format == checkpoints::QuantizedFormat::kInt8Rows;
  return fmt::format(
      R"({{"_load_in_4bit": {0}, "_load_in_8bit": {1}, "bnb_4bit_compute_dtype": "float32", )"
      R"("bnb_4bit_quant_storage": "uint8", "bnb_4bit_quant_type": "{2}", "bnb_4bit_use_double_quant": {3}, )"
      R"("llm_int8_enable_fp32_cpu_offload": false, "llm_int8_has_fp16_weight": false, )"
      R"("llm_int8_skip_modules": {4}, "llm_int8_threshold": 6.0, "load_in_4bit": {0}, "load_in_8bit": {1}, )"
      R"("quant_method": "bitsandbytes"}})",
      !is_int8, is_int8, request.format == checkpoints::QuantizedFormat::kNf4 ? "nf4" : "fp4",
      !is_int8 && request.double_quant,
      names.empty() ? "null" : io::to_json(io::Tree::list(std::move(names))));
}

class ModelQuantizer : public TensorRewrite {
 public:
  explicit ModelQuantizer(const QuantizeRequest& request) : request_(request) {}

  Result<QuantizeReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, io::find_whole_model(request_.model));
    PLIMSOLL_TRY(check_rewrite_output(folder_, request_.output, "quantized model"));
    PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(folder_ + "/config.json"));
    if (config.has("quantization_config"))
      return Error{ErrorCode::kBadData, "the model is already quantized", folder_,
                   "quantize the original; its config.json has no quantization_config"};
    PLIMSOLL_ASSIGN(io::ModelWeights weights, io::ModelWeights::open(folder_));
    weights_.emplace(std::move(weights));
    PLIMSOLL_TRY(choose(config));
    PLIMSOLL_ASSIGN(const RewriteReport written, rewrite_model(*weights_, request_.output, *this));
    report_.num_tensors = written.num_read;
    report_.bytes_before = written.bytes_before;
    report_.bytes = written.bytes;
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

  [[nodiscard]] std::vector<io::SafetensorsEntry> entries(const io::WeightRef& ref) const override {
    const auto plan = plans_.find(ref.tensor);
    return plan != plans_.end() ? checkpoints::quantized_entries(*ref.tensor, plan->second)
                                : TensorRewrite::entries(ref);
  }

  Status write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out) override {
    const auto plan = plans_.find(ref.tensor);
    if (plan == plans_.end()) return TensorRewrite::write(ref, at, out);
    PLIMSOLL_ASSIGN(const checkpoints::QuantizedParts parts,
                    checkpoints::quantize_tensor(ref, plan->second, request_.num_threads));
    for (size_t i = 0; i < parts.bytes.size(); ++i) PLIMSOLL_TRY(out.write_at(at[i], parts.bytes[i]));
    ++report_.num_quantized;
    if (report_.largest_in.empty() || parts.largest_error > report_.largest_error) {
      report_.largest_error = parts.largest_error;
      report_.largest_in = ref.tensor->name;
    }
    return Ok{};
  }

  [[nodiscard]] Result<std::string> config(const io::ConfigJson& /*config*/,
                                           std::string text) const override {
    return with_quantization(std::move(text), quantization_config(request_, skipped_));
  }

 private:
  /// The matrices of the blocks, by the names that the files have for them.
  Status choose(const io::ConfigJson& config) {
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config));
    PLIMSOLL_ASSIGN(const auto refs, matched(*model));
    PLIMSOLL_TRY(models::quantize(
        *model, {.dtype = ir::DType::kNf4, .learns = false, .skip_modules = request_.skip_modules}));
    for (const models::Parameter& p : model->parameters()) {
      if (!ir::is_block(p.dtype)) {
        add_skipped(p);
        continue;
      }
      for (const models::ParameterView& view : p.views) {
        const io::WeightRef& ref = refs.at(view.name);
        PLIMSOLL_TRY(check_matrix(ref));
        checkpoints::QuantizePlan plan{
            .format = request_.format, .nested = request_.double_quant, .transposed = p.transposed};
        if (request_.format == checkpoints::QuantizedFormat::kInt8Rows) plan.nested = false;
        if (plan.nested) {
          PLIMSOLL_ASSIGN(plan.offset, checkpoints::scales_mean(ref, plan, request_.num_threads));
        }
        plans_.emplace(ref.tensor, plan);
      }
    }
    // Beside a list transformers does not add the head by itself.
    if (!skipped_.empty()) skipped_.emplace_back(model->num_labels() > 0 ? "score" : "lm_head");
    return Ok{};
  }

  /// The tensors by the model's names for them, once they are found to be the model's, as for training.
  [[nodiscard]] Result<std::map<std::string, io::WeightRef>> matched(const models::Model& model) const {
    PLIMSOLL_ASSIGN(const checkpoints::WeightMatch match, checkpoints::match_weights(model, *weights_));
    PLIMSOLL_TRY(checkpoints::check_match(match, *weights_));
    if (!match.parts.empty())
      return Error{ErrorCode::kInvalidArgument, "one tensor of these files holds query, key and value",
                   folder_, "quantize a directory of transformers: training writes one to final/"};
    std::map<std::string, io::WeightRef> refs;
    for (const checkpoints::WeightSource& source : match.sources)
      refs.emplace(source.view->name, source.weight);
    return refs;
  }

  void add_skipped(const models::Parameter& p) {
    if (!models::is_linear_map(p)) return;
    for (const models::ParameterView& view : p.views) skipped_.push_back(models::module_of(view.name));
  }

  [[nodiscard]] Status check_matrix(const io::WeightRef& ref) const {
    const io::SafetensorsTensor& tensor = *ref.tensor;
    if (tensor.dtype != "F64") return Ok{};
    return Error{
        ErrorCode::kBadData,
        fmt::format("{} is {}, expected F32, BF16 or F16", io::shown_name(tensor.name), to_string(tensor)),
        folder_, "save the model in one of these"};
  }

  const QuantizeRequest& request_;
  std::string folder_;
  std::optional<io::ModelWeights> weights_;
  std::map<const io::SafetensorsTensor*, checkpoints::QuantizePlan> plans_;
  std::vector<std::string> skipped_;  ///< modules, as config.json names them
  QuantizeReport report_;
};

}  // namespace

Result<QuantizeReport> quantize_model(const QuantizeRequest& request) { return ModelQuantizer(request)(); }

}  // namespace plimsoll::model_tools
