#include "library/session_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

#include "checkpoints/tensor_files.h"
#include "io/atomic_directory.h"
#include "io/checksum.h"
#include "io/json.h"
#include "io/safetensors_reader.h"
#include "io/safetensors_writer.h"
#include "ops/loss_scale.h"
#include "optimizers/optimizer.h"

namespace plimsoll::library {
namespace {

using Tensors = std::vector<checkpoints::StoredTensor>;

constexpr std::string_view kRecord = "session.json", kFormat = "plimsoll session";
constexpr int64_t kVersion = 1, kMostRecordBytes = int64_t{64} << 20, kPiece = int64_t{1} << 20;
constexpr int64_t kMostSteps = int64_t{1} << 53;  // that a JSON number counts

struct StateFile {
  std::string name;
  Tensors tensors;
};

std::vector<StateFile> files_of(OwnSession& session) {
  const models::Model& model = *session.plan().prepared().model;
  const passes::SessionPlan& programs = session.session().plan();
  Tensors weights = checkpoints::parameter_tensors(model, programs);
  std::erase_if(weights, [](const checkpoints::StoredTensor& t) { return t.entry.name.empty(); });
  return {{"model.safetensors", std::move(weights)},
          {"optimizer.safetensors", checkpoints::optimizer_tensors(model, programs)}};
}

/// A checksum of the whole file, read in pieces.
Result<uint64_t> checksum_of(const std::string& path) {
  PLIMSOLL_ASSIGN(const io::ReadFile file, io::ReadFile::open(path));
  io::Checksum sum;
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPiece, file.size_bytes())));
  for (int64_t at = 0; at < file.size_bytes(); at += kPiece) {
    const auto size = static_cast<size_t>(std::min(kPiece, file.size_bytes() - at));
    PLIMSOLL_TRY(file.read_at(at, std::span(piece).first(size)));
    sum.add(std::span(piece).first(size));
  }
  return sum.value();
}

Status write_tensors(runtime::Session& session, const Tensors& tensors, const std::string& path) {
  std::vector<io::SafetensorsEntry> entries;
  for (const checkpoints::StoredTensor& tensor : tensors) entries.push_back(tensor.entry);
  PLIMSOLL_ASSIGN(io::SafetensorsWriter file,
                  io::SafetensorsWriter::create(path, std::move(entries), {{"format", "pt"}}));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const runtime::StateRange& range = tensors[i].range;
    PLIMSOLL_TRY(checkpoints::read_in_file_order(
        tensors[i].order, io::safetensors_dtype_bytes(tensors[i].entry.dtype), range.bytes,
        [&](int64_t offset, int64_t bytes, const runtime::TakePiece& take) {
          return session.read_pieces(range.state, range.offset + offset, bytes, take);
        },
        [&](std::span<const std::byte> bytes, int64_t at) { return file.write(i, bytes, at); }));
  }
  return file.finish();
}

Status check_place(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    const fs::path parent = fs::path(folder).parent_path();
    return parent.empty() ? Status(Ok{}) : io::create_writable_directory(parent.string());
  }
  const bool is_empty = fs::is_directory(folder, ignored) && fs::is_empty(folder, ignored);
  if (is_empty || fs::exists(folder + "/" + std::string(kRecord), ignored)) return Ok{};
  return Error{ErrorCode::kInvalidArgument, "the folder holds something that no session has saved", folder,
               "choose another one, or move it away"};
}

/// What session.json says.
struct Record {
  StepCounters counters;
  int64_t seed = 0;
  io::Tree host = {};
  io::Tree sums = {};
};

Error damaged(std::string what, const std::string& folder) {
  return {ErrorCode::kBadData, std::move(what), folder, "load another one"};
}

Result<Record> read_record(const std::string& folder) {
  const std::string path = folder + "/" + std::string(kRecord);
  std::error_code ignored;
  const auto missing = std::filesystem::is_directory(folder, ignored) ? ErrorCode::kBadData : ErrorCode::kIo;
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(path, kMostRecordBytes, missing));
  auto tree = io::parse_json(text, {.max_bytes = kMostRecordBytes});
  if (!tree) return damaged("session.json is no JSON: " + tree.error().what, folder);
  const auto integer = [&](std::string_view name) -> std::optional<int64_t> {
    const io::Tree* value = tree->find(name);
    return value != nullptr && value->kind == io::Tree::Kind::kInteger ? std::optional(value->integer)
                                                                       : std::nullopt;
  };
  const io::Tree *format = tree->find("format"), *sums = tree->find("checksums"), *host = tree->find("host");
  const auto steps = integer("steps"), skipped = integer("skipped"), seed = integer("seed");
  if (format == nullptr || format->text != kFormat || integer("version") != kVersion || !steps || !skipped ||
      !seed || *steps < 0 || *steps > kMostSteps || *skipped < 0 || *skipped > *steps || sums == nullptr ||
      host == nullptr)
    return damaged("session.json is not that of a session", folder);
  return Record{{*steps, *skipped}, *seed, *host, *sums};
}

/// The file is whole and holds these tensors and no others.
Result<io::SafetensorsFile> open_tensors(const StateFile& state, const Record& record,
                                         const std::string& folder) {
  const std::string path = folder + "/" + state.name;
  const io::Tree* wanted = record.sums.find(state.name);
  PLIMSOLL_ASSIGN(const uint64_t sum, checksum_of(path));
  if (wanted == nullptr || io::parse_checksum(wanted->text) != sum)
    return damaged("its content has changed since it was saved", path);
  PLIMSOLL_ASSIGN(io::SafetensorsFile file, io::SafetensorsFile::open(path));
  std::vector<std::string> misfits;
  for (const checkpoints::StoredTensor& tensor : state.tensors) {
    const io::SafetensorsTensor* found = file.find(tensor.entry.name);
    const auto described = [](const std::string& dtype, const std::vector<int64_t>& shape) {
      return fmt::format("{} [{}]", dtype, fmt::join(shape, ", "));
    };
    if (found == nullptr)
      misfits.push_back(fmt::format("{} is missing", tensor.entry.name));
    else if (found->shape != tensor.entry.shape || found->dtype != tensor.entry.dtype)
      misfits.push_back(fmt::format("{} is {}, expected {}", tensor.entry.name,
                                    described(found->dtype, found->shape),
                                    described(tensor.entry.dtype, tensor.entry.shape)));
  }
  for (const io::SafetensorsTensor& tensor : file.tensors())
    if (std::ranges::none_of(state.tensors, [&](const auto& t) { return t.entry.name == tensor.name; }))
      misfits.push_back(fmt::format("{} is not the model's", io::shown_name(tensor.name)));
  if (misfits.empty()) return file;
  constexpr size_t kShown = 5;
  const size_t shown = std::min(misfits.size(), kShown);
  return Error{
      ErrorCode::kBadData,
      fmt::format("the session is of another model or optimizer: {}{}",
                  fmt::join(misfits.begin(), misfits.begin() + static_cast<int64_t>(shown), "; "),
                  misfits.size() > shown ? fmt::format("; and {} more", misfits.size() - shown) : ""),
      path};
}

/// Where the file has a loss scale, gradients can be divided by it.
Status check_scale(const io::SafetensorsFile& file) {
  const io::SafetensorsTensor* scaler = file.find(optimizers::kScalerState);
  if (scaler == nullptr) return Ok{};
  std::array<float, ops::kScalerFields> fields{};
  PLIMSOLL_TRY(file.read(*scaler, 0, std::as_writable_bytes(std::span(fields))));
  const float scale = fields[ops::kScale];
  if (!(std::isfinite(scale) && scale > 0))
    return damaged(fmt::format("its loss scale is {}", scale), file.path());
  return Ok{};
}

Status read_tensors(const io::SafetensorsFile& file, const Tensors& tensors, runtime::Session& session) {
  for (const checkpoints::StoredTensor& tensor : tensors) {
    const io::SafetensorsTensor* from = file.find(tensor.entry.name);
    const auto read = [&](int64_t at, std::span<std::byte> piece) { return file.read(*from, at, piece); };
    const int64_t width = io::safetensors_dtype_bytes(tensor.entry.dtype);
    PLIMSOLL_TRY(session.write_pieces(tensor.range.state, tensor.range.offset, tensor.range.bytes,
                                      [&](std::span<std::byte> piece, int64_t at) {
                                        if (tensor.order.is_stored()) return read(at, piece);
                                        return checkpoints::fill_in_stored_order(tensor.order, width, at,
                                                                                 piece, read);
                                      }));
  }
  return session.synchronize();
}

}  // namespace

Status save_session(OwnSession& session, const std::string& folder, std::string_view host_state) {
  io::Tree host;
  if (!host_state.empty()) {
    auto parsed = io::parse_json(host_state);
    if (!parsed)
      return Error{ErrorCode::kInvalidArgument, "the host's state is no JSON: " + parsed.error().what};
    host = std::move(*parsed);
  }
  PLIMSOLL_TRY(check_place(folder));
  PLIMSOLL_TRY(session.settle_counts());
  PLIMSOLL_ASSIGN(io::AtomicDirectory directory, io::AtomicDirectory::create(folder));
  io::Tree sums = io::Tree::map();
  for (const StateFile& file : files_of(session)) {
    const std::string path = directory.hidden_path() + "/" + file.name;
    PLIMSOLL_TRY(write_tensors(session.session(), file.tensors, path));
    PLIMSOLL_ASSIGN(const uint64_t sum, checksum_of(path));
    sums.set(file.name, io::Tree::of(io::checksum_text(sum)));
  }
  io::Tree record = io::Tree::map();
  record.set("format", io::Tree::of(std::string(kFormat)));
  record.set("version", io::Tree::of(kVersion));
  record.set("steps", io::Tree::of(session.counters().steps));
  record.set("skipped", io::Tree::of(session.counters().skipped));
  record.set("seed", io::Tree::of(session.seed()));
  record.set("host", std::move(host));
  record.set("checksums", std::move(sums));
  PLIMSOLL_TRY(io::write_file_atomically(directory.hidden_path() + "/" + std::string(kRecord),
                                         io::to_json(record) + "\n"));
  return directory.publish();
}

Result<std::string> load_session(OwnSession& session, const std::string& folder) {
  PLIMSOLL_ASSIGN(const Record record, read_record(folder));
  const std::vector<StateFile> files = files_of(session);
  std::vector<io::SafetensorsFile> opened;
  for (const StateFile& file : files) {
    PLIMSOLL_ASSIGN(io::SafetensorsFile tensors, open_tensors(file, record, folder));
    PLIMSOLL_TRY(check_scale(tensors));
    opened.push_back(std::move(tensors));
  }
  for (size_t i = 0; i < files.size(); ++i)
    PLIMSOLL_TRY(read_tensors(opened[i], files[i].tensors, session.session()));
  PLIMSOLL_TRY(session.go_on(record.counters, record.seed));
  return io::to_json(record.host);
}

}  // namespace plimsoll::library
