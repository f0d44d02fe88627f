#include "checkpoints/checkpoint_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "checkpoints/master_weights.h"
#include "io/file.h"
#include "io/tensor_convert.h"
#include "optimizers/optimizer.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

/// As it is, or 16-bit floats for an f32 place.
bool fits(const CheckpointTensor& stored, const StoredTensor& wanted) {
  const bool is_widened = (stored.dtype == "BF16" || stored.dtype == "F16") && wanted.entry.dtype == "F32";
  return (stored.dtype == wanted.entry.dtype || is_widened) && stored.shape == wanted.entry.shape &&
         (is_widened ? 2 : 1) * stored.bytes == wanted.range.bytes;
}

/// Into the state: as it is, or widened.
Status put(runtime::Session& session, const CheckpointTensor& stored, const StoredTensor& to, int64_t at,
           std::span<const std::byte> piece) {
  const runtime::StateRange& range = to.range;
  if (stored.dtype == to.entry.dtype) return session.write(range.state, piece, range.offset + at);
  if (stored.offset % 2 != 0)
    return Error{ErrorCode::kBadData,
                 stored.name + " does not begin on two bytes",
                 {},
                 "resume from an older checkpoint, or --resume never"};
  const io::FloatFormat format = *io::float_format(stored.dtype);
  return session.write_pieces(range.state, range.offset + 2 * at, 2 * static_cast<int64_t>(piece.size()),
                              [&](std::span<std::byte> place, int64_t begin) -> Status {
                                io::convert_to_f32(format, piece.data() + begin / 2,
                                                   reinterpret_cast<float*>(place.data()),
                                                   static_cast<int64_t>(place.size()) / 4);
                                return Ok{};
                              });
}

/// All of a tensor of filters, whose order in the file is another.
Status put_filters(runtime::Session& session, const io::ReadFile& file, const CheckpointTensor& stored,
                   const StoredTensor& to) {
  const int64_t width = io::safetensors_dtype_bytes(to.entry.dtype);
  const bool is_widened = stored.dtype != to.entry.dtype;
  std::vector<std::byte> narrow(is_widened ? static_cast<size_t>(2 * to.order.filter()) : 0);
  const ReadFiled read = [&](int64_t offset, std::span<std::byte> filed) -> Status {
    if (!is_widened) return file.read_at(stored.offset + offset, filed);
    PLIMSOLL_TRY(file.read_at(stored.offset + offset / 2, narrow));
    io::convert_to_f32(*io::float_format(stored.dtype), narrow.data(), reinterpret_cast<float*>(filed.data()),
                       to.order.filter());
    return Ok{};
  };
  return session.write_pieces(to.range.state, to.range.offset, to.range.bytes,
                              [&](std::span<std::byte> place, int64_t at) {
                                return fill_in_stored_order(to.order, width, at, place, read);
                              });
}

constexpr std::string_view kMaster = "master.", kOptimizerFile = "optimizer.safetensors";

/// Which tensors of a checkpoint go where. Where weights or masters were kept otherwise than they are now,
/// the f32 ones take the checkpoint's masters, or its weights where it has none, and 16-bit weights follow
/// from masters. A loss scale that the checkpoint lacks, being of another precision, stays at its first
/// value.
class Places {
 public:
  Places(const Checkpoint& checkpoint, const models::Model& model, const runtime::Session& session)
      : model_file_(weights_file(model)), tensors_(parameter_tensors(model, session.plan())) {
    const CheckpointFile* file = checkpoint.manifest.find_file(kOptimizerFile);
    const bool had_masters = file != nullptr && std::any_of(file->tensors.begin(), file->tensors.end(),
                                                            [](const auto& t) { return is_master(t.name); });
    const bool masters = has_masters(model, session);
    follows_ = masters && !(had_masters && stores(checkpoint, tensors_.front()));
    const size_t parameters = tensors_.size();
    std::vector<bool> mastered;  // by weight: frozen ones have no master
    for (const models::Parameter& p : model.parameters())
      mastered.insert(mastered.end(), p.views.size(), has_master(p, session));
    mastered.resize(std::max(mastered.size(), parameters), false);  // buffers have none either
    for (StoredTensor& t : optimizer_tensors(model, session.plan())) tensors_.push_back(std::move(t));
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const std::string& name = tensors_[i].entry.name;
      const bool is_weight = i < parameters;
      if (is_weight && follows_ && mastered[i]) continue;
      if (name == optimizers::kScalerState && !holds(file, name)) continue;
      if (is_weight && !masters && holds(file, std::string(kMaster) + name))
        places_[kOptimizerFile][std::string(kMaster) + name] = &tensors_[i];
      else if (!is_weight && is_master(name) && !had_masters)
        places_[model_file_][name.substr(kMaster.size())] = &tensors_[i];
      else
        places_[is_weight ? std::string_view(model_file_) : kOptimizerFile][name] = &tensors_[i];
    }
  }
  using ByName = std::map<std::string, const StoredTensor*, std::less<>>;
  [[nodiscard]] const std::map<std::string_view, ByName>& by_file() const { return places_; }
  /// Whether weights are to be rounded from their masters.
  [[nodiscard]] bool follows() const { return follows_; }

 private:
  static bool is_master(const std::string& name) { return name.starts_with(kMaster); }
  static bool holds(const CheckpointFile* file, std::string_view name) {
    return file != nullptr && std::any_of(file->tensors.begin(), file->tensors.end(),
                                          [&](const auto& t) { return t.name == name; });
  }
  [[nodiscard]] bool stores(const Checkpoint& checkpoint, const StoredTensor& weight) const {
    const CheckpointFile* file = checkpoint.manifest.find_file(model_file_);
    return file != nullptr && std::any_of(file->tensors.begin(), file->tensors.end(), [&](const auto& t) {
             return t.name == weight.entry.name && t.dtype == weight.entry.dtype;
           });
  }
  std::string model_file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, ByName> places_;
  bool follows_ = false;
};

Status read_file(const Checkpoint& checkpoint, std::string_view name, const Places::ByName& places,
                 runtime::Session& session, int num_threads) {
  const auto not_there = [&](const std::string& what) {
    return Error{ErrorCode::kBadData, what, checkpoint.path + "/" + std::string(name),
                 "start a new run with --resume never or another output.dir"};
  };
  const CheckpointFile* file = checkpoint.manifest.find_file(name);
  if (file == nullptr) return not_there("the checkpoint lacks a file");
  const auto place_of = [&](const CheckpointTensor& stored) -> const StoredTensor* {
    const auto place = places.find(stored.name);
    return place == places.end() || !fits(stored, *place->second) ? nullptr : place->second;
  };
  std::set<std::string_view> there;
  for (const CheckpointTensor& stored : file->tensors)
    if (place_of(stored) != nullptr) there.insert(stored.name);
  // Checksums say that the files are whole: what they lack is kept in another layout.
  for (const auto& [wanted, unused] : places)
    if (!there.contains(wanted))
      return Error{ErrorCode::kInvalidArgument,
                   "the checkpoint keeps its state in another layout than this version: it has no " + wanted +
                       " of that shape",
                   checkpoint.path + "/" + std::string(name),
                   "resume with the version that made it, or start a new run with --resume never or another "
                   "output.dir"};
  const TakeTensorPiece take = [&](const CheckpointTensor& stored, int64_t at,
                                   std::span<const std::byte> piece) -> Status {
    const StoredTensor* place = place_of(stored);
    if (place == nullptr || !place->order.is_stored()) return Ok{};
    return put(session, stored, *place, at, piece);
  };
  PLIMSOLL_TRY(read_checkpoint_tensors(checkpoint, *file, take, num_threads));
  // Filters are put into another order, which takes whole ones. They are read once more, after the checksums.
  PLIMSOLL_ASSIGN(const io::ReadFile again, io::ReadFile::open(checkpoint.path + "/" + std::string(name)));
  for (const CheckpointTensor& stored : file->tensors)
    if (const StoredTensor* place = place_of(stored); place != nullptr && !place->order.is_stored())
      PLIMSOLL_TRY(put_filters(session, again, stored, *place));
  return Ok{};
}

}  // namespace

Result<ResumeChoice> choose_checkpoints(const std::string& resume, const std::string& output_dir) {
  if (resume == "never") return ResumeChoice{};
  if (resume == "auto") {
    PLIMSOLL_ASSIGN(auto found, list_checkpoints(output_dir));
    return ResumeChoice{std::move(found)};
  }
  std::string folder = resume;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::filesystem::path path(folder);
  std::error_code ignored;
  if (std::filesystem::exists(path / kCheckpointFile, ignored) ||
      (checkpoint_step(path.filename().string()) && is_checkpoint(folder)))
    return ResumeChoice{{{0, folder}}, true};
  PLIMSOLL_ASSIGN(auto found, list_checkpoints(folder));
  ResumeChoice choice{std::move(found)};
  if (!choice.candidates.empty()) return choice;
  return Error{ErrorCode::kBadData, "there is no checkpoint", resume,
               "--resume takes auto, never or a checkpoint's folder"};
}

Status pass_over(const ResumeChoice& choice, size_t at, Error error, const Note& note) {
  const bool unread = error.code == ErrorCode::kIo;
  if ((!unread && error.code != ErrorCode::kBadData) || choice.only_this) return error;
  note((unread ? "skipped, because it cannot be read: " : "skipped, because it is damaged: ") +
       error.message());
  if (at + 1 < choice.candidates.size()) return Ok{};
  const std::string folder = io::folder_of(choice.candidates.front().path);
  if (unread)
    return Error{ErrorCode::kIo, "every checkpoint is damaged or cannot be read", folder,
                 "check permissions and the disk, or start a new run with --resume never"};
  return Error{ErrorCode::kBadData, "every checkpoint is damaged", folder,
               "start a new run with --resume never"};
}

Result<std::optional<Checkpoint>> open_first_intact(const ResumeChoice& choice, size_t& from,
                                                    const Note& note) {
  for (; from < choice.candidates.size(); ++from) {
    auto opened = open_checkpoint(choice.candidates[from].path);
    if (opened && !choice.only_this && opened->manifest.step != choice.candidates[from].step)
      opened = Error{ErrorCode::kBadData, "the folder is named for another step than it holds",
                     choice.candidates[from].path, "restore its name"};
    if (opened) return std::optional(std::move(*opened));
    PLIMSOLL_TRY(pass_over(choice, from, std::move(opened).error(), note));
  }
  return std::optional<Checkpoint>();
}

Status load_checkpoint(const Checkpoint& checkpoint, const models::Model& model, runtime::Session& session,
                       int num_threads) {
  const Places places(checkpoint, model, session);
  const bool shares_masters = std::ranges::any_of(
      model.parameters(), [&](const models::Parameter& p) { return shares_master(p, session); });
  if (places.follows() && shares_masters)
    return Error{
        ErrorCode::kInvalidArgument,
        "the checkpoint keeps weights in another precision, and ranks that share masters cannot round "
        "them in this version",
        checkpoint.path, "resume with distributed.mode=ddp, or with training.state as it was"};
  for (const auto& [name, tensors] : places.by_file())
    PLIMSOLL_TRY(read_file(checkpoint, name, tensors, session, num_threads));
  return places.follows() ? round_masters(model, session, num_threads) : Status(Ok{});
}

std::vector<std::string> stale_checkpoints(const std::string& output_dir,
                                           const std::optional<Checkpoint>& taken) {
  std::vector<std::string> stale;
  std::error_code ignored;
  const bool ours =
      taken && std::filesystem::equivalent(
                   io::folder_of(std::filesystem::path(taken->path).lexically_normal()), output_dir, ignored);
  for (const FoundCheckpoint& found : find_checkpoints(output_dir))
    if (!ours || found.step > taken->manifest.step) stale.push_back(found.path);
  return stale;
}

}  // namespace plimsoll::checkpoints
