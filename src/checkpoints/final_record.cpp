#include "checkpoints/final_record.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "io/checksum.h"

namespace plimsoll::checkpoints {
namespace {

constexpr std::string_view kFinalFiles = "final.json";
constexpr int64_t kMaxBytes = int64_t{256} << 20;

std::string join(const std::string& folder, std::string_view name) {
  return fmt::format("{}/{}", folder, name);
}

Status write_text(const io::AtomicDirectory& directory, std::string_view name, std::string_view text) {
  PLIMSOLL_ASSIGN(io::OutputFile file, directory.create_file(name));
  PLIMSOLL_TRY(file.write_at(0, std::as_bytes(std::span(text))));
  return file.close();
}

CheckpointFile entry_of(std::string_view name, std::string_view text) {
  const auto bytes = static_cast<int64_t>(text.size());
  return {std::string(name), bytes, bytes, io::checksum(text)};
}

}  // namespace

std::string final_path(const std::string& output_dir) { return join(output_dir, kFinalFolder); }
std::string record_path(const std::string& output_dir) { return join(output_dir, kRecordFolder); }

Result<FinalState> look_at_final(const std::string& output_dir) {
  const std::filesystem::path path(final_path(output_dir));
  std::error_code code;
  const std::filesystem::file_status found = std::filesystem::status(path, code);
  if (found.type() == std::filesystem::file_type::not_found) return FinalState::kAbsent;
  if (code) return io::io_error("cannot look at the folder", path.string(), code.value());
  if (found.type() != std::filesystem::file_type::directory) return FinalState::kOther;
  for (const char* name : {"config.json", "adapter_config.json"}) {
    const bool there = std::filesystem::exists(path / name, code);
    if (there || code) return FinalState::kModel;
  }
  const bool empty = std::filesystem::is_empty(path, code);
  if (code) return io::io_error("cannot look at the folder", path.string(), code.value());
  return empty ? FinalState::kAbsent : FinalState::kOther;
}

Status write_final_record(const io::AtomicDirectory& directory, const RecordTexts& texts,
                          const CheckpointManifest& final) {
  std::string files;
  write_checkpoint_text(final, files);
  CheckpointManifest own = final;
  own.files.clear();
  const std::array<std::pair<std::string_view, std::string_view>, 3> all = {
      {{"run.yaml", texts.run_yaml}, {"config.json", texts.config}, {kFinalFiles, files}}};
  for (const auto& [name, text] : all) {
    own.files.push_back(entry_of(name, text));
    PLIMSOLL_TRY(write_text(directory, name, text));
  }
  std::string text;
  write_checkpoint_text(own, text);
  return write_text(directory, kCheckpointFile, text);
}

bool has_final_record(const std::string& output_dir) {
  std::error_code code;
  return std::filesystem::exists(join(record_path(output_dir), kCheckpointFile), code) || code;
}

Result<FinalRecord> open_final_record(const std::string& folder) {
  FinalRecord record;
  PLIMSOLL_ASSIGN(record.run, open_checkpoint(folder));
  const std::string file = join(folder, kFinalFiles);
  PLIMSOLL_ASSIGN(const std::string text, io::read_small_file(file, kMaxBytes));
  auto final = parse_checkpoint(text);
  if (!final) return std::move(final).error().at(file);
  record.final = std::move(*final);
  return record;
}

Status check_final(const FinalRecord& record, const std::string& final, int num_threads) {
  const Checkpoint folder{final, record.final};
  PLIMSOLL_TRY(check_small_files(folder));
  return verify_checkpoint(folder, num_threads);
}

bool is_record_of(const FinalRecord& record, const CheckpointManifest& checkpoint, const std::string& final) {
  if (!check_small_files({final, record.final})) return false;
  for (const CheckpointFile& file : record.final.files) {
    if (file.tensors.empty()) continue;  // its bytes have been checked
    const CheckpointFile* saved = checkpoint.find_file(file.name);
    if (saved == nullptr || saved->checksum != file.checksum || saved->tensors.size() != file.tensors.size())
      return false;
    for (size_t i = 0; i < file.tensors.size(); ++i)
      if (saved->tensors[i].checksum != file.tensors[i].checksum) return false;
  }
  return true;
}

Status recover_final_record(const std::string& output_dir, int num_threads) {
  const std::string record = record_path(output_dir);
  const std::string unpublished = io::unpublished_path(record);
  std::error_code code;
  if (!std::filesystem::exists(unpublished, code)) return Ok{};
  const auto left = open_final_record(unpublished);
  const bool is_of_final = left && check_final(*left, final_path(output_dir), num_threads);
  if (is_of_final) {
    PLIMSOLL_TRY(io::retire_directory(record));
    if (std::filesystem::rename(unpublished, record, code); code)
      return io::io_error("cannot rename the folder", unpublished, code.value());
    return io::sync_directory(output_dir);
  }
  std::filesystem::remove_all(unpublished, code);  // what stays is in nobody's way
  return Ok{};
}

}  // namespace plimsoll::checkpoints
