#include "checkpoints/checkpoint_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "checkpoints/adapter_files.h"
#include "checkpoints/final_record.h"
#include "io/python_json.h"
#include "models/classifier.h"
#include "optimizers/optimizer.h"
#include "settings/settings.h"
#include "settings/state_formats.h"

namespace plimsoll::checkpoints {
namespace {

/// Summed and then copied while it lies in the core's cache.
constexpr size_t kPieceBytes = 128 << 10;
constexpr size_t kCopyBytes = 32 << 10;
/// Two threads' heaps and stacks, the texts.
constexpr int64_t kFixedHostBytes = 256 << 10;
/// A tensor's entries in a header, in the manifest and in checkpoint.json: strings of about 150 bytes each.
constexpr int64_t kHostBytesPerTensor = 1 << 10;
constexpr const char* kIndexFile = "model.safetensors.index.json";
/// Epoch, norm, rate, loss and step, as text.
constexpr int64_t kBytesPerLogEntry = 192;

CheckpointFile file_entry(const std::string& name, const io::SafetensorsLayout& layout,
                          const std::vector<StoredTensor>& tensors) {
  CheckpointFile file{name, layout.file_bytes(), layout.header_bytes(), io::checksum(layout.header)};
  for (size_t i = 0; i < tensors.size(); ++i)
    file.tensors.push_back({tensors[i].entry.name, tensors[i].entry.dtype, tensors[i].entry.shape,
                            layout.header_bytes() + layout.ends[i], layout.ends[i + 1] - layout.ends[i]});
  return file;
}

/// config.json beside weights of that dtype.
std::string config_text(const io::ConfigJson& model_config, ir::DType dtype) {
  io::Tree fields = models::with_class(model_config).fields();
  std::erase_if(fields.members, [](const auto& member) { return member.first == "torch_dtype"; });
  fields.set("dtype", io::Tree::of(std::string(settings::state_format(dtype).config)));
  return io::to_python_json(fields) + "\n";  // transformers refuses 1 where a field is a real number
}

io::ConfigJson with_pad_token(const io::ConfigJson& config, std::optional<int64_t> token) {
  io::ConfigJson padded(config.fields(), config.source());
  if (token) padded.set("pad_token_id", io::Tree::of(*token));
  return padded;
}

}  // namespace

int64_t checkpoint_host_bytes(const models::Model& model, const passes::SessionPlan& session,
                              const FinalFormat& final) {
  int64_t views = std::ssize(model.buffers()), states = 0, parameter_bytes = 0;
  for (const models::Parameter& p : model.parameters()) {
    views += static_cast<int64_t>(p.views.size());
    parameter_bytes += p.shape.num_elements() * ir::bits(final.dtype) / 8;
  }
  for (const passes::SessionState& s : session.states) states += is_optimizer_tensor(s.decl) ? 1 : 0;
  const auto parameters = std::max<int64_t>(1, static_cast<int64_t>(model.parameters().size()));
  const bool is_averaged = std::ranges::any_of(model.parameters(), [&](const models::Parameter& p) {
    return session.has_state(optimizers::average_name(p.name));
  });
  const bool is_plain = final.dtype == model.parameters().front().dtype && !is_averaged &&
                        parameter_bytes <= final.max_shard_bytes.value_or(INT64_MAX);
  const int64_t tensors = views * ((is_plain ? 1 : 2) + ceil_div(states, parameters));
  return io::StreamWriter::kHostBytes + kFixedHostBytes + kHostBytesPerTensor * tensors +
         file_order_bytes(model);
}

Result<std::unique_ptr<CheckpointFiles>> CheckpointFiles::create(
    const settings::RunConfig& config, const io::ConfigJson& run_model_config, const models::Model& model,
    ModelFileSet beside, runtime::Session& session, CheckpointManifest manifest) {
  const io::ConfigJson model_config = with_pad_token(run_model_config, beside.pad_token);
  std::unique_ptr<CheckpointFiles> files(new CheckpointFiles(std::move(manifest), session));
  const passes::SessionPlan& plan = session.plan();
  PLIMSOLL_TRY(files->add_tensor_file(weights_file(model), parameter_tensors(model, plan)));
  PLIMSOLL_TRY(files->add_tensor_file("optimizer.safetensors", optimizer_tensors(model, plan)));
  const FinalFormat format = final_format(config, model_config, model);
  if (!model.adapters()) {
    PLIMSOLL_ASSIGN(FinalWeights final, FinalWeights::create(model, plan, format));
    if (!final.is_plain()) files->final_weights_ = std::move(final);
  }
  PLIMSOLL_TRY(files->add_small_files(config, model_config, model, std::move(beside.files)));
  files->final_config_ =
      model.adapters() ? files->small_files_.front().text : config_text(model_config, format.dtype);
  for (const SmallFile& small : files->small_files_) files->manifest_.files.push_back({small.name});
  write_checkpoint_text(files->manifest_, files->text_);
  files->text_.reserve(files->text_.size() + 32 * files->manifest_.files.size() + 256);  // digits grow
  return files;
}

Status CheckpointFiles::add_tensor_file(const std::string& name, std::vector<StoredTensor> tensors) {
  if (tensors.empty()) return Ok{};  // an optimizer without state
  PLIMSOLL_ASSIGN(io::SafetensorsLayout layout, layout_of(tensors));
  manifest_.files.push_back(file_entry(name, layout, tensors));
  tensor_files_.push_back({name, std::move(layout), std::move(tensors)});
  return Ok{};
}

Status CheckpointFiles::add_small_files(const settings::RunConfig& config, const io::ConfigJson& model_config,
                                        const models::Model& model, std::vector<ModelFile> files) {
  SmallFile config_file{{"config.json", config_text(model_config, model.parameters().front().dtype)}};
  if (model.adapters()) {
    PLIMSOLL_ASSIGN(std::string text, adapter_config_of(config, model));
    small_files_.push_back({{"adapter_config.json", std::move(text)}});
  } else {
    small_files_.push_back(config_file);
  }
  for (ModelFile& file : files) small_files_.push_back({std::move(file)});
  // PEFT's directory has no config.json, but nothing else names a classifier's labels; a resume asks a
  // checkpoint's.
  const bool names_labels = model.num_labels() > 0;
  if (model.adapters() && names_labels) small_files_.push_back(config_file);
  num_final_files_ = small_files_.size();
  if (model.adapters() && !names_labels) small_files_.push_back(std::move(config_file));
  // Every checkpoint lies as deep below output.dir.
  small_files_.push_back(
      {{"run.yaml", settings::run_config_yaml(config, config.output.dir + "/checkpoint")}});
  // As it is when a save begins; its size is guessed from the steps that it will tell of.
  SmallFile state{{std::string(kTrainerState), {}, config.output.dir + "/" + std::string(kTrainerState)}};
  state.bytes = kBytesPerLogEntry * (8 + manifest_.total_steps / config.training.logging_steps);
  small_files_.push_back(std::move(state));
  std::error_code ignored;
  for (SmallFile& small : small_files_) {
    if (small.bytes > 0) continue;
    const uintmax_t size =
        small.source.empty() ? small.text.size() : std::filesystem::file_size(small.source, ignored);
    if (size != static_cast<uintmax_t>(-1)) small.bytes = static_cast<int64_t>(size);
  }
  return Ok{};
}

int64_t CheckpointFiles::small_bytes(size_t count) const {
  int64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += small_files_[i].bytes;
  return bytes;
}

int64_t CheckpointFiles::checkpoint_bytes() const {
  int64_t bytes = static_cast<int64_t>(text_.size()) + small_bytes(small_files_.size());
  for (const TensorFile& file : tensor_files_) bytes += file.layout.file_bytes();
  return bytes;
}

int64_t CheckpointFiles::final_bytes() const {
  return (final_weights_ ? final_weights_->bytes() : tensor_files_.front().layout.file_bytes()) +
         small_bytes(num_final_files_);
}

Status CheckpointFiles::take_buffers() {
  if (stream_) return Ok{};
  buffer_.resize(kCopyBytes);
  PLIMSOLL_ASSIGN(stream_, io::StreamWriter::create());
  return Ok{};
}

Status CheckpointFiles::write_checkpoint(const io::AtomicDirectory& directory,
                                         const std::function<void()>& sources_read) {
  PLIMSOLL_TRY(take_buffers());
  std::vector<std::optional<io::OutputFile>> files(tensor_files_.size());
  for (size_t i = 0; i < tensor_files_.size(); ++i) PLIMSOLL_TRY(write_tensor_file(directory, i, files[i]));
  sources_read();
  for (auto& file : files) PLIMSOLL_TRY(file->close());
  PLIMSOLL_TRY(write_small_files(directory, /*final=*/false));
  write_checkpoint_text(manifest_, text_);
  PLIMSOLL_ASSIGN(io::OutputFile last, directory.create_file(kCheckpointFile));
  PLIMSOLL_TRY(last.write_at(0, std::as_bytes(std::span(text_))));
  return last.close();
}

Status CheckpointFiles::write_final(const io::AtomicDirectory& directory, const std::string& card) {
  PLIMSOLL_TRY(take_buffers());
  PLIMSOLL_TRY(write_final_weights(directory));
  PLIMSOLL_ASSIGN(io::OutputFile readme, directory.create_file("README.md"));
  PLIMSOLL_TRY(readme.write_at(0, std::as_bytes(std::span(card))));
  PLIMSOLL_TRY(readme.close());
  return write_small_files(directory, /*final=*/true);
}

Status CheckpointFiles::write_final_weights(const io::AtomicDirectory& directory) {
  if (!final_weights_) {
    std::optional<io::OutputFile> model;
    PLIMSOLL_TRY(write_tensor_file(directory, 0, model));
    return model->close();
  }
  final_shards_.clear();
  for (size_t i = 0; i < final_weights_->num_shards(); ++i) {
    const int64_t bytes = final_weights_->shard_bytes(i);
    PLIMSOLL_ASSIGN(io::OutputFile out, directory.create_file(final_weights_->name(i)));
    PLIMSOLL_TRY(out.reserve(bytes));
    sum_.reset();
    io::StreamWriter::Stream stream = stream_->begin(std::move(out));
    PLIMSOLL_TRY(final_weights_->read(i, reader_, buffer_, [&](std::span<const std::byte> piece) -> Status {
      sum_.add(piece);
      return stream.append(piece);
    }));
    PLIMSOLL_ASSIGN(io::OutputFile written, stream.finish());
    PLIMSOLL_TRY(written.close());
    final_shards_.push_back({final_weights_->name(i), bytes, bytes, sum_.value()});
  }
  const std::string& text = final_weights_->index();
  if (text.empty()) return Ok{};
  PLIMSOLL_ASSIGN(io::OutputFile index, directory.create_file(kIndexFile));
  PLIMSOLL_TRY(index.write_at(0, std::as_bytes(std::span(text))));
  const auto bytes = static_cast<int64_t>(text.size());
  final_shards_.push_back({kIndexFile, bytes, bytes, io::checksum(text)});
  return index.close();
}

Status CheckpointFiles::write_tensor_file(const io::AtomicDirectory& directory, size_t index,
                                          std::optional<io::OutputFile>& out) {
  const TensorFile& file = tensor_files_[index];
  PLIMSOLL_ASSIGN(io::OutputFile created, directory.create_file(file.name));
  PLIMSOLL_TRY(created.reserve(file.layout.file_bytes()));
  io::StreamWriter::Stream stream = stream_->begin(std::move(created));
  PLIMSOLL_TRY(stream.append(std::as_bytes(std::span(file.layout.header))));
  for (size_t t = 0; t < file.tensors.size(); ++t) {
    sum_.reset();
    const runtime::StateRange& range = file.tensors[t].range;
    const runtime::TakePiece append = [&](std::span<const std::byte> rest, int64_t) -> Status {
      while (!rest.empty()) {
        const auto piece = rest.first(std::min(rest.size(), kPieceBytes));
        sum_.add(piece);
        PLIMSOLL_TRY(stream.append(piece));
        rest = rest.subspan(piece.size());
      }
      return Ok{};
    };
    const ReadStored read = [&](int64_t offset, int64_t bytes, const runtime::TakePiece& take) {
      return reader_.read(range.state, range.offset + offset, bytes, take);
    };
    const int64_t width = io::safetensors_dtype_bytes(file.tensors[t].entry.dtype);
    PLIMSOLL_TRY(read_in_file_order(file.tensors[t].order, width, range.bytes, read, append));
    manifest_.files[index].tensors[t].checksum = sum_.value();
  }
  PLIMSOLL_ASSIGN(out, stream.finish());
  return Ok{};
}

/// A tokenizer that was moved away since the start is no reason to lose a checkpoint. One that cannot be
/// looked at is another matter: it may well be there, and all later checkpoints would lack it.
Status CheckpointFiles::drop_vanished_files() {
  for (size_t i = small_files_.size(); i-- > 0;) {
    const SmallFile& small = small_files_[i];
    if (small.source.empty()) continue;
    PLIMSOLL_ASSIGN(const bool is_there, io::path_exists(small.source));
    if (is_there) continue;
    manifest_.files.erase(manifest_.files.begin() + static_cast<std::ptrdiff_t>(tensor_files_.size() + i));
    small_files_.erase(small_files_.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < num_final_files_) --num_final_files_;
  }
  return Ok{};
}

Status CheckpointFiles::write_small_files(const io::AtomicDirectory& directory, bool final) {
  PLIMSOLL_TRY(drop_vanished_files());
  for (size_t i = 0; i < (final ? num_final_files_ : small_files_.size()); ++i)
    PLIMSOLL_TRY(write_small_file(directory, i, final));
  return Ok{};
}

Status CheckpointFiles::write_small_file(const io::AtomicDirectory& directory, size_t index, bool final) {
  const SmallFile& small = small_files_[index];
  const std::string& text = final && index == 0 ? final_config_ : small.text;
  PLIMSOLL_ASSIGN(io::OutputFile out, directory.create_file(small.name));
  sum_.reset();
  auto size = static_cast<int64_t>(text.size());
  if (small.source.empty()) {
    PLIMSOLL_TRY(out.write_at(0, std::as_bytes(std::span(text))));
    sum_.add(text);
  } else {
    PLIMSOLL_ASSIGN(const io::ReadFile source, io::ReadFile::open(small.source, ErrorCode::kIo));
    size = source.size_bytes();
    for (int64_t at = 0; at < size; at += static_cast<int64_t>(buffer_.size())) {
      const auto piece = std::span(buffer_).first(std::min(buffer_.size(), static_cast<size_t>(size - at)));
      PLIMSOLL_TRY(source.read_at(at, piece));
      PLIMSOLL_TRY(out.write_at(at, piece));
      sum_.add(piece);
    }
  }
  CheckpointFile& entry = manifest_.files[tensor_files_.size() + index];
  entry.bytes = entry.header_bytes = size;
  entry.checksum = sum_.value();
  return out.close();
}

std::vector<CheckpointFile> CheckpointFiles::final_files() const {
  std::vector<CheckpointFile> files = final_shards_;
  if (!final_weights_) files = {manifest_.files.front()};
  for (size_t i = 0; i < num_final_files_; ++i) files.push_back(manifest_.files[tensor_files_.size() + i]);
  return files;
}

const std::string& CheckpointFiles::text_of(std::string_view name) const {
  const auto found = std::find_if(small_files_.begin(), small_files_.end(),
                                  [&](const SmallFile& small) { return small.name == name; });
  PLIMSOLL_CHECK(found != small_files_.end(), "a checkpoint has no such file");
  return found->text;
}

Status CheckpointFiles::write_record(const io::AtomicDirectory& directory) const {
  CheckpointManifest final = manifest_;
  final.files = final_files();
  return write_final_record(directory, {text_of("run.yaml"), text_of("config.json")}, final);
}

bool CheckpointFiles::holds_final_weights(const std::string& directory) const {
  const auto config = io::read_small_file(directory + "/config.json", INT32_MAX);
  return config && *config == final_config_ && final_weights_->are_in(directory, session_);
}

bool CheckpointFiles::is_final_of(const Checkpoint& checkpoint, const std::string& directory,
                                  int num_threads) const {
  Checkpoint final{directory, checkpoint.manifest};
  // Of another dtype or layout than the checkpoint's, weights and config.json are held against the session.
  std::vector<std::string> names;
  if (!final_weights_) names = {tensor_files_.front().name, small_files_.front().name};
  for (size_t i = 1; i < num_final_files_; ++i) names.push_back(small_files_[i].name);
  std::erase_if(final.manifest.files, [&](const CheckpointFile& file) {
    return std::find(names.begin(), names.end(), file.name) == names.end();
  });
  return final.manifest.files.size() == names.size() && check_small_files(final) &&
         verify_checkpoint(final, num_threads) && (!final_weights_ || holds_final_weights(directory));
}

}  // namespace plimsoll::checkpoints
