#include "preprocessing/run_data.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/units.h"
#include "corpora/record_reader.h"
#include "corpora/saved_dataset.h"
#include "io/file.h"
#include "io/missing_file.h"
#include "preprocessing/data_files.h"

namespace plimsoll::preprocessing {
namespace {

/// Threads that read ahead where the run file does not say; the first usually suffices.
constexpr int64_t kMostWorkers = 4;

/// Whether a side's files say where documents begin and end; what is held out is held out by documents.
bool side_has_documents(const settings::DataSettings& data, bool eval) {
  if (data.eval_fraction > 0) return true;
  return std::ranges::any_of(files_of(eval ? data.eval.files : data.train), [](const std::string& file) {
    return kind_of(file) == FileKind::kJson || kind_of(file) == FileKind::kShard;
  });
}

datasets::PackOptions pack_options(const settings::DataSettings& data, bool eval) {
  datasets::PackOptions pack;
  pack.sequence_length = data.sequence_length;
  pack.mode = data.packing == "pad"            ? datasets::PackMode::kPad
              : data.packing == "stream"       ? datasets::PackMode::kStream
              : side_has_documents(data, eval) ? datasets::PackMode::kBestFit
                                               : datasets::PackMode::kStream;
  pack.long_documents = data.long_documents == "drop"       ? datasets::LongDocuments::kDrop
                        : data.long_documents == "truncate" ? datasets::LongDocuments::kTruncate
                                                            : datasets::LongDocuments::kCut;
  pack.max_documents = (eval ? data.max_eval_samples : data.max_train_samples).value_or(0);
  pack.window = data.packing_window;
  pack.keep_tail = eval;
  pack.eval_fraction = data.eval_fraction;
  if (data.eval_fraction > 0) pack.side = eval ? datasets::SplitSide::kEval : datasets::SplitSide::kTrain;
  return pack;
}

}  // namespace

FileKind kind_of(const std::string& path) {
  if (path.ends_with(".npy") || path.ends_with(".bin")) return FileKind::kTokens;
  if (corpora::has_rows_by_name(path)) return FileKind::kJson;
  // A run may be planned before its shards are there.
  return path.ends_with(".shard") || datasets::is_shard(path) ? FileKind::kShard : FileKind::kText;
}

std::vector<std::string> files_of(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    auto found = corpora::expand_data(pattern);
    if (found)
      files.insert(files.end(), found->begin(), found->end());
    else
      files.push_back(pattern);
  }
  return files;
}

bool packs_documents(const settings::DataSettings& data) {
  if (data.packing != "auto") return data.packing != "stream";
  return side_has_documents(data, false) || side_has_documents(data, true);
}

datasets::TrainingDataOptions training_data_options(const settings::RunConfig& config, bool eval,
                                                    const std::vector<int64_t>& buckets) {
  const settings::DataSettings& data = config.data;
  datasets::TrainingDataOptions options;
  options.pack = pack_options(data, eval);
  options.seed = static_cast<uint64_t>(config.training.seed);
  options.shuffle = data.shuffle && !eval;
  if (buckets.size() > 1) options.buckets = buckets;
  options.global_batch_size = config.training.global_batch_size;
  if (!eval && data.keep_in_memory) options.kept_bytes = data.keep_in_memory->count;
  options.cache_folder = data.cache_dir.empty() ? config.output.dir + "/data" : data.cache_dir;
  options.setting = eval ? "data.eval" : "data.train";
  options.augments = !eval;
  options.skips_damaged = data.on_error == "skip";
  return options;
}

Status check_data_is_there(const settings::DataSettings& data, bool train) {
  const auto check = [](const std::string& setting, const std::vector<std::string>& patterns) -> Status {
    for (const std::string& pattern : patterns) {
      const auto found = plimsoll::io::expand_glob(pattern);
      if (!found) return Error(found.error()).at(setting);
      for (const std::string& file : *found) {
        const auto is_there = plimsoll::io::path_exists(file);
        if (!is_there || *is_there) continue;  // what a disk does not say is told by who reads it
        std::string hint = plimsoll::io::missing_hint(file);
        if (!file.starts_with('/'))
          hint +=
              "; with paths: run_file in the run file, those that begin with ./ or ../ begin at its folder";
        return Error{ErrorCode::kBadData, "there is no such file", setting + ": " + file, std::move(hint)};
      }
    }
    return Ok{};
  };
  if (train || data.eval_fraction > 0) PLIMSOLL_TRY(check("data.train", data.train));
  return check("data.eval", data.eval.files);
}

std::vector<std::string> missing_data(const settings::DataSettings& data, bool images) {
  const auto expand = [&](const std::string& pattern) {
    return images ? plimsoll::io::expand_glob(pattern) : corpora::expand_data(pattern);
  };
  const auto is_there = [&](const std::string& path) {
    std::error_code code;
    return images ? std::filesystem::exists(path, code) : plimsoll::io::is_file(path);
  };
  constexpr auto kWithout = "{}: {}; planning does not need it, but a run would stop with an error";
  std::vector<std::string> lines;
  for (const auto& [setting, patterns] :
       {std::pair("data.train", &data.train), std::pair("data.eval", &data.eval.files)})
    for (const std::string& pattern : *patterns)
      if (const auto found = expand(pattern); !found)
        lines.push_back(fmt::format(kWithout, setting, found.error().message()));
      else
        for (const std::string& file : *found)
          if (!is_there(file))
            lines.push_back(fmt::format(kWithout, setting, "there is no such file: " + file));
  return lines;
}

std::vector<std::string> packing_notes(const datasets::TrainingData& data) {
  const bool apart = data.pack_options().mode != datasets::PackMode::kStream;
  std::vector<std::string> lines;
  for (const auto& source : data.sources()) {
    if (source->pack_report() == nullptr) continue;
    const datasets::PackReport& r = *source->pack_report();
    std::string text =
        fmt::format("{} {} document{} into {} sequences of {}, {:.2f}% filled", apart ? "packed" : "joined",
                    r.kept_documents, r.kept_documents == 1 ? "" : "s", r.num_sequences, r.sequence_length,
                    100 * r.filled());
    if (apart && r.cut_documents > 0) text += fmt::format(", {} cut", r.cut_documents);
    const auto left_out = [&](int64_t count, int64_t tokens, const char* what) {
      if (tokens > 0) text += fmt::format(", {} {} ({} tokens)", count, what, tokens);
    };
    left_out(r.truncated_documents, r.truncated_tokens, "truncated");
    left_out(r.too_long_documents, r.too_long_tokens, "left out as too long");
    left_out(r.no_target_documents, r.no_target_tokens, "left out without a loss token");
    left_out(r.no_target_pieces, r.no_target_piece_tokens, "pieces left out without a loss token");
    left_out(r.other_side_documents, r.other_side_tokens, "held out by the train/eval split");
    left_out(r.beyond_documents, r.beyond_tokens, "beyond the requested number");
    if (r.tail_tokens > 0) text += fmt::format(", {} tokens left over at the end", r.tail_tokens);
    lines.push_back(std::move(text));
    // Each piece's first token aside, all are targets where there is no mask.
    const bool has_answers = r.num_targets + r.num_segments < r.num_tokens;
    if (apart && r.cut_documents > 0 && has_answers)
      lines.push_back(
          fmt::format("{} of them {} longer than data.sequence_length ({}) and cut into pieces: an answer "
                      "may be separated from its question; data.long_documents=truncate keeps only the "
                      "beginning, drop leaves such documents out",
                      r.cut_documents, r.cut_documents == 1 ? "is" : "are", r.sequence_length));
  }
  return lines;
}

datasets::LoaderOptions loader_options(const settings::RunConfig& config,
                                       std::vector<datasets::TensorSpec> tensors, int64_t num_labels) {
  datasets::LoaderOptions options;
  options.batch_size = config.training.global_batch_size;
  options.tensors = std::move(tensors);
  options.prefetch = config.data.prefetch_factor;
  options.num_threads = static_cast<int>(config.data.num_workers.value_or(kMostWorkers));
  options.grows = !config.data.num_workers;
  options.scratch_bytes = data_scratch_bytes(config, num_labels);
  return options;
}

int64_t data_scratch_bytes(const settings::RunConfig& config, int64_t num_labels) {
  // Of a shard: blocks around a sequence's ids, masks, entries of the index; of labels a block.
  return (int64_t{64} << 10) + 16 * config.data.sequence_length + round_up(4 * num_labels, int64_t{64});
}

}  // namespace plimsoll::preprocessing
