#include "checkpoints/merge_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>

#include "checkpoints/adapter_change.h"
#include "checkpoints/adapter_files.h"
#include "checkpoints/tensor_files.h"
#include "io/atomic_directory.h"
#include "io/hub_cache.h"
#include "io/model_weights.h"
#include "io/parallel.h"
#include "io/safetensors_writer.h"
#include "io/tensor_convert.h"
#include "models/lora.h"
#include "models/lora_config.h"
#include "numerics/convert.h"

namespace plimsoll::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kBlockValues = 1 << 18;
constexpr int64_t kProvenRows = 8;

Error refused(std::string what, std::string where, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
}

class Merger {
 public:
  explicit Merger(const MergeRequest& request) : request_(request) {}

  Result<MergeReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, find_model_folder(request_.model));
    PLIMSOLL_TRY(check_output());
    PLIMSOLL_ASSIGN(ModelWeights weights, ModelWeights::open(folder_));
    weights_.emplace(std::move(weights));
    for (const auto& [directory, weight] : request_.adapters) PLIMSOLL_TRY(add_adapter(directory, weight));
    PLIMSOLL_ASSIGN(AtomicDirectory output, AtomicDirectory::create(request_.output));
    for (const SafetensorsFile& file : weights_->files()) PLIMSOLL_TRY(write_file(file, output));
    PLIMSOLL_TRY(copy_other_files(output));
    PLIMSOLL_TRY(prove(output.hidden_path()));
    PLIMSOLL_TRY(output.publish());
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

 private:
  Status check_output() const {
    std::error_code code;
    if (!fs::exists(request_.output, code)) return Ok{};
    if (fs::equivalent(request_.output, folder_, code))
      return refused("the merged model would overwrite its source", request_.output, "name another --output");
    return refused("the output is there already", request_.output, "name another --output, or move it away");
  }

  Status add_adapter(const std::string& directory, double weight) {
    PLIMSOLL_ASSIGN(const ConfigJson config, read_config_json(folder_ + "/config.json"));
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config));
    PLIMSOLL_ASSIGN(models::LoraSpec spec, models::read_adapter_config(directory));
    spec.lora_dropout = 0;
    PLIMSOLL_ASSIGN(const std::string type, config.model_type());
    if (auto added = models::add_adapters(*model, spec, type, /*strict=*/false); !added)
      return std::move(added).error().at(directory);
    PLIMSOLL_ASSIGN(SafetensorsFile file, SafetensorsFile::open(directory + "/" + weights_file(*model)));
    files_.push_back(std::make_unique<SafetensorsFile>(std::move(file)));
    PLIMSOLL_TRY(check_adapter(*model, *files_.back()));
    return add_changes(*model, *files_.back(), weight);
  }

  Status add_changes(const models::Model& model, const SafetensorsFile& file, double weight) {
    PLIMSOLL_TRY(check_parts(model));
    const auto tensor = [&](const std::string& view) {
      return view.empty() ? nullptr : find_adapter_tensor(file, model.saved_name(view));
    };
    const models::TokenRows& rows = model.adapters()->token_rows;
    for (const models::Parameter& p : model.parameters()) {
      if (p.is_adapter) continue;
      const models::Adapter* adapter = model.adapter_of(p.name);
      for (size_t i = 0; i < p.views.size(); ++i) {
        const std::string& name = p.views[i].name;
        const std::string module = name.substr(0, name.rfind('.'));
        if (!model.saved_name(name).empty())
          PLIMSOLL_TRY(add_change(model, name, {.file = &file, .whole = tensor(name), .weight = weight}));
        if (p.is_table && rows.rows.starts_with(module + ".token"))
          PLIMSOLL_TRY(add_change(
              model, name,
              {.file = &file, .rows = tensor(rows.rows), .tokens = rows.tokens, .weight = weight}));
        if (adapter == nullptr || adapter->parts[i].rank == 0) continue;
        const models::Adapter::Part& part = adapter->parts[i];
        AdapterChange change{.file = &file, .weight = weight, .scale = part.scale, .rank = part.rank};
        if (!part.b_bias.empty()) {
          change.b_bias = tensor(part.b_bias);
          PLIMSOLL_TRY(add_change(model, module + ".bias", change));
          change.b_bias = nullptr;
        }
        change.a = tensor(p.is_table ? adapter->a : module + ".lora_A.weight");
        change.b = tensor(part.b);
        change.magnitude = tensor(part.magnitude);
        change.transposed = p.transposed || p.is_table;
        change.factors = p.is_table ? models::Factors::kNone : model.adapters()->factors;
        PLIMSOLL_TRY(add_change(model, name, change));
      }
    }
    return Ok{};
  }

  /// What is one tensor in the base and would be two behind it.
  [[nodiscard]] Status check_parts(const models::Model& model) const {
    const auto tied = model.tied_head();
    if (!tied || (model.adapter_of(tied->head) == nullptr && model.adapter_of(tied->embedding) == nullptr))
      return Ok{};
    return refused(
        fmt::format("{} is {}, and the adapter changes one of the two", tied->head, tied->embedding), folder_,
        "go on with the adapter beside its base: --adapter of eval, predict and generate");
  }

  /// As many as the tensor must have that is changed.
  static int64_t elements_of(const AdapterChange& c, const SafetensorsTensor& base) {
    if (c.whole != nullptr) return c.whole->num_elements();
    if (c.b_bias != nullptr) return c.b_bias->num_elements();
    if (c.rows == nullptr) return c.b->shape[0] * c.a->shape[1];
    const bool fits =
        base.shape.size() == 2 && base.shape[1] == c.rows->shape[1] && c.tokens.back() < base.shape[0];
    return fits ? base.num_elements() : 0;
  }

  /// By the name that the base's files have for it.
  Status add_change(const models::Model& model, const std::string& view, const AdapterChange& change) {
    auto base = weights_->find(view);
    const std::string_view prefix = model.base_prefix();
    if (!base && view.starts_with(prefix))
      base = weights_->find(std::string_view(view).substr(prefix.size()));
    if (!base)
      return Error{ErrorCode::kBadData, "the base has no tensor " + view, folder_,
                   "is it the adapter's base, and of the same task?"};
    if (!float_format(base->tensor->dtype) || base->tensor->dtype == "F64")
      return Error{ErrorCode::kBadData,
                   fmt::format("{} is {}, which is not merged into", view, to_string(*base->tensor)), folder_,
                   "the base's weights must be F32, BF16 or F16"};
    if (const int64_t elements = elements_of(change, *base->tensor); elements != base->tensor->num_elements())
      return Error{
          ErrorCode::kBadData,
          fmt::format("{} is {}, and the adapter is for another shape", view, to_string(*base->tensor)),
          folder_, "an adapter belongs to the base that it was trained on"};
    changes_[base->tensor].push_back(change);
    return Ok{};
  }

  Status write_file(const SafetensorsFile& file, const AtomicDirectory& directory) {
    std::vector<SafetensorsEntry> entries;
    for (const SafetensorsTensor& t : file.tensors()) entries.push_back({t.name, t.dtype, t.shape});
    PLIMSOLL_ASSIGN(const SafetensorsLayout layout, SafetensorsLayout::create(entries, {{"format", "pt"}}));
    PLIMSOLL_ASSIGN(OutputFile out, directory.create_file(fs::path(file.path()).filename().string()));
    PLIMSOLL_TRY(out.reserve(layout.file_bytes()));
    PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(layout.header))));
    for (size_t i = 0; i < entries.size(); ++i)
      PLIMSOLL_TRY(write_tensor(file, file.tensors()[i], layout.header_bytes() + layout.ends[i], out));
    report_.num_tensors += static_cast<int64_t>(entries.size());
    report_.bytes += layout.file_bytes();
    return out.close();
  }

  static Result<std::vector<LoadedChange>> load_all(const std::vector<AdapterChange>& changes,
                                                    const WeightRef& base) {
    std::vector<LoadedChange> loaded;
    for (const AdapterChange& change : changes) {
      PLIMSOLL_ASSIGN(LoadedChange each, LoadedChange::load(change, base));
      loaded.push_back(std::move(each));
    }
    return loaded;
  }

  Status write_tensor(const SafetensorsFile& file, const SafetensorsTensor& tensor, int64_t at,
                      OutputFile& out) {
    const auto changes = changes_.find(&tensor);
    if (changes == changes_.end()) return copy_tensor(file, tensor, at, out);
    ++report_.num_changed;
    PLIMSOLL_ASSIGN(const auto loaded, load_all(changes->second, {&file, &tensor}));
    const int64_t rows = tensor.shape[0], columns = tensor.num_elements() / rows;
    const int64_t block = std::max<int64_t>(1, kBlockValues / columns);
    const auto count = static_cast<size_t>((rows + block - 1) / block);
    return in_parallel(count, request_.num_threads, [&](size_t i, size_t) -> Status {
      const int64_t first = static_cast<int64_t>(i) * block;
      return write_rows(file, tensor, loaded, first, std::min(block, rows - first), at, out);
    });
  }

  static Status write_rows(const SafetensorsFile& file, const SafetensorsTensor& tensor,
                           const std::vector<LoadedChange>& changes, int64_t first, int64_t count, int64_t at,
                           OutputFile& out) {
    const int64_t columns = tensor.num_elements() / tensor.shape[0];
    PLIMSOLL_ASSIGN(const Values base, read_values(file, tensor, first * columns, count * columns));
    Values rows = base;
    for (const LoadedChange& change : changes) PLIMSOLL_TRY(change.add_to(first, columns, base, rows));
    const numerics::Format format = tensor.dtype == "F32"    ? numerics::Format::kFp32
                                    : tensor.dtype == "BF16" ? numerics::Format::kBf16
                                                             : numerics::Format::kFp16;
    std::vector<std::byte> codes(static_cast<size_t>(numerics::encoded_bytes(format, count * columns)));
    numerics::encode(format, rows, codes);
    return out.write_at(at + first * columns * tensor.bytes / tensor.num_elements(), codes);
  }

  static Status copy_tensor(const SafetensorsFile& file, const SafetensorsTensor& tensor, int64_t at,
                            OutputFile& out) {
    std::vector<std::byte> buffer(static_cast<size_t>(std::min<int64_t>(tensor.bytes, 4 * kBlockValues)));
    for (int64_t done = 0; done < tensor.bytes; done += static_cast<int64_t>(buffer.size())) {
      const auto piece =
          std::span(buffer).first(std::min(buffer.size(), static_cast<size_t>(tensor.bytes - done)));
      PLIMSOLL_TRY(file.read(tensor, done, piece));
      PLIMSOLL_TRY(out.write_at(at + done, piece));
    }
    return Ok{};
  }

  /// Everything but weights: config, tokenizer, the index of the shards, which keep their names.
  Status copy_other_files(const AtomicDirectory& directory) {
    std::error_code code;
    for (fs::directory_iterator it(folder_, code), end; !code && it != end; it.increment(code)) {
      const std::string name = it->path().filename().string(), suffix = it->path().extension().string();
      const bool is_index = name.ends_with(".index.json");
      if (name.starts_with('.') || !it->is_regular_file() || (is_index && weights_->files().size() == 1))
        continue;
      if (suffix != ".json" && suffix != ".model" && suffix != ".txt" && suffix != ".jinja") continue;
      PLIMSOLL_ASSIGN(const std::string text, read_small_file(it->path().string(), int64_t{256} << 20));
      PLIMSOLL_ASSIGN(OutputFile out, directory.create_file(name));
      PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(text))));
      PLIMSOLL_TRY(out.close());
    }
    return Ok{};
  }

  Status prove(const std::string& written) {
    PLIMSOLL_ASSIGN(const ModelWeights merged, ModelWeights::open(written));
    for (const auto& [tensor, changes] : changes_) {
      const auto base = weights_->find(tensor->name), made = merged.find(tensor->name);
      if (!made) return Error{ErrorCode::kIo, "the merged file lacks " + tensor->name, written, ""};
      PLIMSOLL_ASSIGN(const auto loaded, load_all(changes, *base));
      const int64_t rows = tensor->shape[0];
      for (int64_t i = 0; i < std::min(kProvenRows, rows); ++i) {
        const int64_t row = rows <= kProvenRows ? i : i * (rows - 1) / (kProvenRows - 1);
        PLIMSOLL_TRY(prove_row(*base, *made, loaded, row));
      }
    }
    return Ok{};
  }

  /// The row's product with an input of changing signs: of what was written, and of base and adapter, in
  /// double; they may differ by the rounding of each element.
  Status prove_row(const WeightRef& base, const WeightRef& made, const std::vector<LoadedChange>& changes,
                   int64_t row) {
    const int64_t columns = base.tensor->num_elements() / base.tensor->shape[0];
    PLIMSOLL_ASSIGN(const Values before, read_values(*base.file, *base.tensor, row * columns, columns));
    PLIMSOLL_ASSIGN(const Values after, read_values(*made.file, *made.tensor, row * columns, columns));
    std::vector<double> input(before.size());
    for (size_t i = 0; i < input.size(); ++i) input[i] = ((i * 2654435761U) >> 16 & 1U) != 0 ? 1.0 : -1.0;
    const double epsilon = base.tensor->dtype == "F32"   ? 0x1p-20
                           : base.tensor->dtype == "F16" ? 0x1p-10
                                                         : 0x1p-8;
    double expected = 0, got = 0, size = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      expected += static_cast<double>(before[i]) * input[i];
      got += static_cast<double>(after[i]) * input[i];
      size += std::abs(static_cast<double>(before[i])) + std::abs(static_cast<double>(after[i]));
    }
    for (const LoadedChange& each : changes) {
      PLIMSOLL_ASSIGN(const double part, each.product(row, before, input));
      expected += part;
    }
    ++report_.num_proven;
    if (std::abs(expected - got) <= epsilon * size + 1e-30) return Ok{};
    return Error{ErrorCode::kIo,
                 fmt::format("row {} of {} is not base + adapter: {} in place of {}", row, base.tensor->name,
                             got, expected),
                 request_.output, "nothing was kept; does the disk or the memory fail?"};
  }

  const MergeRequest& request_;
  std::string folder_;
  std::optional<ModelWeights> weights_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;  ///< the adapters', where changes_ points
  std::map<const SafetensorsTensor*, std::vector<AdapterChange>> changes_;
  MergeReport report_;
};

}  // namespace

Result<MergeReport> merge_adapters(const MergeRequest& request) { return Merger(request)(); }

}  // namespace plimsoll::train
