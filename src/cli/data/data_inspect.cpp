// plimsoll data inspect: counts, lengths, masks and samples of texts and files of tokens, and what packing
// would make of them.
#include "cli/data/data_inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/host.h"
#include "base/numbers.h"
#include "base/units.h"
#include "cli/data/data_files.h"
#include "cli/data/data_inspect_text.h"
#include "cli/data/data_json.h"
#include "cli/data/data_reading.h"
#include "cli/data/data_samples.h"
#include "cli/data/length_histogram.h"
#include "cli/data/masked_text.h"
#include "cli/inspect/inspect_shard.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "corpora/saved_dataset.h"
#include "datasets/packing.h"
#include "io/checksum.h"
#include "io/hub_cache.h"
#include "io/scratch_folder.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::cli {
namespace {

struct DataInspectArguments {
  std::vector<std::string> files;
  TextArguments text;
  int64_t samples = 3;
  int64_t sequence_length = 0;
  bool json = false;
};

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

Result<std::unique_ptr<tokenizers::Tokenizer>> open_tokenizer(const std::string& path) {
  std::error_code code;
  if (std::filesystem::exists(path, code) || !io::is_hub_id(path)) return tokenizers::Tokenizer::open(path);
  PLIMSOLL_ASSIGN(const std::string folder, io::find_model_folder(path));
  return tokenizers::Tokenizer::open(folder);
}

Status check_tokenizer(const std::vector<DataFile>& files, const tokenizers::Tokenizer& tokenizer,
                       const std::string& name) {
  for (const DataFile& file : files) {
    if (file.shard() == nullptr || file.shard()->info().vocabulary_hash == 0 ||
        file.shard()->info().vocabulary_hash == tokenizer.vocabulary_hash())
      continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the shard was made with another tokenizer (vocabulary {}) than {} ({})",
                             io::checksum_text(file.shard()->info().vocabulary_hash), name,
                             io::checksum_text(tokenizer.vocabulary_hash())),
                 file.path(), "name the tokenizer that made the shard"};
  }
  return Ok{};
}

Result<std::vector<DataFile>> open_files(const std::vector<std::string>& patterns, TextInspection& texts) {
  std::vector<DataFile> files;
  for (const std::string& pattern : patterns) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> paths, corpora::expand_data(pattern));
    for (const std::string& path : paths) {
      PLIMSOLL_ASSIGN(DataFile file, texts.tokenizes(path) ? texts.open(path) : DataFile::open(path));
      files.push_back(std::move(file));
    }
  }
  return files;
}

struct Totals {
  int64_t documents = 0, tokens = 0, targets = 0;
};

Totals totals_of(const std::vector<DataFile>& files) {
  Totals totals;
  for (const DataFile& file : files) {
    totals.documents += file.num_documents();
    totals.tokens += file.num_tokens();
    totals.targets += file.num_targets();
  }
  return totals;
}

std::string vocabulary_text(const DataFile& file) {
  if (file.shard() == nullptr) return "";
  const datasets::ShardInfo& info = file.shard()->info();
  return fmt::format("{} ids{}", grouped(info.vocab_size),
                     info.vocabulary_hash == 0 ? "" : ", " + io::checksum_text(info.vocabulary_hash));
}

void print_files(const std::vector<DataFile>& files) {
  constexpr auto kRight = Table::Align::kRight;
  Table table(
      {{"file"}, {"kind"}, {"documents", kRight}, {"tokens", kRight}, {"targets", kRight}, {"vocabulary"}});
  for (const DataFile& file : files)
    table.add({file.path(), file.kind(), grouped(file.num_documents()), grouped(file.num_tokens()),
               fmt::format("{:.1f} %", percent(file.num_targets(), file.num_tokens())),
               vocabulary_text(file)});
  print_text(table.text() + "\n");
}

io::Tree files_tree(const std::vector<DataFile>& files) {
  io::Tree list = io::Tree::list();
  for (const DataFile& file : files) {
    io::Tree one = io::Tree::map({{"path", json_text(file.path())},
                                  {"kind", io::Tree::of(std::string(file.kind()))},
                                  {"documents", io::Tree::of(file.num_documents())},
                                  {"tokens", io::Tree::of(file.num_tokens())},
                                  {"targets", io::Tree::of(file.num_targets())}});
    if (file.shard() != nullptr) {
      one.set("vocab_size", io::Tree::of(file.shard()->info().vocab_size));
      one.set("vocabulary_hash", io::Tree::of(io::checksum_text(file.shard()->info().vocabulary_hash)));
    }
    list.items.push_back(std::move(one));
  }
  return list;
}

constexpr std::pair<datasets::PackMode, const char*> kModes[] = {{datasets::PackMode::kBestFit, "best_fit"},
                                                                 {datasets::PackMode::kPad, "pad"},
                                                                 {datasets::PackMode::kStream, "stream"}};

io::Tree packing_tree(const datasets::PackReport& r, const char* mode) {
  return io::Tree::map({{"mode", io::Tree::of(std::string(mode))},
                        {"sequences", io::Tree::of(r.num_sequences)},
                        {"filled", io::Tree::of(r.filled())},
                        {"tokens", io::Tree::of(r.num_tokens)},
                        {"targets", io::Tree::of(r.num_targets)},
                        {"cut_documents", io::Tree::of(r.cut_documents)},
                        {"no_target_documents", io::Tree::of(r.no_target_documents)},
                        {"no_target_tokens", io::Tree::of(r.no_target_tokens + r.no_target_piece_tokens)},
                        {"tail_tokens", io::Tree::of(r.tail_tokens)}});
}

/// Packs the shards each way; the table for people goes into `text`.
Result<io::Tree> try_packing(const std::vector<DataFile>& files, int64_t sequence_length, std::string& text) {
  std::vector<datasets::Shard> shards;
  for (const DataFile& file : files) {
    if (file.shard() == nullptr) continue;
    PLIMSOLL_ASSIGN(datasets::Shard shard, datasets::Shard::open(file.shard()->path()));
    shards.push_back(std::move(shard));
  }
  if (shards.empty())
    return Error{ErrorCode::kInvalidArgument, "only token shards are packed", files.front().path(),
                 "leave out --sequence-length"};
  PLIMSOLL_ASSIGN(const io::ScratchFolder folder, io::ScratchFolder::create("inspect"));
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"  packing"},
               {"sequences", kRight},
               {"filled", kRight},
               {"cut documents", kRight},
               {"without target", kRight},
               {"tail", kRight}});
  io::Tree list = io::Tree::list();
  for (const auto& [mode, name] : kModes) {
    PLIMSOLL_ASSIGN(const datasets::PackReport r,
                    datasets::PackIndex::build(shards, {.sequence_length = sequence_length, .mode = mode},
                                               folder.path() + "/index"));
    if (stop_requested() != 0)
      return Error{ErrorCode::kInterrupted, "stopped by a signal", {}, "run it again"};
    list.items.push_back(packing_tree(r, name));
    table.add({fmt::format("  {}", name), grouped(r.num_sequences), fmt::format("{:.2f} %", 100 * r.filled()),
               grouped(r.cut_documents),
               fmt::format("{} tokens", grouped(r.no_target_tokens + r.no_target_piece_tokens)),
               fmt::format("{} tokens", grouped(r.tail_tokens))});
  }
  text = table.text();
  return list;
}

/// What tokenizing had to say.
void add_remarks(Facts& facts, const corpora::TokenizeCounts& counts, bool json) {
  if (counts.num_examples == 0) return;
  facts.add("skipped", skipped_tree(counts.skipped));
  facts.add("empty", io::Tree::of(counts.num_empty));
  facts.add("split_prompts", io::Tree::of(counts.remarks.split_prompts));
  facts.add("unended", io::Tree::of(counts.remarks.unended));
  io::Tree remarks = io::Tree::list();
  for (std::string& line : corpora::remark_lines(counts.remarks))
    remarks.items.push_back(io::Tree::of(std::move(line)));
  facts.add("remarks", std::move(remarks));
  facts.add("invalid_utf8_bytes", io::Tree::of(counts.remarks.invalid.num_bytes()));
  if (json) return;
  for (const auto& [reason, count] : counts.skipped.by_reason)
    note(fmt::format("skipped {}: {}", counted(count, "example"), reason));
  for (const std::string& line : corpora::remark_lines(counts.remarks)) note(line);
}

Status inspect_data(const DataInspectArguments& a) {
  const StopSignals signals(false);  // or scratch files would stay
  PLIMSOLL_ASSIGN(TextInspection texts, TextInspection::create(a.text));
  PLIMSOLL_ASSIGN(const std::vector<DataFile> files,
                  open_files(a.files.empty() ? texts.run_files() : a.files, texts));
  if (files.empty())
    return Error{ErrorCode::kInvalidArgument, "no file is named", "plimsoll data inspect",
                 "name files, or a run file that does: --run"};
  std::unique_ptr<tokenizers::Tokenizer> tokenizer;
  if (!texts.tokenizer().empty() && texts.tokenizer() != "bytes") {
    PLIMSOLL_ASSIGN(tokenizer, open_tokenizer(texts.tokenizer()));
    PLIMSOLL_TRY(check_tokenizer(files, *tokenizer, texts.tokenizer()));
  }
  LengthHistogram lengths;
  for (const DataFile& file : files)
    PLIMSOLL_TRY(file.visit_lengths([&](int64_t length) { lengths.add(length); }));
  std::string packing_text;
  io::Tree packing = io::Tree::list();
  if (a.sequence_length > 0) {
    PLIMSOLL_ASSIGN(packing, try_packing(files, a.sequence_length, packing_text));
  }
  const Totals totals = totals_of(files);
  Facts facts("data");
  facts.add("files", files_tree(files));
  facts.add("documents", io::Tree::of(totals.documents), "documents", grouped(totals.documents));
  facts.add("tokens", io::Tree::of(totals.tokens), "tokens", grouped(totals.tokens));
  facts.add("targets", io::Tree::of(totals.targets), "targets",
            fmt::format("{} ({:.1f} % of the tokens)", grouped(totals.targets),
                        percent(totals.targets, totals.tokens)));
  add_lengths(facts, lengths);
  add_remarks(facts, texts.counts(), a.json);
  if (a.sequence_length > 0) {
    facts.add("sequence_length", io::Tree::of(a.sequence_length));
    facts.add("packing", packing);
  }
  if (!a.json) print_files(files);
  facts.print(a.json);
  if (!a.json && lengths.num_documents() > 0)
    print_text("\ndocuments by length in tokens\n" + lengths.picture(std::min(stdout_width(), 120)));
  if (!a.json && a.sequence_length > 0)
    print_text(fmt::format("\nin sequences of {} tokens\n{}", grouped(a.sequence_length), packing_text));
  return print_samples(files, {.count = a.samples, .tokenizer = tokenizer.get(), .json = a.json});
}

void add_data_inspect_options(Parser command, DataInspectArguments& a) {
  command
      .add_option("files", a.files,
                  "JSON lines, token shards, .npy and .bin tokens, .txt as bytes; or patterns")
      .type_name("FILE");
  add_text_options(command, a.text);
  command.add_option("--samples", a.samples, "documents to show, spread over the data")
      .range(0, 1'000'000)
      .show_default();
  command
      .add_option("--sequence-length", a.sequence_length,
                  "also show the result of packing into sequences of this length")
      .range(1, INT32_MAX);
  command.add_flag("--json", a.json, "print one JSON object per line on stdout and nothing else");
  command.footer(
      "JSON lines are tokenized as in a run; samples show which tokens count in the loss. A .bin file, a "
      "text\n"
      "or a 1-D array is one document; each row of a 2-D array is one. Samples show at most 256 tokens.\n"
      "examples: plimsoll data inspect chats.jsonl --tokenizer models/smollm --samples 5\n"
      "          plimsoll data inspect --run run.yaml\n"
      "          plimsoll data inspect train.shard --tokenizer models/smollm\n"
      "          plimsoll data inspect \"shards/*\" --sequence-length 2048\n"
      "exit codes: 0, 2 usage, 65 a damaged file, 74 I/O, 75 stopped by a signal");
}

}  // namespace

Command add_data_inspect(Parser data) {
  return add_command<DataInspectArguments>(data, "inspect",
                                           "show documents, lengths, loss masks and samples of data",
                                           add_data_inspect_options, inspect_data);
}

}  // namespace plimsoll::cli
