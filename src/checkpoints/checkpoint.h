// A checkpoint as a folder, `checkpoint-<step>`:
//
//   config.json, model.safetensors, the tokenizer's files    a Hugging Face directory, as final/
//   optimizer.safetensors                                    master.<tensor>, adamw.m.<tensor>, loss_scaler …
//   run.yaml                                                 the settings that it was made with
//   checkpoint.json                                          counters, what the data was, checksums; its own
//
// Every byte of every file is covered by a checksum in checkpoint.json, and that one by its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "io/file.h"

namespace plimsoll::checkpoints {

/// One tensor of a file and where its bytes lie.
struct CheckpointTensor {
  std::string name;
  std::string dtype;  ///< the safetensors name
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< from the file's start
  int64_t bytes = 0;
  uint64_t checksum = 0;
};

/// One file. `checksum` covers its first `header_bytes`; tensors, in order and without a hole, the rest.
struct CheckpointFile {
  std::string name;
  int64_t bytes = 0;
  int64_t header_bytes = 0;
  uint64_t checksum = 0;
  std::vector<CheckpointTensor> tensors = {};
};

/// The best evaluations so far, of a run that keeps the best model or stops early.
struct BestState {
  std::string metric = {};  ///< which figure of an evaluation is compared: "loss"
  int64_t step = -1;        ///< of the best evaluation; -1: none yet
  double value = 0;
  int64_t saved_step = -1;  ///< of the best one whose step has a checkpoint
  double saved_value = 0;
  int64_t waited = 0;  ///< evaluations in a row without progress
  bool operator==(const BestState&) const = default;
};

/// What checkpoint.json says. Version 4 is version 3 with `best`.
struct CheckpointManifest {
  int64_t version = 1;
  int64_t step = 0;         ///< updates done
  int64_t total_steps = 0;  ///< of the run, as it was planned
  int64_t tokens = 0;       ///< trained on
  int64_t seed = 0;
  int64_t position = 0;                ///< sequences consumed, over all epochs
  int64_t num_sequences = 0;           ///< in an epoch
  int64_t num_data_tokens = 0;         ///< in data.train
  int64_t evaluated_step = -1;         ///< the last step whose evaluation was reported
  int64_t skipped = 0;                 ///< steps whose update an overflow has skipped
  int64_t skipped_in_a_row = 0;        ///< of them the last ones, without an update in between
  std::optional<BestState> best = {};  ///< nothing: not looked for
  uint64_t data = 0;                   ///< checksum of data.train's tokens
  uint64_t weights = 0;                ///< of the pretrained ones that the run began with; 0: there were none
  uint64_t plan = 0;                   ///< checksum of the memory plan; a resume may have another
  bool couples_micro_batch = false;    ///< the run's micro-batch is part of what is trained; in no file
  bool takes_batch_statistics = false;  ///< so is that of each rank; in no file
  std::string isa = {};                 ///< instruction set: bits are the same for one
  /// What --resume-with has changed on the way: "step 20: training.learning_rate is 1.0e-4, it was 3.0e-4".
  std::vector<std::string> changes = {};
  std::vector<CheckpointFile> files = {};

  [[nodiscard]] const CheckpointFile* find_file(std::string_view name) const;
};

inline constexpr std::string_view kCheckpointFile = "checkpoint.json";
inline constexpr std::string_view kCheckpointPrefix = "checkpoint-";

/// Replaces `text` by the file's text, its own checksum as the last field. Allocates nothing where `text` has
/// held a manifest of the same files before, but for short names.
void write_checkpoint_text(const CheckpointManifest& manifest, std::string& text);
/// Reads and checks the text: its checksum, every field, that each file's tensors cover it. Errors: kBadData;
/// kInvalidArgument where it is whole, but of another version.
Result<CheckpointManifest> parse_checkpoint(std::string_view text);

/// A folder that has been looked at: checkpoint.json is right, all files are there in their sizes, those
/// without tensors have their checksums.
struct Checkpoint {
  std::string path;
  CheckpointManifest manifest;
};
/// Errors: kBadData naming the file and what is wrong with it; kInvalidArgument as parse_checkpoint; kIo.
Result<Checkpoint> open_checkpoint(const std::string& path);
/// Holds the sizes of all files, and the checksums of those without tensors, against the manifest. Errors: as
/// open_checkpoint, which calls it.
Status check_small_files(const Checkpoint& checkpoint);
/// Errors: kBadData where the file is shorter or longer than what was written.
Status check_size(const io::ReadFile& content, const CheckpointFile& file);
/// Reads every byte of the files with tensors too, through `num_threads` small buffers. Errors: kBadData
/// naming file and tensor; kIo.
Status verify_checkpoint(const Checkpoint& checkpoint, int num_threads = 1);

/// Takes a piece of a tensor's bytes, `at` of which come before it. From several threads, a tensor's from
/// one.
using TakeTensorPiece =
    std::function<Status(const CheckpointTensor&, int64_t at, std::span<const std::byte> piece)>;
/// Reads a file's tensors piece by piece, in parallel, and checks all checksums on the way: a piece has not
/// been checked when it is taken. Of a tensor that begins on an even byte pieces do too. Errors: as
/// verify_checkpoint, or the first that `take` returns; what was taken is then worth nothing.
Status read_checkpoint_tensors(const Checkpoint& checkpoint, const CheckpointFile& file,
                               const TakeTensorPiece& take, int num_threads);

/// A `checkpoint-<step>` folder by its name alone.
struct FoundCheckpoint {
  int64_t step = 0;
  std::string path;
};
/// Those of this program in `directory`, the newest first; none where there is no such folder. Errors: kIo
/// where it cannot be read, and a run would else begin anew over what it has saved.
Result<std::vector<FoundCheckpoint>> list_checkpoints(const std::string& directory);
/// The same for who tells of them or tidies up: none where that cannot be known.
std::vector<FoundCheckpoint> find_checkpoints(const std::string& directory);
/// Whether a folder was made by this program, damaged or not: other programs have such names too. One that
/// cannot be looked into counts as ours, so that it is named instead of overlooked.
bool is_checkpoint(const std::string& path);
/// The step of a folder's name, "checkpoint-12"; nothing for other names.
std::optional<int64_t> checkpoint_step(std::string_view name);
/// "<directory>/checkpoint-<step>".
std::string checkpoint_path(const std::string& directory, int64_t step);

}  // namespace plimsoll::checkpoints
