#include "checkpoints/quantize_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>

#include "checkpoints/quantize_tensor.h"
#include "io/atomic_directory.h"
#include "io/hub_cache.h"
#include "io/tensor_convert.h"
#include "models/model.h"

namespace plimsoll::train {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopyBytes = size_t{1} << 20;
constexpr const char* kIndexFile = "model.safetensors.index.json";

/// The fields that transformers' BitsAndBytesConfig writes, with its defaults; a threshold without a point it
/// would refuse.
std::string quantization_config(const QuantizeRequest& request) {
  const bool is_int8 = request.format == QuantizedFormat::kInt8Rows;
  return fmt::format(
      R"({{"_load_in_4bit": {0}, "_load_in_8bit": {1}, "bnb_4bit_compute_dtype": "float32", )"
      R"("bnb_4bit_quant_storage": "uint8", "bnb_4bit_quant_type": "{2}", "bnb_4bit_use_double_quant": {3}, )"
      R"("llm_int8_enable_fp32_cpu_offload": false, "llm_int8_has_fp16_weight": false, )"
      R"("llm_int8_skip_modules": null, "llm_int8_threshold": 6.0, "load_in_4bit": {0}, "load_in_8bit": {1}, )"
      R"("quant_method": "bitsandbytes"}})",
      !is_int8, is_int8, request.format == QuantizedFormat::kNf4 ? "nf4" : "fp4",
      !is_int8 && request.double_quant);
}

/// The fields as one object with that member behind them; `text` is their JSON.
std::string with_member(std::string text, const std::string& member) {
  text.resize(text.rfind('}'));
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.pop_back();
  return text + (text.ends_with('{') ? "" : ",") + "\n  \"quantization_config\": " + member + "\n}\n";
}

class ModelQuantizer {
 public:
  explicit ModelQuantizer(const QuantizeRequest& request) : request_(request) {}

  Result<QuantizeReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, find_model_folder(request_.model));
    PLIMSOLL_TRY(check_output());
    PLIMSOLL_ASSIGN(const ConfigJson config, read_config_json(folder_ + "/config.json"));
    if (config.has("quantization_config"))
      return Error{ErrorCode::kBadData, "the model is quantised already", folder_,
                   "quantise the original; its config.json has no quantization_config"};
    PLIMSOLL_ASSIGN(ModelWeights weights, ModelWeights::open(folder_));
    weights_.emplace(std::move(weights));
    PLIMSOLL_TRY(choose(config));
    PLIMSOLL_ASSIGN(AtomicDirectory output, AtomicDirectory::create(request_.output));
    for (const SafetensorsFile& file : weights_->files()) PLIMSOLL_TRY(write_weights(file, output));
    PLIMSOLL_TRY(write_config(output, config));
    PLIMSOLL_TRY(copy_others(output));
    PLIMSOLL_TRY(output.publish());
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

 private:
  Status check_output() const {
    std::error_code code;
    if (!fs::exists(request_.output, code)) return Ok{};
    if (fs::equivalent(request_.output, folder_, code))
      return Error{ErrorCode::kInvalidArgument, "the quantised model would overwrite its source",
                   request_.output, "name another --output"};
    if (fs::is_directory(request_.output, code) && fs::is_empty(request_.output, code)) return Ok{};
    return Error{ErrorCode::kInvalidArgument, "the output is there already", request_.output,
                 "name another --output, or move it away"};
  }

  /// The matrices of the blocks, by the names that the files have for them.
  Status choose(const ConfigJson& config) {
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config));
    const std::string_view prefix = model->base_prefix();
    for (const models::Parameter& p : model->parameters()) {
      if (p.block == ir::kNoBlock || p.is_table) continue;
      for (const models::ParameterView& view : p.views) {
        if (view.shape.rank() != 2) continue;
        auto ref = weights_->find(view.name);
        if (!ref && view.name.starts_with(prefix))
          ref = weights_->find(std::string_view(view.name).substr(prefix.size()));
        if (!ref)
          return Error{ErrorCode::kBadData, "the model has no tensor " + view.name, folder_,
                       "config.json and the weights must be of one model"};
        PLIMSOLL_TRY(check_matrix(*ref, view));
        QuantizePlan plan{
            .format = request_.format, .nested = request_.double_quant, .transposed = p.transposed};
        if (request_.format == QuantizedFormat::kInt8Rows) plan.nested = false;
        if (plan.nested) {
          PLIMSOLL_ASSIGN(plan.offset, scales_mean(*ref, plan, request_.num_threads));
        }
        plans_.emplace(ref->tensor, plan);
      }
    }
    return Ok{};
  }

  [[nodiscard]] Status check_matrix(const WeightRef& ref, const models::ParameterView& view) const {
    const SafetensorsTensor& tensor = *ref.tensor;
    const bool is_read = float_format(tensor.dtype) && tensor.dtype != "F64";
    const auto dims = view.shape.dims();
    if (is_read && std::equal(dims.begin(), dims.end(), tensor.shape.begin(), tensor.shape.end()))
      return Ok{};
    return Error{ErrorCode::kBadData,
                 fmt::format("{} is {}, expected [{}, {}] of F32, BF16 or F16", shown_name(tensor.name),
                             to_string(tensor), dims[0], dims[1]),
                 folder_, "config.json and the weights must be of one model"};
  }

  /// What tensor i of a file becomes.
  [[nodiscard]] std::vector<SafetensorsEntry> entries_of(const SafetensorsTensor& tensor) const {
    const auto plan = plans_.find(&tensor);
    if (plan != plans_.end()) return quantized_entries(tensor, plan->second);
    return {{tensor.name, tensor.dtype, tensor.shape}};
  }

  Status write_weights(const SafetensorsFile& file, const AtomicDirectory& directory) {
    const std::string name = fs::path(file.path()).filename().string();
    std::vector<SafetensorsEntry> entries;
    for (const SafetensorsTensor& tensor : file.tensors())
      for (SafetensorsEntry& entry : entries_of(tensor)) {
        index_.emplace_back(entry.name, Tree::of(name));
        entries.push_back(std::move(entry));
      }
    PLIMSOLL_ASSIGN(const SafetensorsLayout layout, SafetensorsLayout::create(entries, {{"format", "pt"}}));
    PLIMSOLL_ASSIGN(OutputFile out, directory.create_file(name));
    PLIMSOLL_TRY(out.reserve(layout.file_bytes()));
    PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(layout.header))));
    size_t at = 0;
    for (const SafetensorsTensor& tensor : file.tensors())
      PLIMSOLL_TRY(write_tensor(file, tensor, layout, at, out));
    report_.num_tensors += static_cast<int64_t>(file.tensors().size());
    report_.bytes_before += file.size_bytes();
    report_.bytes += layout.file_bytes();
    payload_bytes_ += layout.ends.back();
    return out.close();
  }

  /// Writes what it becomes, entries `at` and on, and moves `at` behind them.
  Status write_tensor(const SafetensorsFile& file, const SafetensorsTensor& tensor,
                      const SafetensorsLayout& layout, size_t& at, OutputFile& out) {
    const auto plan = plans_.find(&tensor);
    if (plan == plans_.end()) return copy_bytes(file, tensor, layout.header_bytes() + layout.ends[at++], out);
    PLIMSOLL_ASSIGN(const QuantizedParts parts,
                    quantize_tensor({&file, &tensor}, plan->second, request_.num_threads));
    for (const auto& bytes : parts.bytes)
      PLIMSOLL_TRY(out.write_at(layout.header_bytes() + layout.ends[at++], bytes));
    ++report_.num_quantized;
    if (report_.largest_in.empty() || parts.largest_error > report_.largest_error) {
      report_.largest_error = parts.largest_error;
      report_.largest_in = tensor.name;
    }
    return Ok{};
  }

  static Status copy_bytes(const SafetensorsFile& file, const SafetensorsTensor& tensor, int64_t at,
                           OutputFile& out) {
    std::vector<std::byte> buffer(std::min(kCopyBytes, static_cast<size_t>(tensor.bytes)));
    for (int64_t done = 0; done < tensor.bytes; done += static_cast<int64_t>(buffer.size())) {
      const auto left = static_cast<size_t>(tensor.bytes - done);
      const auto piece = std::span(buffer).first(std::min(buffer.size(), left));
      PLIMSOLL_TRY(file.read(tensor, done, piece));
      PLIMSOLL_TRY(out.write_at(at + done, piece));
    }
    return Ok{};
  }

  static Status write_text(const AtomicDirectory& directory, const std::string& name, std::string_view text) {
    PLIMSOLL_ASSIGN(OutputFile out, directory.create_file(name));
    PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(text))));
    return out.close();
  }

  /// As it is spelt, and the new member.
  Status write_config(const AtomicDirectory& directory, const ConfigJson& config) const {
    PLIMSOLL_ASSIGN(std::string text, read_small_file(folder_ + "/config.json", int64_t{32} << 20));
    if (config.fields().find("quantization_config") != nullptr) {  // null: it would stand there twice
      Tree fields = config.fields();
      std::erase_if(fields.members, [](const auto& member) { return member.first == "quantization_config"; });
      text = to_json(fields);
    }
    return write_text(directory, "config.json", with_member(std::move(text), quantization_config(request_)));
  }

  /// The tokenizer and what else stands beside weights; the index of shards, with the new tensors.
  Status copy_others(const AtomicDirectory& directory) {
    std::error_code code;
    for (fs::directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
      const std::string name = it->path().filename().string(), suffix = it->path().extension().string();
      if (name.starts_with('.') || !it->is_regular_file() || name == "config.json" ||
          name.ends_with(".index.json"))
        continue;
      if (suffix != ".json" && suffix != ".model" && suffix != ".txt" && suffix != ".jinja") continue;
      PLIMSOLL_ASSIGN(const std::string text, read_small_file(it->path().string(), int64_t{256} << 20));
      PLIMSOLL_TRY(write_text(directory, name, text));
    }
    if (weights_->files().size() == 1 &&
        fs::path(weights_->files()[0].path()).filename() == "model.safetensors")
      return Ok{};
    const Tree index = Tree::map({{"metadata", Tree::map({{"total_size", Tree::of(payload_bytes_)}})},
                                  {"weight_map", Tree::map(std::move(index_))}});
    return write_text(directory, kIndexFile, to_json(index) + "\n");
  }

  const QuantizeRequest& request_;
  std::string folder_;
  std::optional<ModelWeights> weights_;
  std::map<const SafetensorsTensor*, QuantizePlan> plans_;
  std::vector<std::pair<std::string, Tree>> index_;
  int64_t payload_bytes_ = 0;
  QuantizeReport report_;
};

}  // namespace

Result<QuantizeReport> quantize_model(const QuantizeRequest& request) { return ModelQuantizer(request)(); }

}  // namespace plimsoll::train
