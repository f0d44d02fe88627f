// Writes the files of checkpoints and of the final model directory. Everything
// is laid out once: a save allocates nothing of note, and reads the tensors where they lie.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/checkpoint.h"
#include "checkpoints/final_weights.h"
#include "checkpoints/model_file.h"
#include "checkpoints/tensor_files.h"
#include "io/atomic_directory.h"
#include "io/checksum.h"
#include "io/stream_writer.h"
#include "runtime/session.h"
#include "settings/run_config.h"

namespace plimsoll::checkpoints {

/// The history of the run's losses as it lies in output.dir when a save begins, and in the checkpoint.
inline constexpr std::string_view kTrainerState = "trainer_state.json";

class CheckpointFiles {
 public:
  /// `beside` stands beside config and weights; `manifest` holds what stays the same through the run; the
  /// session outlives this.
  static Result<std::unique_ptr<CheckpointFiles>> create(const settings::RunConfig& config,
                                                         const io::ConfigJson& model_config,
                                                         const models::Model& model, ModelFileSet beside,
                                                         runtime::Session& session,
                                                         CheckpointManifest manifest);
  /// On the session's thread: what is written from here on is the state that programs queued so far leave.
  /// Errors: of the device.
  Status mark() { return reader_.mark(); }

  /// Of the next checkpoint: its counters are the caller's to set.
  [[nodiscard]] CheckpointManifest& manifest() { return manifest_; }
  /// Bytes of the files of a checkpoint, or of the final directory.
  [[nodiscard]] int64_t checkpoint_bytes() const;
  [[nodiscard]] int64_t final_bytes() const;
  /// Takes the buffers, if that has not been done. By the thread that will write, before the first step: the
  /// allocator makes a heap for each thread at its first request. Errors: kIo where they cannot be had.
  Status take_buffers();

  /// Writes and syncs all files, checkpoint.json last. `sources_read` is called once the session's memory is
  /// not read any more. Errors: kIo.
  Status write_checkpoint(const io::AtomicDirectory& directory, const std::function<void()>& sources_read);
  /// Config, weights in the run's final_format, what belongs to the model, and `card` as README.md. Errors:
  /// kIo; kBadData as FinalWeights::read.
  Status write_final(const io::AtomicDirectory& directory, const std::string& card);
  /// After write_final: the record of the run (final_record.h), with the counters of manifest(). Errors: kIo.
  [[nodiscard]] Status write_record(const io::AtomicDirectory& directory) const;
  /// Whether `directory` holds what write_final would, byte for byte, by the checksums of `checkpoint`; its
  /// card aside.
  [[nodiscard]] bool is_final_of(const Checkpoint& checkpoint, const std::string& directory,
                                 int num_threads) const;

 private:
  /// A safetensors file of the session's memory.
  struct TensorFile {
    std::string name;
    io::SafetensorsLayout layout;
    std::vector<StoredTensor> tensors;
  };
  struct SmallFile : ModelFile {
    int64_t bytes = 0;  ///< at the start
  };
  CheckpointFiles(CheckpointManifest manifest, runtime::Session& session)
      : manifest_(std::move(manifest)), session_(session), reader_(session) {}
  Status add_tensor_file(const std::string& name, std::vector<StoredTensor> tensors);
  Status add_small_files(const settings::RunConfig& config, const io::ConfigJson& model_config,
                         const models::Model& model, std::vector<ModelFile> files);
  Status write_tensor_file(const io::AtomicDirectory& directory, size_t index,
                           std::optional<io::OutputFile>& out);
  /// The weights of final/ where they are not the checkpoint's file.
  Status write_final_weights(const io::AtomicDirectory& directory);
  [[nodiscard]] bool holds_final_weights(const std::string& directory) const;
  [[nodiscard]] std::vector<CheckpointFile> final_files() const;
  [[nodiscard]] const std::string& text_of(std::string_view name) const;
  Status write_small_files(const io::AtomicDirectory& directory, bool final);
  Status write_small_file(const io::AtomicDirectory& directory, size_t index, bool final);
  Status drop_vanished_files();
  [[nodiscard]] int64_t small_bytes(size_t count) const;

  CheckpointManifest manifest_;           ///< files: those of tensor_files_, then of small_files_
  std::vector<TensorFile> tensor_files_;  ///< model.safetensors first
  std::vector<SmallFile> small_files_;
  size_t num_final_files_ = 0;                 ///< of small_files_: what final/ has too
  std::optional<FinalWeights> final_weights_;  ///< nothing: the checkpoint's model.safetensors
  std::string final_config_;                   ///< config.json with them
  std::vector<CheckpointFile> final_shards_;   ///< as write_final has written them
  std::string text_;                           ///< checkpoint.json
  std::vector<std::byte> buffer_;
  io::Checksum sum_;
  std::unique_ptr<io::StreamWriter> stream_;
  runtime::Session& session_;
  runtime::BackgroundReader reader_;
};

/// Host memory that saving takes, for the plan: buffers, layouts, names.
int64_t checkpoint_host_bytes(const models::Model& model, const passes::SessionPlan& session,
                              const FinalFormat& final);

}  // namespace plimsoll::checkpoints
