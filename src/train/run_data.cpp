#include "train/run_data.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/child_process.h"
#include "base/signals.h"
#include "base/units.h"
#include "data/shard.h"
#include "data/text/encoder_files.h"
#include "data/text/record_reader.h"
#include "data/text/tokenize.h"
#include "io/checksum.h"
#include "io/file.h"
#include "io/json.h"

namespace plimsoll::train {
namespace {

/// What the first tokenizer of another layout of this cache would be.
constexpr std::string_view kCacheVersion = "1";
/// Threads that read ahead where the run file does not say; the first usually suffices.
constexpr int64_t kMostWorkers = 4;

enum class FileKind { kTokens, kShard, kJson, kText };

FileKind kind_of(const std::string& path) {
  if (path.ends_with(".npy")) return FileKind::kTokens;
  if (text::is_json_name(path)) return FileKind::kJson;
  // A run may be planned before its shards are there.
  return path.ends_with(".shard") || is_shard(path) ? FileKind::kShard : FileKind::kText;
}

/// The files of each pattern; a pattern without a match stands for itself, for plans without data.
std::vector<std::string> files_of(const std::vector<std::string>& patterns) {
  std::vector<std::string> files;
  for (const std::string& pattern : patterns) {
    auto found = expand_glob(pattern);
    if (found)
      files.insert(files.end(), found->begin(), found->end());
    else
      files.push_back(pattern);
  }
  return files;
}

/// "bytes", or the folder or file of the tokenizer.
Result<std::string> tokenizer_path(const RunConfig& config) {
  if (config.data.tokenizer != "auto") return config.data.tokenizer;
  PLIMSOLL_ASSIGN(const std::string folder, model_directory(config.model));
  std::error_code code;
  return !folder.empty() && std::filesystem::exists(folder + "/tokenizer.json", code) ? folder
                                                                                      : std::string("bytes");
}

PackOptions pack_options(const DataSettings& data, bool eval) {
  PackOptions pack;
  pack.sequence_length = data.sequence_length;
  pack.mode = data.packing == "pad"      ? PackMode::kPad
              : data.packing == "stream" ? PackMode::kStream
              : packs_documents(data)    ? PackMode::kBestFit
                                         : PackMode::kStream;
  pack.long_documents = data.long_documents == "drop" ? LongDocuments::kDrop : LongDocuments::kCut;
  pack.window = data.packing_window;
  pack.keep_tail = eval;
  pack.eval_fraction = data.eval_fraction;
  if (data.eval_fraction > 0) pack.side = eval ? SplitSide::kEval : SplitSide::kTrain;
  return pack;
}

/// Makes the data ready; runs in the child.
class Preparation {
 public:
  Preparation(const RunConfig& config, const PrepareDataOptions& options)
      : config_(config), options_(options) {}

  Result<RunData> operator()() {
    const DataSettings& data = config_.data;
    RunData ready;
    if (options_.train || data.eval_fraction > 0) {
      PLIMSOLL_ASSIGN(ready.train, sources(data.train, data.weights, "data.train"));
    }
    if (data.eval_fraction > 0) {
      DataFiles& all = ready.eval.emplace_back();  // each document once, whatever the mixture
      for (const DataFiles& files : ready.train)
        all.paths.insert(all.paths.end(), files.paths.begin(), files.paths.end());
      const auto other = std::find_if_not(all.paths.begin(), all.paths.end(), is_shard);
      if (other != all.paths.end())
        return Error{ErrorCode::kInvalidArgument,
                     "data.eval_fraction splits documents, and this file has none", *other,
                     "name held-out data: data.eval"};
    } else if (!data.eval.empty()) {
      PLIMSOLL_ASSIGN(ready.eval, sources(data.eval, {}, "data.eval"));
    }
    PLIMSOLL_TRY(pack(ready));
    return ready;
  }

 private:
  Result<std::vector<DataFiles>> sources(const std::vector<std::string>& entries,
                                         const std::vector<double>& weights, const std::string& setting) {
    std::vector<DataFiles> result;
    if (weights.empty()) {
      PLIMSOLL_ASSIGN(auto paths, ready_paths(entries, setting));
      result.push_back({std::move(paths), 1});
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      PLIMSOLL_ASSIGN(auto paths, ready_paths({entries[i]}, setting));
      result.push_back({std::move(paths), weights[i]});
    }
    return result;
  }

  /// The files as they are read: texts as one shard in place of all of them.
  Result<std::vector<std::string>> ready_paths(const std::vector<std::string>& entries,
                                               const std::string& setting) {
    std::vector<std::string> paths, texts;
    for (const std::string& entry : entries) {
      PLIMSOLL_ASSIGN(const auto files, expand_glob(entry));
      for (const std::string& file : files) {
        const FileKind kind = kind_of(file);
        const bool is_text = kind == FileKind::kJson || kind == FileKind::kText;
        (is_text ? texts : paths).push_back(file);
      }
    }
    if (texts.empty()) return paths;
    PLIMSOLL_ASSIGN(const std::string tokenizer, tokenizer_path(config_));
    if (tokenizer == "bytes") return as_bytes(std::move(paths), texts);
    if (!paths.empty())
      return Error{ErrorCode::kInvalidArgument, setting + " joins texts and files of tokens", texts.front(),
                   "tokenize the texts first (plimsoll data tokenize), or give data.weights"};
    PLIMSOLL_ASSIGN(std::string shard, tokenized(texts, tokenizer));
    return std::vector{std::move(shard)};
  }

  Result<std::vector<std::string>> as_bytes(std::vector<std::string> paths,
                                            const std::vector<std::string>& texts) {
    for (const std::string& path : texts)
      if (!path.ends_with(".txt"))
        return Error{ErrorCode::kInvalidArgument, "without a tokenizer only .txt files are read, as bytes",
                     path, "set data.tokenizer to a model's folder or a tokenizer.json"};
    paths.insert(paths.end(), texts.begin(), texts.end());
    return paths;
  }

  Result<const EncoderFiles*> encoder_files(const std::string& tokenizer) {
    if (!files_) {
      PLIMSOLL_ASSIGN(EncoderFiles opened, EncoderFiles::open(tokenizer, config_.data.chat_template));
      files_.emplace(std::move(opened));
    }
    return &*files_;
  }

  Result<EncoderOptions> encoder_options(const EncoderFiles& files) const {
    EncoderOptions options;
    options.loss = *parse_loss_scope(config_.data.loss);
    options.template_error = files.template_error;
    if (config_.data.append_eos) {
      PLIMSOLL_ASSIGN(options.append_id, files.end_token());
    }
    return options;
  }

  /// The name says what the shard was made from, as far as it shows without reading the texts.
  Result<std::string> cache_path(const std::vector<std::string>& texts, const EncoderFiles& files) const {
    Checksum sum;
    const auto add = [&](std::string_view part) {
      sum.add(part);
      sum.add(std::string_view("\0", 1));
    };
    const DataSettings& data = config_.data;
    add(kCacheVersion);
    add(checksum_text(files.tokenizer->vocabulary_hash()));
    for (const std::string& part : {data.loss, data.text_key, data.on_error,
                                    std::string(data.append_eos ? "eos" : ""), data.chat_template})
      add(part);
    for (const std::string& name :
         {data.chat_template, files.folder + "/chat_template.jinja", files.folder + "/tokenizer_config.json"})
      add(file_state(name));
    for (const std::string& path : texts) {
      std::error_code code;
      add(std::filesystem::absolute(path, code).string());
      add(file_state(path));
    }
    return fmt::format("{}/tokens-{}.shard", cache_folder(), checksum_text(sum.value()));
  }

  /// Size and time of the last change; empty where there is no such file.
  static std::string file_state(const std::string& path) {
    struct stat s = {};
    if (path.empty() || ::stat(path.c_str(), &s) != 0) return {};
    return fmt::format("{} {}.{}", s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
  }

  Result<std::string> tokenized(const std::vector<std::string>& texts, const std::string& tokenizer) {
    PLIMSOLL_ASSIGN(const EncoderFiles* files, encoder_files(tokenizer));
    PLIMSOLL_ASSIGN(std::string path, cache_path(texts, *files));
    if (is_shard(path) && Shard::open(path)) return path;
    PLIMSOLL_TRY(create_writable_directory(cache_folder()));
    PLIMSOLL_TRY(tokenize(texts, *files, path));
    return path;
  }

  Status tokenize(const std::vector<std::string>& texts, const EncoderFiles& files, const std::string& path) {
    PLIMSOLL_ASSIGN(const EncoderOptions encoding, encoder_options(files));
    const Tokenizer& tokenizer = *files.tokenizer;
    const ExampleEncoder encoder(tokenizer, files.chat_template.get(), encoding);
    ReaderOptions reading;
    reading.on_error = config_.data.on_error == "skip" ? OnError::kSkip : OnError::kFail;
    reading.text_key = config_.data.text_key;
    reading.cut = [&tokenizer](std::string_view text) { return tokenizer.last_safe_cut(text); };
    PLIMSOLL_ASSIGN(const auto reader, ExampleReader::open(texts, reading));
    PLIMSOLL_ASSIGN(
        ShardWriter writer,
        ShardWriter::create(path, {.vocab_size = tokenizer.vocab_size(),
                                   .vocabulary_hash = tokenizer.vocabulary_hash(),
                                   .with_mask = reader->has_json() && encoding.loss != LossScope::kAll}));
    TokenizeOptions options{.num_threads = options_.num_threads};
    options.stop = [] { return stop_requested() != 0; };
    if (options_.progress)
      options.progress = [&](const TokenizeCounts& counts) {
        options_.progress(static_cast<double>(counts.bytes_read) /
                              static_cast<double>(std::max<int64_t>(1, counts.total_bytes)),
                          fmt::format("tokenizing, {} tokens", counts.num_tokens));
      };
    PLIMSOLL_ASSIGN(const TokenizeCounts counts, tokenize_files(
                                                     *reader, encoder,
                                                     [&](auto ids, auto in_loss, bool continues) {
                                                       return writer.add(ids, in_loss, continues);
                                                     },
                                                     options));
    if (counts.num_tokens == 0)
      return Error{ErrorCode::kBadData, "no example gave a token", texts.front(),
                   "check that these are the files you meant"};
    PLIMSOLL_TRY(writer.finish());
    tell(counts);
    return Ok{};
  }

  void tell(const TokenizeCounts& counts) const {
    if (!options_.note) return;
    options_.note(fmt::format("tokenized {} document{}, {} tokens, from {}", counts.num_documents,
                              counts.num_documents == 1 ? "" : "s", counts.num_tokens,
                              to_string(Bytes(counts.text_bytes))));
    for (const auto& [reason, count] : counts.skipped.by_reason)
      options_.note(fmt::format("passed over {} example{}: {}", count, count == 1 ? "" : "s", reason));
  }

  /// Builds the indexes that are not there yet, and so finds what is wrong with the shards.
  Status pack(const RunData& ready) {
    PLIMSOLL_ASSIGN(const std::string tokenizer, tokenizer_path(config_));
    for (const bool eval : {false, true}) {
      if (!eval && !options_.train) continue;
      std::vector<DataFiles> side = eval ? ready.eval : ready.train;
      std::erase_if(side, [](const DataFiles& files) {
        return std::none_of(files.paths.begin(), files.paths.end(), is_shard);
      });
      if (side.empty()) continue;
      TrainingDataOptions options = training_data_options(config_, /*vocab_size=*/0, eval);
      if (tokenizer != "bytes") {
        PLIMSOLL_ASSIGN(const EncoderFiles* files, encoder_files(tokenizer));
        options.vocabulary_hash = files->tokenizer->vocabulary_hash();
      }
      PLIMSOLL_TRY(create_writable_directory(cache_folder()));
      PLIMSOLL_TRY(TrainingData::open(side, options));
    }
    return Ok{};
  }

  [[nodiscard]] std::string cache_folder() const {
    return training_data_options(config_, 0, false).cache_folder;
  }

  const RunConfig& config_;
  const PrepareDataOptions& options_;
  std::optional<EncoderFiles> files_;
};

// ---- what comes back from the child: [[[path, …], weight], …] for either side

Tree to_tree(const std::vector<DataFiles>& sources) {
  Tree list = Tree::list();
  for (const DataFiles& files : sources) {
    Tree paths = Tree::list();
    for (const std::string& path : files.paths) paths.items.push_back(Tree::of(path));
    list.items.push_back(Tree::list({std::move(paths), Tree::of(files.weight)}));
  }
  return list;
}

std::vector<DataFiles> from_tree(const Tree& list) {
  std::vector<DataFiles> sources;
  for (const Tree& item : list.items) {
    DataFiles& files = sources.emplace_back();
    for (const Tree& path : item.items[0].items) files.paths.push_back(path.text);
    files.weight = item.items[1].number;
  }
  return sources;
}

/// Whether every file can be read as it lies there.
bool is_ready(const std::vector<std::string>& patterns, const std::string& tokenizer) {
  const auto files = files_of(patterns);
  return std::all_of(files.begin(), files.end(), [&](const std::string& file) {
    const FileKind kind = kind_of(file);
    return kind == FileKind::kTokens || (kind == FileKind::kText && tokenizer == "bytes");
  });
}

}  // namespace

bool packs_documents(const DataSettings& data) {
  if (data.packing != "auto") return data.packing != "stream";
  for (const auto* patterns : {&data.train, &data.eval})
    for (const std::string& file : files_of(*patterns))
      if (const FileKind kind = kind_of(file); kind == FileKind::kJson || kind == FileKind::kShard)
        return true;
  return data.eval_fraction > 0;
}

TrainingDataOptions training_data_options(const RunConfig& config, int64_t vocab_size, bool eval) {
  const DataSettings& data = config.data;
  TrainingDataOptions options;
  options.pack = pack_options(data, eval);
  options.vocab_size = vocab_size;
  options.seed = static_cast<uint64_t>(config.training.seed);
  options.shuffle = data.shuffle && !eval;
  options.cache_folder = data.cache_dir.empty() ? config.output.dir + "/data" : data.cache_dir;
  options.setting = eval ? "data.eval" : "data.train";
  return options;
}

LoaderOptions loader_options(const RunConfig& config) {
  LoaderOptions options;
  options.batch_size = config.training.global_batch_size;
  options.documents = packs_documents(config.data);
  options.prefetch = config.data.prefetch_factor;
  options.num_threads = static_cast<int>(config.data.num_workers.value_or(kMostWorkers));
  options.grows = !config.data.num_workers;
  options.scratch_bytes = data_scratch_bytes(config);
  return options;
}

int64_t data_scratch_bytes(const RunConfig& config) {
  // Of a shard: blocks around a sequence's ids, masks, entries of the index.
  return (int64_t{64} << 10) + 16 * config.data.sequence_length;
}

Result<RunData> prepare_data(const RunConfig& config, const PrepareDataOptions& options) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, tokenizer_path(config));
  const bool ready = (!options.train || is_ready(config.data.train, tokenizer)) &&
                     is_ready(config.data.eval, tokenizer) && config.data.eval_fraction == 0;
  if (ready) return Preparation(config, options)();  // a few names: nothing to keep apart
  PLIMSOLL_ASSIGN(const std::string text, in_child_process([&]() -> Result<std::string> {
                    PLIMSOLL_ASSIGN(const RunData data, Preparation(config, options)());
                    return to_json(Tree::list({to_tree(data.train), to_tree(data.eval)}));
                  }));
  PLIMSOLL_ASSIGN(const Tree tree, parse_json(text));
  return RunData{from_tree(tree.items[0]), from_tree(tree.items[1])};
}

}  // namespace plimsoll::train
