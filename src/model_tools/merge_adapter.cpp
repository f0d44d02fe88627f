#include "model_tools/merge_adapter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "checkpoints/adapter_change.h"
#include "checkpoints/base_tensor.h"
#include "io/adapter_folder.h"
#include "io/parallel.h"
#include "model_tools/merge_changes.h"
#include "model_tools/rewrite_model.h"
#include "models/quantization_config.h"
#include "numerics/convert.h"

namespace plimsoll::model_tools {
namespace {

constexpr int64_t kBlockValues = 1 << 18;
constexpr int64_t kProvenRows = 8;

/// Writes the base's tensors with their changes, and holds what was written against them.
class Merger : public TensorRewrite {
 public:
  Merger(const MergeRequest& request, const MergeBase& base, const MergeChanges& changes, MergeReport& report)
      : request_(request), base_(base), changes_(changes), report_(report) {}

  [[nodiscard]] std::vector<io::SafetensorsEntry> entries(const io::WeightRef& ref) const override {
    if (ref.tensor == changes_.tied_copy() || base_.is_part(ref.tensor)) return {};
    return {changes_.entry_of(ref)};
  }

  Status write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out) override {
    if (at.empty()) return Ok{};
    if (const auto grown = changes_.resized().find(ref.tensor); grown != changes_.resized().end())
      return write_resized(ref, grown->second, at[0], out);
    const bool is_changed = changes_.by_tensor().contains(ref.tensor);
    if (!is_changed && !base_.is_quantized(ref.tensor)) return TensorRewrite::write(ref, at, out);
    report_.num_changed += is_changed ? 1 : 0;
    PLIMSOLL_ASSIGN(const checkpoints::BaseTensor base, base_.tensor_of(ref));
    PLIMSOLL_ASSIGN(const auto loaded, load_all(changes_.of(ref.tensor), base));
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
    if (changes_.vocab_size())
      text = with_member(std::move(text), "vocab_size", std::to_string(*changes_.vocab_size()));
    return base_.quantized().empty() ? text : with_quantization(std::move(text), {});
  }

  Status prove(const std::string& written) override {
    PLIMSOLL_ASSIGN(const io::ModelWeights merged, io::ModelWeights::open(written));
    for (const auto& [tensor, whole] : changes_.resized()) {
      const auto made = merged.find(tensor->name);
      if (!made || made->tensor->shape != whole.tensor->shape)
        return Error{ErrorCode::kIo, "the merged file lacks " + tensor->name, written, ""};
    }
    std::set<const io::SafetensorsTensor*> all;
    for (const auto& [tensor, changes] : changes_.by_tensor()) all.insert(tensor);
    for (const auto& [name, tensor] : base_.quantized()) all.insert(tensor.weight.tensor);
    for (const io::SafetensorsTensor* tensor : all) {
      const auto made = merged.find(tensor->name);
      if (!made) return Error{ErrorCode::kIo, "the merged file lacks " + tensor->name, written, ""};
      PLIMSOLL_ASSIGN(const checkpoints::BaseTensor base,
                      base_.tensor_of(*base_.weights().find(tensor->name)));
      PLIMSOLL_ASSIGN(const auto loaded, load_all(changes_.of(tensor), base));
      const int64_t rows = base.shape()[0];
      for (int64_t i = 0; i < std::min(kProvenRows, rows); ++i) {
        const int64_t row = rows <= kProvenRows ? i : i * (rows - 1) / (kProvenRows - 1);
        PLIMSOLL_TRY(prove_row(base, *made, loaded, row));
      }
    }
    return Ok{};
  }

 private:
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

  static Result<std::vector<checkpoints::LoadedChange>> load_all(
      const std::vector<checkpoints::AdapterChange>& changes, const checkpoints::BaseTensor& base) {
    std::vector<checkpoints::LoadedChange> loaded;
    for (const checkpoints::AdapterChange& change : changes) {
      PLIMSOLL_ASSIGN(checkpoints::LoadedChange each, checkpoints::LoadedChange::load(change, base));
      loaded.push_back(std::move(each));
    }
    return loaded;
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
  const MergeBase& base_;
  const MergeChanges& changes_;
  MergeReport& report_;
};

}  // namespace

Result<MergeReport> merge_adapters(const MergeRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  PLIMSOLL_ASSIGN(const std::string folder, io::find_whole_model(request.model));
  PLIMSOLL_TRY(check_rewrite_output(folder, request.output, "merged model"));
  PLIMSOLL_ASSIGN(const MergeBase base, MergeBase::open(folder));
  MergeReport report;
  if (base.stored()) report.dequantized_from = models::quantized_name(base.stored()->dtype);
  report.num_dequantized = static_cast<int64_t>(base.quantized().size());
  MergeChanges changes(base, /*is_alone=*/request.adapters.size() == 1);
  for (const auto& [named, weight] : request.adapters) {
    PLIMSOLL_ASSIGN(const std::string directory, io::find_adapter_folder(named));
    if (const auto other = io::other_base_note(directory, folder)) report.notes.push_back(*other);
    PLIMSOLL_TRY(changes.add_adapter(directory, weight));
  }
  Merger merger(request, base, changes, report);
  PLIMSOLL_ASSIGN(const RewriteReport written, rewrite_model(base.weights(), request.output, merger));
  report.num_tensors = written.num_written;
  report.bytes = written.bytes;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace plimsoll::model_tools
