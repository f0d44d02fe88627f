#include "model_tools/merge_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "checkpoints/adapter_change.h"
#include "checkpoints/adapter_files.h"
#include "checkpoints/base_tensor.h"
#include "checkpoints/load_weights.h"
#include "checkpoints/tensor_files.h"
#include "io/adapter_folder.h"
#include "io/model_weights.h"
#include "io/parallel.h"
#include "io/safetensors_writer.h"
#include "io/tensor_convert.h"
#include "model_tools/rewrite_model.h"
#include "models/language_model.h"
#include "models/lora.h"
#include "models/lora_config.h"
#include "models/quantization_config.h"
#include "models/quantize.h"
#include "models/selection.h"
#include "numerics/convert.h"

namespace plimsoll::model_tools {
namespace {

constexpr int64_t kBlockValues = 1 << 18;
constexpr int64_t kProvenRows = 8;

Error refused(std::string what, std::string where, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
}

class Merger : public TensorRewrite {
 public:
  explicit Merger(const MergeRequest& request) : request_(request) {}

  Result<MergeReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, io::find_whole_model(request_.model));
    PLIMSOLL_TRY(check_rewrite_output(folder_, request_.output, "merged model"));
    PLIMSOLL_ASSIGN(io::ModelWeights weights, io::ModelWeights::open(folder_));
    weights_.emplace(std::move(weights));
    PLIMSOLL_TRY(find_bases());
    for (const auto& [named, weight] : request_.adapters) {
      PLIMSOLL_ASSIGN(const std::string directory, io::find_adapter_folder(named));
      if (const auto other = io::other_base_note(directory, folder_)) report_.notes.push_back(*other);
      PLIMSOLL_TRY(add_adapter(directory, weight));
    }
    PLIMSOLL_ASSIGN(const RewriteReport written, rewrite_model(*weights_, request_.output, *this));
    report_.num_tensors = written.num_written;
    report_.bytes = written.bytes;
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

  [[nodiscard]] std::vector<io::SafetensorsEntry> entries(const io::WeightRef& ref) const override {
    if (ref.tensor == tied_copy_) return {};
    const auto found = part_of_.find(ref.tensor);
    if (found != part_of_.end() && found->second->weight.tensor != ref.tensor) return {};
    return {entry_of(ref)};
  }

  Status write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out) override {
    if (at.empty()) return Ok{};
    if (const auto grown = resized_.find(ref.tensor); grown != resized_.end())
      return write_resized(ref, grown->second, at[0], out);
    const bool is_changed = changes_.contains(ref.tensor);
    if (!is_changed && !part_of_.contains(ref.tensor)) return TensorRewrite::write(ref, at, out);
    report_.num_changed += is_changed ? 1 : 0;
    PLIMSOLL_ASSIGN(const checkpoints::BaseTensor base, base_of(ref));
    PLIMSOLL_ASSIGN(const auto loaded, load_all(changes_of(ref.tensor), base));
    const int64_t rows = base.shape()[0], block = std::max<int64_t>(1, kBlockValues / base.num_columns());
    return io::in_parallel(static_cast<size_t>((rows + block - 1) / block), request_.num_threads,
                           [&](size_t i, size_t) -> Status {
                             const int64_t first = static_cast<int64_t>(i) * block;
                             return write_rows(base, loaded, first, std::min(block, rows - first), at[0],
                                               out);
                           });
  }

  [[nodiscard]] Result<std::string> config(const io::ConfigJson& /*config*/,
                                           std::string text) const override {
    if (vocab_size_) text = with_member(std::move(text), "vocab_size", std::to_string(*vocab_size_));
    return quantized_.empty() ? text : with_quantization(std::move(text), {});
  }

  Status prove(const std::string& written) override {
    PLIMSOLL_ASSIGN(const io::ModelWeights merged, io::ModelWeights::open(written));
    for (const auto& [tensor, whole] : resized_) {
      const auto made = merged.find(tensor->name);
      if (!made || made->tensor->shape != whole.tensor->shape)
        return Error{ErrorCode::kIo, "the merged file lacks " + tensor->name, written, ""};
    }
    std::set<const io::SafetensorsTensor*> all;
    for (const auto& [tensor, changes] : changes_) all.insert(tensor);
    for (const auto& [name, tensor] : quantized_) all.insert(tensor.weight.tensor);
    for (const io::SafetensorsTensor* tensor : all) {
      const auto made = merged.find(tensor->name);
      if (!made) return Error{ErrorCode::kIo, "the merged file lacks " + tensor->name, written, ""};
      PLIMSOLL_ASSIGN(const checkpoints::BaseTensor base, base_of(*weights_->find(tensor->name)));
      PLIMSOLL_ASSIGN(const auto loaded, load_all(changes_of(tensor), base));
      const int64_t rows = base.shape()[0];
      for (int64_t i = 0; i < std::min(kProvenRows, rows); ++i) {
        const int64_t row = rows <= kProvenRows ? i : i * (rows - 1) / (kProvenRows - 1);
        PLIMSOLL_TRY(prove_row(base, *made, loaded, row));
      }
    }
    return Ok{};
  }

 private:
  /// What the base has in few bits, and what each matrix of it is written as.
  Status find_bases() {
    PLIMSOLL_ASSIGN(config_, io::read_config_json(folder_ + "/config.json"));
    PLIMSOLL_ASSIGN(const auto stored, models::read_quantization_config(config_));
    PLIMSOLL_TRY(check_base(stored));
    if (!stored) return Ok{};
    PLIMSOLL_ASSIGN(quantized_, checkpoints::find_quantized(*weights_));
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config_));
    for (const models::Parameter& p : model->parameters())
      for (const models::ParameterView& view : p.views)
        if (const auto ref = find(*model, view.name); ref && p.transposed) turned_.insert(ref->tensor);
    for (const auto& [name, tensor] : quantized_)
      for (const io::SafetensorsTensor* part : tensor.parts) part_of_.emplace(part, &tensor);
    report_.dequantized_from = models::quantized_name(stored->dtype);
    report_.num_dequantized = static_cast<int64_t>(quantized_.size());
    return Ok{};
  }

  /// What training would not load is not merged into either.
  [[nodiscard]] Status check_base(std::optional<models::QuantizeSpec> stored) const {
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config_));
    if (stored) {
      stored->learns = false;
      PLIMSOLL_TRY(models::quantize(*model, *stored));
    }
    return checkpoints::check_weights(*model, *weights_);
  }

  /// Of a matrix in few bits, the dtype that it was made from, as far as that is said.
  [[nodiscard]] std::string plain_dtype(const checkpoints::QuantizedTensor& tensor) const {
    std::string name = tensor.source_dtype;
    for (const char* field : {"dtype", "torch_dtype"})
      if (const io::Tree* value = config_.fields().find(field); name.empty() && value != nullptr)
        name = value->text;
    return name == "bfloat16" ? "BF16" : name == "float16" ? "F16" : "F32";
  }

  /// The tensor without its values: of one in few bits what it becomes.
  [[nodiscard]] io::SafetensorsEntry entry_of(const io::WeightRef& ref) const {
    if (const auto grown = resized_.find(ref.tensor); grown != resized_.end())
      return {ref.tensor->name, ref.tensor->dtype, grown->second.tensor->shape};
    const auto found = part_of_.find(ref.tensor);
    if (found == part_of_.end()) return {ref.tensor->name, ref.tensor->dtype, ref.tensor->shape};
    io::SafetensorsEntry entry{ref.tensor->name, plain_dtype(*found->second), found->second->shape};
    if (turned_.contains(ref.tensor)) std::swap(entry.shape[0], entry.shape[1]);
    return entry;
  }

  [[nodiscard]] Result<checkpoints::BaseTensor> base_of(const io::WeightRef& ref) const {
    const auto found = part_of_.find(ref.tensor);
    if (found == part_of_.end()) return checkpoints::BaseTensor::plain(ref);
    return checkpoints::BaseTensor::dequantised(*found->second, plain_dtype(*found->second),
                                                turned_.contains(ref.tensor));
  }

  [[nodiscard]] std::optional<io::WeightRef> find(const models::Model& model, std::string_view view) const {
    auto ref = weights_->find(view);
    const std::string_view prefix = model.base_prefix();
    if (!ref && view.starts_with(prefix)) ref = weights_->find(view.substr(prefix.size()));
    return ref;
  }

  Status add_adapter(const std::string& directory, double weight) {
    PLIMSOLL_ASSIGN(models::LoraSpec spec, models::read_adapter_config(directory));
    spec.lora_dropout = 0;
    io::ConfigJson config(config_.fields(), config_.source());
    models::fit_vocabulary(spec, config);
    PLIMSOLL_ASSIGN(const auto model, models::make_language_model(config));
    if (spec.resized && (request_.adapters.size() > 1 || weight != 1))
      return refused("an adapter that brings a vocabulary of its own is merged alone, with the weight 1",
                     directory, "merge it first, and the others onto what comes of it");
    if (spec.resized) vocab_size_ = model->vocab_size();
    PLIMSOLL_ASSIGN(const std::string type, config_.model_type());
    if (auto added = models::add_adapters(*model, spec, type, /*strict=*/false); !added)
      return io::of_adapter(std::move(added).error(), directory);
    if (spec.init_lora_weights == models::LoraInit::kLoftq) {
      if (auto fits = find_rounded(spec, type); !fits) return std::move(fits).error().at(directory);
    }
    PLIMSOLL_ASSIGN(io::SafetensorsFile file,
                    io::SafetensorsFile::open(directory + "/" + checkpoints::weights_file(*model)));
    files_.push_back(std::make_unique<io::SafetensorsFile>(std::move(file)));
    PLIMSOLL_TRY(checkpoints::check_adapter(*model, *files_.back()));
    checkpoints::note_unmatched(*model, directory);
    return add_changes(*model, *files_.back(), weight);
  }

  /// The maps that were in few bits when the adapter began by LoftQ, and what they were in; none where the
  /// base has the codes itself.
  Status find_rounded(const models::LoraSpec& spec, const std::string& type) {
    rounded_.clear();
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config_));
    PLIMSOLL_TRY(models::add_adapters(*model, spec, type, /*strict=*/false));
    PLIMSOLL_TRY(models::select(*model, {}));
    PLIMSOLL_ASSIGN(const auto stored, models::read_quantization_config(config_));
    if (stored) return models::quantize(*model, *stored);  // whose errors say what does not go together
    const ir::DType unsaid = spec.loftq_config.bits == 8 ? ir::DType::kI8Rows : ir::DType::kNf4;
    PLIMSOLL_TRY(models::quantize(*model, {.dtype = spec.loftq_config.dtype.value_or(unsaid),
                                           .skip_modules = spec.loftq_config.skip_modules}));
    for (const models::Parameter& p : model->parameters())
      if (ir::is_block(p.dtype)) rounded_[p.views.front().name] = p.dtype;
    return Ok{};
  }

  static bool is_brought(const models::Model& model, const std::string& view) {
    return model.adapters()->brought.contains(view);
  }

  Status add_changes(const models::Model& model, const io::SafetensorsFile& file, double weight) {
    PLIMSOLL_TRY(check_parts(model));
    const auto tensor = [&](const std::string& view) {
      return view.empty() ? nullptr : checkpoints::find_adapter_tensor(file, model.saved_name(view));
    };
    const models::TokenRows& rows = model.adapters()->token_rows;
    for (const models::Parameter& p : model.parameters()) {
      if (p.is_adapter) continue;
      const models::Adapter* adapter = model.adapter_of(p.name);
      for (size_t i = 0; i < p.views.size(); ++i) {
        const std::string& name = p.views[i].name;
        const std::string module = name.substr(0, name.rfind('.'));
        if (const auto tied = model.tied_head(); tied && name == tied->embedding && is_brought(model, name))
          if (const auto copy = weights_->find(tied->head); copy && find(model, name))
            tied_copy_ = copy->tensor;
        const io::SafetensorsTensor* whole = tensor(model.saved_name(name).empty() ? "" : name);
        if (whole != nullptr && vocab_size_ && is_brought(model, name)) {
          PLIMSOLL_TRY(add_resized(model, name, {&file, whole}, adapter != nullptr));
          continue;
        }
        if (whole != nullptr)
          PLIMSOLL_TRY(add_change(model, name, {.file = &file, .whole = whole, .weight = weight}));
        const bool is_table = p.kind == models::ParameterKind::kTable;
        if (is_table && rows.rows.starts_with(module + ".token"))
          PLIMSOLL_TRY(add_change(
              model, name,
              {.file = &file, .rows = tensor(rows.rows), .tokens = rows.tokens, .weight = weight}));
        if (adapter == nullptr || adapter->parts[i].rank == 0) continue;
        const models::Adapter::Part& part = adapter->parts[i];
        checkpoints::AdapterChange change{
            .file = &file, .weight = weight, .scale = part.scale, .rank = part.rank};
        if (!part.b_bias.empty()) {
          change.b_bias = tensor(part.b_bias);
          PLIMSOLL_TRY(add_change(model, module + ".bias", change));
          change.b_bias = nullptr;
        }
        change.a = tensor(is_table ? adapter->a : module + ".lora_A.weight");
        change.b = tensor(part.b);
        change.magnitude = tensor(part.magnitude);
        change.transposed = p.transposed || is_table;
        change.factors = is_table ? models::Factors::kNone : model.adapters()->factors;
        if (change.factors == models::Factors::kLoftq) {
          const auto rounded = rounded_.find(name);
          if (rounded == rounded_.end())
            change.factors = models::Factors::kNone;
          else
            change.loftq_dtype = rounded->second;
          change.loftq_iterations = model.adapters()->loftq.iterations;
        }
        PLIMSOLL_TRY(add_change(model, name, change));
      }
    }
    return Ok{};
  }

  /// A table of the adapter's vocabulary in place of the base's.
  Status add_resized(const models::Model& model, const std::string& view, const io::WeightRef& whole,
                     bool is_adapted) {
    if (is_adapted)
      return refused(view +
                         " has a vocabulary of the adapter's own and an adapter, which is not merged in this "
                         "version",
                     folder_, "use the adapter with its base model: --adapter of eval, predict and generate");
    const auto base = find(model, view);
    if (!base)
      return Error{ErrorCode::kBadData, "the base has no tensor " + view, folder_,
                   "is it the adapter's base?"};
    resized_[base->tensor] = whole;
    return Ok{};
  }

  Status write_resized(const io::WeightRef& ref, const io::WeightRef& whole, int64_t at,
                       io::OutputFile& out) {
    ++report_.num_changed;
    const int64_t elements = whole.tensor->num_elements(),
                  width = io::safetensors_dtype_bytes(ref.tensor->dtype);
    const numerics::Format format = format_of(ref.tensor->dtype);
    for (int64_t first = 0; first < elements; first += kBlockValues) {
      PLIMSOLL_ASSIGN(const checkpoints::Values values,
                      checkpoints::read_values(*whole.file, *whole.tensor, first,
                                               std::min(kBlockValues, elements - first)));
      std::vector<std::byte> codes(
          static_cast<size_t>(numerics::encoded_bytes(format, static_cast<int64_t>(values.size()))));
      numerics::encode(format, values, codes);
      PLIMSOLL_TRY(out.write_at(at + first * width, codes));
    }
    return Ok{};
  }

  static numerics::Format format_of(const std::string& dtype) {
    return dtype == "F32"    ? numerics::Format::kFp32
           : dtype == "BF16" ? numerics::Format::kBf16
                             : numerics::Format::kFp16;
  }

  /// What is one tensor in the base and would be two behind it.
  [[nodiscard]] Status check_parts(const models::Model& model) const {
    const auto tied = model.tied_head();
    if (!tied || (model.adapter_of(tied->head) == nullptr && model.adapter_of(tied->embedding) == nullptr))
      return Ok{};
    return refused(
        fmt::format("{} is {}, and the adapter changes only one of the two", tied->head, tied->embedding),
        folder_, "use the adapter with its base model: --adapter of eval, predict and generate");
  }

  static int64_t num_elements(const io::SafetensorsEntry& entry) {
    int64_t n = 1;
    for (const int64_t extent : entry.shape) n *= extent;
    return n;
  }

  /// As many as the tensor must have that is changed.
  static int64_t elements_of(const checkpoints::AdapterChange& c, const io::SafetensorsEntry& base) {
    if (c.whole != nullptr) return c.whole->num_elements();
    if (c.b_bias != nullptr) return c.b_bias->num_elements();
    if (c.rows == nullptr) return c.b->shape[0] * c.a->shape[1];
    const bool fits =
        base.shape.size() == 2 && base.shape[1] == c.rows->shape[1] && c.tokens.back() < base.shape[0];
    return fits ? num_elements(base) : 0;
  }

  /// By the name that the base's files have for it.
  Status add_change(const models::Model& model, const std::string& view,
                    const checkpoints::AdapterChange& change) {
    const auto base = find(model, view);
    if (!base)
      return Error{ErrorCode::kBadData, "the base has no tensor " + view, folder_,
                   "is it the adapter's base, and of the same task?"};
    const io::SafetensorsEntry whole = entry_of(*base);
    if (!io::float_format(whole.dtype) || whole.dtype == "F64")
      return Error{ErrorCode::kBadData,
                   fmt::format("{} is {}, which is not merged into", view, to_string(*base->tensor)), folder_,
                   "the base's weights must be F32, BF16 or F16, or bitsandbytes' with quantization_config"};
    if (elements_of(change, whole) != num_elements(whole))
      return Error{
          ErrorCode::kBadData,
          fmt::format("{} is {}, and the adapter is for another shape", view, to_string(*base->tensor)),
          folder_, "an adapter belongs to the base that it was trained on"};
    changes_[base->tensor].push_back(change);
    return Ok{};
  }

  static Result<std::vector<checkpoints::LoadedChange>> load_all(
      const std::vector<checkpoints::AdapterChange>& changes, const checkpoints::BaseTensor& base) {
    std::vector<checkpoints::LoadedChange> loaded;
    for (const checkpoints::AdapterChange& change : changes) {
      PLIMSOLL_ASSIGN(checkpoints::LoadedChange each, checkpoints::LoadedChange::load(change, base));
      loaded.push_back(std::move(each));
    }
    return loaded;
  }

  /// Adapters' changes of a tensor; none of one that is dequantised alone.
  [[nodiscard]] std::vector<checkpoints::AdapterChange> changes_of(
      const io::SafetensorsTensor* tensor) const {
    const auto found = changes_.find(tensor);
    return found == changes_.end() ? std::vector<checkpoints::AdapterChange>{} : found->second;
  }

  static Status write_rows(const checkpoints::BaseTensor& tensor,
                           const std::vector<checkpoints::LoadedChange>& changes, int64_t first,
                           int64_t count, int64_t at, io::OutputFile& out) {
    const int64_t columns = tensor.num_columns();
    PLIMSOLL_ASSIGN(const checkpoints::Values base, tensor.read(first * columns, count * columns));
    checkpoints::Values rows = base;
    for (const checkpoints::LoadedChange& change : changes)
      PLIMSOLL_TRY(change.add_to(first, columns, base, rows));
    const numerics::Format format = format_of(tensor.dtype());
    std::vector<std::byte> codes(static_cast<size_t>(numerics::encoded_bytes(format, count * columns)));
    numerics::encode(format, rows, codes);
    return out.write_at(at + first * columns * io::safetensors_dtype_bytes(tensor.dtype()), codes);
  }

  /// The row's product with an input of changing signs: of what was written, and of base and adapter, in
  /// double; they may differ by the rounding of each element.
  Status prove_row(const checkpoints::BaseTensor& base, const io::WeightRef& made,
                   const std::vector<checkpoints::LoadedChange>& changes, int64_t row) {
    const int64_t columns = base.num_columns();
    PLIMSOLL_ASSIGN(const checkpoints::Values before, base.read(row * columns, columns));
    PLIMSOLL_ASSIGN(const checkpoints::Values after,
                    checkpoints::read_values(*made.file, *made.tensor, row * columns, columns));
    std::vector<double> input(before.size());
    for (size_t i = 0; i < input.size(); ++i) input[i] = ((i * 2654435761U) >> 16 & 1U) != 0 ? 1.0 : -1.0;
    const double epsilon = base.dtype() == "F32" ? 0x1p-20 : base.dtype() == "F16" ? 0x1p-10 : 0x1p-8;
    double expected = 0, got = 0, size = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      expected += static_cast<double>(before[i]) * input[i];
      got += static_cast<double>(after[i]) * input[i];
      size += std::abs(static_cast<double>(before[i])) + std::abs(static_cast<double>(after[i]));
    }
    for (const checkpoints::LoadedChange& each : changes) {
      PLIMSOLL_ASSIGN(const double part, each.product(row, before, input));
      expected += part;
    }
    ++report_.num_proven;
    if (std::abs(expected - got) <= epsilon * size + 1e-30) return Ok{};
    return Error{
        ErrorCode::kIo,
        fmt::format("row {} of {} is not base + adapter: {} in place of {}", row, base.name(), got, expected),
        request_.output, "nothing was kept; does the disk or the memory fail?"};
  }

  const MergeRequest& request_;
  std::string folder_;
  std::optional<io::ModelWeights> weights_;
  std::vector<std::unique_ptr<io::SafetensorsFile>> files_;  ///< the adapters', where changes_ points
  std::map<const io::SafetensorsTensor*, std::vector<checkpoints::AdapterChange>> changes_;
  std::map<const io::SafetensorsTensor*, io::WeightRef>
      resized_;                                       ///< tables that an adapter brings with its vocabulary
  std::optional<int64_t> vocab_size_ = {};            ///< with them
  const io::SafetensorsTensor* tied_copy_ = nullptr;  ///< a stored tied head, of an embedding that changes
  io::ConfigJson config_{io::Tree::map(), ""};
  std::map<std::string, checkpoints::QuantizedTensor> quantized_;  ///< of the base
  std::map<const io::SafetensorsTensor*, const checkpoints::QuantizedTensor*> part_of_;
  std::set<const io::SafetensorsTensor*> turned_;  ///< GPT-2's, which are [in, out] where they are whole
  std::map<std::string, ir::DType> rounded_;       ///< of the adapter at hand: what it began beside, by LoftQ
  MergeReport report_;
};

}  // namespace

Result<MergeReport> merge_adapters(const MergeRequest& request) { return Merger(request)(); }

}  // namespace plimsoll::model_tools
