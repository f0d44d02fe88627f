// The record of the run that final/ is the model of. A later run compares itself with it, so that a finished
// run is neither trained again nor replaced by another one:
//
//   finished/run.yaml, config.json   the settings and the model's config, as in a checkpoint
//   finished/final.json              sizes and checksums of final/'s files, in the form of checkpoint.json
//   finished/checkpoint.json         counters, data, first weights, the checksums of these three files
//
// It is written before final/ has its name and gets its own name right after: recover_final_record finishes
// that where the process was killed in between.
#pragma once

#include <string>
#include <string_view>

#include "checkpoints/checkpoint.h"
#include "io/atomic_directory.h"

namespace plimsoll::checkpoints {

inline constexpr std::string_view kFinalFolder = "final", kRecordFolder = "finished";

/// "<output_dir>/final" and "<output_dir>/finished".
std::string final_path(const std::string& output_dir);
std::string record_path(const std::string& output_dir);

/// What stands where a run saves its model.
enum class FinalState : uint8_t {
  kAbsent,  ///< nothing, or an empty folder
  kModel,   ///< a model's or an adapter's folder
  kOther,   ///< a file, or a folder with other files
};
/// Errors: kIo.
Result<FinalState> look_at_final(const std::string& output_dir);

struct FinalRecord {
  Checkpoint run;            ///< the folder of the record
  CheckpointManifest final;  ///< its files are those of final/, the card aside
};

/// The texts that a checkpoint has too.
struct RecordTexts {
  std::string_view run_yaml, config;
};
/// Writes and syncs the files of a record, checkpoint.json last. `final`: the run's counters, and the files
/// of final/. Errors: kIo.
Status write_final_record(const io::AtomicDirectory& directory, const RecordTexts& texts,
                          const CheckpointManifest& final);
/// Whether there is one, damaged or not.
bool has_final_record(const std::string& output_dir);
/// Opens the record in `folder` and checks its own files. Errors: kBadData where there is none or it is
/// damaged; kInvalidArgument where another version wrote it; kIo.
Result<FinalRecord> open_final_record(const std::string& folder);
/// Reads every byte of the model in the folder `final`. Errors: kBadData naming the file that is not as the
/// run left it; kIo.
Status check_final(const FinalRecord& record, const std::string& final, int num_threads);
/// Whether final/ is what `checkpoint` was saved as too, by sizes and checksums, without reading the tensors.
bool is_record_of(const FinalRecord& record, const CheckpointManifest& checkpoint, const std::string& final);
/// Publishes the record that a killed process left unpublished, where final/ is what it describes; removes it
/// otherwise. Call before clean_directory. Errors: kIo.
Status recover_final_record(const std::string& output_dir, int num_threads);

}  // namespace plimsoll::checkpoints
