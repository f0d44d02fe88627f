#include "checkpoints/final_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "base/check.h"
#include "checkpoints/fp16_range.h"
#include "io/file.h"
#include "io/model_weights.h"
#include "numerics/convert.h"
#include "optimizers/optimizer.h"
#include "settings/state_formats.h"

namespace plimsoll::checkpoints {
namespace {

/// Numbers that are converted at once: they lie in the core's cache and on the stack.
constexpr size_t kValues = 1024;

constexpr std::string_view kFile = "model.safetensors", kIndex = "model.safetensors.index.json";

Error beyond_range(const std::string& tensor, float value) {
  return Error{ErrorCode::kBadData,
               fmt::format("output.dtype is fp16, and {} holds {:g}, beyond fp16's 65504", tensor, value),
               {},
               "run again with output.dtype=bf16 or fp32"};
}

/// What the values of `from` are in `to`, whose size says how many.
Status convert(ir::DType from, std::span<const std::byte> values, ir::DType to, std::span<std::byte> out,
               const std::string& tensor) {
  std::array<float, kValues> wide;
  const std::span<float> numbers = std::span(wide).first(out.size() * 8 / static_cast<size_t>(ir::bits(to)));
  numerics::decode(settings::state_format(from).encoding, values, numbers);
  if (to == ir::DType::kF16)
    if (const auto at = first_beyond_fp16(numbers)) return beyond_range(tensor, numbers[*at]);
  numerics::encode(settings::state_format(to).encoding, numbers, out);
  return Ok{};
}

/// Whether a file goes on with these bytes at `at`.
Status expect(const io::ReadFile& file, int64_t at, std::span<const std::byte> bytes) {
  std::array<std::byte, 4 * kValues> there;
  while (!bytes.empty()) {
    const auto piece = std::span(there).first(std::min(bytes.size(), there.size()));
    PLIMSOLL_TRY(file.read_at(at, piece));
    if (std::memcmp(piece.data(), bytes.data(), piece.size()) != 0)
      return Error{ErrorCode::kBadData, "other bytes", file.path()};
    at += static_cast<int64_t>(piece.size());
    bytes = bytes.subspan(piece.size());
  }
  return Ok{};
}

}  // namespace

FinalFormat final_format(const settings::RunConfig& config, const io::ConfigJson& model_config,
                         const models::Model& model) {
  FinalFormat format{.dtype = model.parameters().front().dtype};
  if (config.output.max_shard_size) format.max_shard_bytes = config.output.max_shard_size->count;
  const std::string& asked = config.output.dtype;
  std::string came;
  if (asked == "auto" && starts_pretrained(config.model))
    for (const char* field : {"dtype", "torch_dtype"})
      if (const io::Tree* value = model_config.fields().find(field); value != nullptr && came.empty())
        came = value->text;
  for (const settings::StateFormat& known : settings::kStateFormats)
    if (settings::word(known.setting) == asked || known.config == came) format.dtype = known.dtype;
  return format;
}

Result<FinalWeights> FinalWeights::create(const models::Model& model, const passes::SessionPlan& session,
                                          const FinalFormat& format) {
  FinalWeights weights;
  std::vector<Tensor> tensors;
  for (const models::Parameter& p : model.parameters()) {
    const std::string average = optimizers::average_name(p.name);
    const bool is_averaged = session.has_state(average);
    weights.plain_ = weights.plain_ && p.dtype == format.dtype && !is_averaged;
    const std::string exact = is_averaged ? average : optimizers::master_name(p.name);
    const bool from_exact = is_averaged || (p.dtype != format.dtype && session.has_state(exact));
    const ir::DType stored = from_exact ? ir::DType::kF32 : p.dtype;
    const int64_t bytes = ir::bits(stored) / 8, row = p.shape.num_elements() / p.shape.dim(0);
    for (const models::ParameterView& view : p.views)
      tensors.push_back(
          {{view.name, safetensors_name(format.dtype), extents_of(view.file_shape())},
           {from_exact ? exact : p.name, view.row * row * bytes, view.shape.num_elements() * bytes},
           stored,
           format.dtype,
           file_order(view)});
  }
  for (const models::Buffer& buffer : model.buffers()) {
    StoredTensor tensor = buffer_tensor(buffer);
    const ir::DType dtype = models::state_of(buffer).type.dtype;
    const std::string average = optimizers::average_name(buffer.name);
    if (session.find_state(average) != nullptr) tensor.range.state = average;
    tensors.push_back({std::move(tensor.entry), std::move(tensor.range), dtype, dtype});
  }
  PLIMSOLL_TRY(weights.add_shards(std::move(tensors), format.max_shard_bytes.value_or(INT64_MAX)));
  weights.plain_ = weights.plain_ && weights.shards_.size() == 1;
  if (weights.shards_.size() > 1) weights.write_index(model.num_parameters());
  return weights;
}

Status FinalWeights::add_shards(std::vector<Tensor> tensors, int64_t limit) {
  std::vector<std::vector<Tensor>> cuts, alone;
  std::vector<Tensor> now;
  int64_t filled = 0;
  for (Tensor& t : tensors) {
    const int64_t bytes = t.from.bytes / ir::bits(t.stored) * ir::bits(t.written);
    if (bytes > limit) {
      cuts.emplace_back().push_back(std::move(t));
      continue;
    }
    if (filled > limit - bytes) {
      cuts.push_back(std::move(now));
      now.clear();
      filled = 0;
    }
    filled += bytes;
    now.push_back(std::move(t));
  }
  if (!now.empty()) cuts.push_back(std::move(now));
  for (size_t i = 0; i < cuts.size(); ++i) {
    std::vector<io::SafetensorsEntry> entries;
    for (const Tensor& t : cuts[i]) entries.push_back(t.entry);
    PLIMSOLL_ASSIGN(io::SafetensorsLayout layout, io::SafetensorsLayout::create(entries, {{"format", "pt"}}));
    const std::string name = cuts.size() == 1
                                 ? std::string(kFile)
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, cuts.size());
    shards_.push_back({name, std::move(layout), std::move(cuts[i])});
  }
  return Ok{};
}

/// As json.dumps(index, indent=2, sort_keys=True) has it.
void FinalWeights::write_index(int64_t num_parameters) {
  std::map<std::string, const std::string*> files;
  int64_t bytes = 0;
  for (const Shard& shard : shards_) {
    bytes += shard.layout.ends.back();
    for (const Tensor& t : shard.tensors) files[io::to_json(io::Tree::of(t.entry.name))] = &shard.name;
  }
  index_ =
      fmt::format("{{\n  \"metadata\": {{\n    \"total_parameters\": {},\n    \"total_size\": {}\n  }},\n",
                  num_parameters, bytes);
  index_ += "  \"weight_map\": {";
  const char* separator = "\n";
  for (const auto& [name, file] : files) {
    index_ += fmt::format("{}    {}: \"{}\"", separator, name, *file);
    separator = ",\n";
  }
  index_ += "\n  }\n}\n";
}

int64_t FinalWeights::bytes() const {
  auto bytes = static_cast<int64_t>(index_.size());
  for (const Shard& shard : shards_) bytes += shard.layout.file_bytes();
  return bytes;
}

Status FinalWeights::read(size_t shard, runtime::BackgroundReader& reader, std::span<std::byte> buffer,
                          const Take& take) const {
  PLIMSOLL_TRY(take(std::as_bytes(std::span(shards_[shard].layout.header))));
  for (const Tensor& t : shards_[shard].tensors) PLIMSOLL_TRY(read_tensor(t, reader, buffer, take));
  return Ok{};
}

Status FinalWeights::read_tensor(const Tensor& tensor, runtime::BackgroundReader& reader,
                                 std::span<std::byte> buffer, const Take& take) const {
  const auto from = static_cast<size_t>(ir::bits(tensor.stored)) / 8,
             to = static_cast<size_t>(ir::bits(tensor.written)) / 8;
  PLIMSOLL_CHECK(buffer.size() >= kValues * to, "a buffer to convert in is too small");
  const auto piece = [&](std::span<const std::byte> rest, int64_t) -> Status {
    if (tensor.stored == tensor.written) return take(rest);
    while (!rest.empty()) {
      const size_t count = std::min(rest.size() / from, kValues);
      const std::span out = buffer.first(count * to);
      PLIMSOLL_TRY(convert(tensor.stored, rest.first(count * from), tensor.written, out, tensor.entry.name));
      PLIMSOLL_TRY(take(out));
      rest = rest.subspan(count * from);
    }
    return Ok{};
  };
  const ReadStored stored = [&](int64_t offset, int64_t bytes, const runtime::TakePiece& pass) {
    return reader.read(tensor.from.state, tensor.from.offset + offset, bytes, pass);
  };
  return read_in_file_order(tensor.order, static_cast<int64_t>(from), tensor.from.bytes, stored, piece);
}

bool FinalWeights::are_in(const std::string& directory, runtime::Session& session) const {
  // One file beside an index, or shards beside a file, would be read instead of these.
  if (io::is_file(directory + "/" + std::string(kIndex)) != !index_.empty()) return false;
  if (!index_.empty() && io::is_file(directory + "/" + std::string(kFile))) return false;
  if (!index_.empty()) {
    const auto text = io::read_small_file(directory + "/" + std::string(kIndex), INT32_MAX);
    if (!text || *text != index_) return false;
  }
  runtime::BackgroundReader reader(session);
  if (!reader.mark()) return false;
  std::vector<std::byte> buffer(4 * kValues);
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto file = io::ReadFile::open(directory + "/" + shards_[i].name);
    if (!file || file->size_bytes() != shards_[i].layout.file_bytes()) return false;
    int64_t at = 0;
    const auto same = read(i, reader, buffer, [&](std::span<const std::byte> bytes) -> Status {
      PLIMSOLL_TRY(expect(*file, at, bytes));
      at += static_cast<int64_t>(bytes.size());
      return Ok{};
    });
    if (!same) return false;
  }
  return true;
}

}  // namespace plimsoll::checkpoints
