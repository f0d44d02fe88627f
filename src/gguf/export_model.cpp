#include "gguf/export_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "checkpoints/fp16_range.h"
#include "checkpoints/load_weights.h"
#include "gguf/architecture.h"
#include "gguf/q8_0.h"
#include "gguf/vocabulary.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/tensor_convert.h"
#include "models/model.h"
#include "numerics/convert.h"
#include "tokenizers/config_files.h"

namespace plimsoll::gguf {
namespace {

/// What is read, converted and written at once.
constexpr int64_t kChunkBytes = int64_t{1} << 20;
constexpr int64_t kQuantizationVersion = 2;  // of ggml's block formats

/// What llama.cpp calls a file of this type.
int64_t file_type(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return 0;
    case TensorType::kF16:
      return 1;
    case TensorType::kQ8_0:
      return 7;
    case TensorType::kBf16:
      return 32;
  }
  return 0;
}

/// A tensor of the file and where its rows come from.
struct Source {
  TensorInfo info;
  io::WeightRef weight;
  RowOrder rows;
};

TensorType type_of(const std::string& name, models::ParameterKind kind, const std::vector<int64_t>& shape,
                   TensorType asked) {
  if (kind == models::ParameterKind::kVector || name == "position_embd.weight") return TensorType::kF32;
  return asked == TensorType::kQ8_0 && shape.back() % block_elements(asked) != 0 ? TensorType::kF16 : asked;
}

/// Rows of a tensor as f32, a chunk after the other.
class Rows {
 public:
  explicit Rows(const Source& source)
      : source_(source), format_(*io::float_format(source.weight.tensor->dtype)) {
    const std::vector<int64_t>& shape = source.info.shape;
    columns_ = shape.size() < 2 ? 1 : shape.back();  // a bias is permuted as the rows that it is added to
    count_ = source.info.elements() / columns_;
  }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t columns() const { return columns_; }

  /// Errors: as SafetensorsFile::read.
  Status read(int64_t first, int64_t rows, std::vector<float>& values) {
    values.resize(static_cast<size_t>(rows * columns_));
    if (source_.rows.transposed) return read_transposed(first, rows, values);
    if (source_.rows.rotary_head == 0) return read_at(first * columns_, values);
    for (int64_t r = 0; r < rows; ++r)
      PLIMSOLL_TRY(read_at(
          checkpoint_row(first + r) * columns_,
          std::span(values).subspan(static_cast<size_t>(r * columns_), static_cast<size_t>(columns_))));
    return Ok{};
  }

 private:
  [[nodiscard]] int64_t checkpoint_row(int64_t row) const {
    const int64_t head = source_.rows.rotary_head, within = row % head;
    return row - within + within % 2 * (head / 2) + within / 2;
  }

  Status read_at(int64_t element, std::span<float> values) {
    const int64_t stored = io::element_bytes(format_);
    stored_.resize(values.size() * static_cast<size_t>(stored));
    PLIMSOLL_TRY(source_.weight.file->read(*source_.weight.tensor, element * stored, stored_));
    io::convert_to_f32(format_, stored_.data(), values.data(), static_cast<int64_t>(values.size()));
    return Ok{};
  }

  /// The checkpoint has a column where the file has a row.
  Status read_transposed(int64_t first, int64_t rows, std::vector<float>& values) {
    line_.resize(static_cast<size_t>(rows));
    for (int64_t c = 0; c < columns_; ++c) {
      PLIMSOLL_TRY(read_at(c * count_ + first, line_));
      for (int64_t r = 0; r < rows; ++r)
        values[static_cast<size_t>(r * columns_ + c)] = line_[static_cast<size_t>(r)];
    }
    return Ok{};
  }

  const Source& source_;
  io::FloatFormat format_;
  int64_t count_ = 0, columns_ = 0;
  std::vector<std::byte> stored_;
  std::vector<float> line_;
};

Status encode(const Source& source, std::span<const float> values, std::vector<std::byte>& bytes) {
  const TensorType type = source.info.type;
  bytes.resize(static_cast<size_t>(tensor_bytes(type, static_cast<int64_t>(values.size()))));
  if (type == TensorType::kF16)
    if (const auto at = checkpoints::first_beyond_fp16(values))
      return Error{ErrorCode::kBadData,
                   fmt::format("{} holds {:g}, beyond fp16's 65504", source.weight.tensor->name, values[*at]),
                   source.weight.file->path(), "export it as bf16 or f32"};
  if (type == TensorType::kQ8_0)
    encode_q8_0(values, bytes);
  else if (type == TensorType::kF32)
    std::memcpy(bytes.data(), values.data(), bytes.size());
  else
    numerics::encode(type == TensorType::kF16 ? numerics::Format::kFp16 : numerics::Format::kBf16, values,
                     bytes);
  return Ok{};
}

class Exporting {
 public:
  explicit Exporting(const ExportRequest& request) : request_(request) {}

  Result<ExportReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, io::find_whole_model(request_.model));
    PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(folder_ + "/config.json"));
    PLIMSOLL_ASSIGN(const Architecture architecture, Architecture::create(config));
    PLIMSOLL_ASSIGN(const auto model, models::make_model(config));
    if (model->num_labels() > 0)
      return Error{ErrorCode::kInvalidArgument, "gguf: sequence classifiers are not supported", folder_,
                   "language models can be exported"};
    if (config.has("quantization_config"))
      return Error{ErrorCode::kInvalidArgument, "gguf: the model is quantized by bitsandbytes", folder_,
                   "export the original; plimsoll merge dequantizes it while merging an adapter"};
    PLIMSOLL_ASSIGN(const io::ModelWeights weights, io::ModelWeights::open(folder_));
    PLIMSOLL_ASSIGN(const checkpoints::WeightMatch match, checkpoints::match_weights(*model, weights));
    PLIMSOLL_TRY(checkpoints::check_match(match, weights));
    list_tensors(architecture, match);
    report_.notes = architecture.notes();
    PLIMSOLL_ASSIGN(const Metadata metadata, describe(architecture));
    PLIMSOLL_TRY(write(metadata, architecture.rope_factors()));
    report_.architecture = architecture.name();
    report_.num_tensors = static_cast<int64_t>(infos_.size());
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

 private:
  void list_tensors(const Architecture& architecture, const checkpoints::WeightMatch& match) {
    report_.type = request_.type.value_or(stored_type(match));
    const std::vector<float>& factors = architecture.rope_factors();
    if (!factors.empty())
      infos_.push_back({"rope_freqs.weight", {static_cast<int64_t>(factors.size())}, TensorType::kF32});
    for (const checkpoints::WeightSource& from : match.sources) {
      const TensorPlace place = architecture.place(from.view->name);
      const auto dims = from.view->shape.dims();
      std::vector<int64_t> shape(dims.begin(), dims.end());
      if (place.rows.transposed) std::swap(shape[0], shape[1]);
      const TensorType type = type_of(place.name, from.parameter->kind, shape, report_.type);
      infos_.push_back({place.name, shape, type});
      sources_.push_back({infos_.back(), from.weight, place.rows});
    }
  }

  /// What the first matrix is stored in.
  static TensorType stored_type(const checkpoints::WeightMatch& match) {
    for (const checkpoints::WeightSource& from : match.sources)
      if (from.parameter->kind != models::ParameterKind::kVector)
        return from.weight.tensor->dtype == "BF16"  ? TensorType::kBf16
               : from.weight.tensor->dtype == "F16" ? TensorType::kF16
                                                    : TensorType::kF32;
    return TensorType::kF32;
  }

  Result<Metadata> describe(const Architecture& architecture) {
    Metadata metadata;
    metadata.add_text("general.architecture", architecture.name());
    metadata.add_text("general.type", "model");
    PLIMSOLL_TRY(add_sampling(metadata));
    metadata.add_text("general.name", model_name());
    metadata.add_text("general.size_label", size_label());
    architecture.describe(metadata);
    metadata.add_u32("general.file_type", file_type(report_.type));
    metadata.add_u32("general.quantization_version", kQuantizationVersion);
    PLIMSOLL_ASSIGN(const VocabularyNote vocabulary,
                    add_vocabulary(folder_, architecture.name(), architecture.vocab_size(), metadata));
    if (!vocabulary.text.empty()) report_.notes.push_back(vocabulary.text);
    return metadata;
  }

  /// How the model wants to be sampled.
  Status add_sampling(Metadata& metadata) const {
    const std::string path = folder_ + "/generation_config.json";
    if (!io::is_file(path)) return Ok{};
    PLIMSOLL_ASSIGN(const io::Tree config, tokenizers::read_config_object(path));
    const auto number = [&](std::string_view field) -> const io::Tree* {
      const io::Tree* value = config.find(field);
      const bool is = value != nullptr &&
                      (value->kind == io::Tree::Kind::kInteger || value->kind == io::Tree::Kind::kNumber);
      return is ? value : nullptr;
    };
    if (const io::Tree* k = number("top_k")) metadata.add_i32("general.sampling.top_k", k->integer);
    if (const io::Tree* p = number("top_p")) metadata.add_f32("general.sampling.top_p", p->number);
    if (const io::Tree* p = number("min_p")) metadata.add_f32("general.sampling.min_p", p->number);
    if (const io::Tree* t = number("temperature")) metadata.add_f32("general.sampling.temp", t->number);
    return Ok{};
  }

  /// The folder's name; of a run's final/ the run's.
  [[nodiscard]] std::string model_name() const {
    std::error_code ignored;
    std::filesystem::path path = std::filesystem::absolute(folder_, ignored).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    if (path.filename() == "final" && path.parent_path().has_filename()) path = path.parent_path();
    return path.filename().string();
  }

  /// "135M": two digits at least.
  [[nodiscard]] std::string size_label() const {
    double count = 0;
    for (const TensorInfo& info : infos_) count += static_cast<double>(info.elements());
    constexpr std::pair<double, char> kUnits[] = {{1e12, 'T'}, {1e9, 'B'}, {1e6, 'M'}, {0, 'K'}};
    for (const auto& [least, unit] : kUnits) {
      if (count <= least) continue;
      const double scaled = count / std::max(least, 1e3), whole = std::nearbyint(scaled);
      return fmt::format("{:.{}f}{}", scaled, whole >= 10 ? 0 : whole >= 1 ? 1 : 2, unit);
    }
    return "0.00K";
  }

  Status write(const Metadata& metadata, const std::vector<float>& factors) {
    const Layout layout = lay_out(metadata, infos_);
    report_.bytes = layout.file_bytes;
    PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(request_.output));
    PLIMSOLL_TRY(file.reserve(layout.file_bytes));
    PLIMSOLL_TRY(file.write_at(0, std::as_bytes(std::span(layout.header))));
    size_t first = 0;
    if (!factors.empty())
      PLIMSOLL_TRY(file.write_at(layout.offsets[first++], std::as_bytes(std::span(factors))));
    for (size_t i = 0; i < sources_.size(); ++i)
      PLIMSOLL_TRY(write_tensor(sources_[i], layout.offsets[first + i], file));
    PLIMSOLL_TRY(fill_up(layout, file));
    return file.commit();
  }

  Status write_tensor(const Source& source, int64_t at, io::AtomicFile& file) {
    Rows rows(source);
    const int64_t chunk = std::max<int64_t>(1, kChunkBytes / 4 / rows.columns());
    for (int64_t row = 0; row < rows.count(); row += chunk) {
      PLIMSOLL_TRY(rows.read(row, std::min(chunk, rows.count() - row), values_));
      PLIMSOLL_TRY(encode(source, values_, bytes_));
      PLIMSOLL_TRY(file.write_at(at, bytes_));
      at += static_cast<int64_t>(bytes_.size());
    }
    return Ok{};
  }

  /// The last tensor's padding belongs to the file too.
  Status fill_up(const Layout& layout, io::AtomicFile& file) const {
    const int64_t end = layout.offsets.back() + infos_.back().bytes();
    const std::vector<std::byte> zeros(static_cast<size_t>(layout.file_bytes - end));
    return file.write_at(end, zeros);
  }

  const ExportRequest& request_;
  std::string folder_;
  ExportReport report_;
  std::vector<TensorInfo> infos_;
  std::vector<Source> sources_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace

Result<ExportReport> export_model(const ExportRequest& request) { return Exporting(request)(); }

}  // namespace plimsoll::gguf
