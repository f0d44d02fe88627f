// plimsoll data tokenizer: a tokenizer trained on files of text.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "base/host.h"
#include "base/numbers.h"
#include "base/process.h"
#include "cli/commands.h"
#include "cli/data/data_json.h"
#include "cli/data/data_reading.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/file.h"
#include "io/new_folder.h"
#include "io/tree.h"
#include "tokenizer_training/tokenizer_files.h"
#include "tokenizer_training/train_tokenizer.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kDataTokenizerFooter =
    R"(Trains a byte-level BPE tokenizer, the same that BpeTrainer of the tokenizers package trains, for any number of threads.
inputs: as for data tokenize; conversations contribute the texts of their messages, prompts and completions both texts.
output: DIR/tokenizer.json and DIR/tokenizer_config.json, which transformers' AutoTokenizer opens. Special tokens
get the first ids; <|endoftext|>, <s>, </s>, <pad> and similar tokens become the end-of-text and padding tokens.

examples:
  plimsoll data tokenizer --input "corpus/*.txt" --vocab-size 32000 --special-token "<|endoftext|>" --output my-tokenizer
  plimsoll data tokenizer --input chats.jsonl.zst --vocab-size 50000 --pre-tokenizer llama3 --output my-tokenizer
  plimsoll data tokenize --tokenizer my-tokenizer --input "corpus/*.txt" --output train.shard
exit codes: 0 done, 2 usage, 65 bad data, 74 I/O, 75 stopped by a signal; unless 0, nothing is written)";

struct DataTokenizerArguments {
  tokenizer_training::TokenizerTraining training;
  std::string output;
  ReadingArguments reading;
};

void add_data_tokenizer_options(Parser c, DataTokenizerArguments& a) {
  tokenizer_training::TokenizerTraining& t = a.training;
  c.add_option("--input", t.inputs, "files or patterns").required().type_name("FILE");
  c.add_option("--vocab-size", t.vocab_size,
               "size of the vocabulary: special tokens, 256 bytes, learnt tokens")
      .required()
      .type_name("N");
  c.add_option("--output", a.output, "folder for the two files; existing files are replaced")
      .required()
      .type_name("DIR");
  c.add_option("--min-frequency", t.min_frequency, "smallest count of a pair that becomes a token")
      .range(0, int64_t{1} << 40)
      .show_default();
  c.add_option("--special-token", t.special_tokens, "special tokens, in the order of their ids")
      .type_name("TEXT…");
  c.add_option("--pre-tokenizer", t.pre_tokenizer, "rules that split a text into words")
      .one_of(tokenizer_training::pre_tokenizer_names())
      .show_default();
  add_reading_options(c, a.reading, "threads that count words (default: all available CPUs)");
  c.footer(kDataTokenizerFooter);
}

void print_json(const DataTokenizerArguments& arguments, const tokenizer_training::TrainedTokenizer& trained,
                double seconds) {
  const io::Tree event = io::Tree::map({{"event", io::Tree::of(std::string("tokenizer"))},
                                        {"output", json_text(arguments.output)},
                                        {"vocab_size", io::Tree::of(trained.vocab_size)},
                                        {"merges", io::Tree::of(trained.num_merges)},
                                        {"files", io::Tree::of(trained.num_files)},
                                        {"examples", io::Tree::of(trained.num_examples)},
                                        {"skipped", skipped_tree(trained.skipped)},
                                        {"invalid_utf8_bytes", io::Tree::of(trained.invalid.num_bytes())},
                                        {"text_bytes", io::Tree::of(trained.text_bytes)},
                                        {"words", io::Tree::of(trained.num_words)},
                                        {"different_words", io::Tree::of(trained.num_different_words)},
                                        {"seconds", io::Tree::of(seconds)},
                                        {"peak_resident_bytes", io::Tree::of(peak_resident_bytes())}});
  fmt::print("{}\n", io::to_json(event));
}

void print_table(const DataTokenizerArguments& arguments, const tokenizer_training::TrainedTokenizer& trained,
                 double seconds) {
  Table table({{"", Table::Align::kLeft}, {"", Table::Align::kLeft}});
  table.add({"written", arguments.output + "/tokenizer.json, tokenizer_config.json"});
  std::string size = grouped(trained.vocab_size);
  if (trained.vocab_size < arguments.training.vocab_size)
    size += fmt::format(" of {}: no other pair occurs {} times in the text",
                        grouped(arguments.training.vocab_size), arguments.training.min_frequency);
  table.add({"vocabulary", size});
  table.add(
      {"files", fmt::format("{}, {}", grouped(trained.num_files), counted(trained.num_examples, "example"))});
  table.add({"text", fmt::format("{:.1f} MB, {} words, {} different ones", megabytes(trained.text_bytes),
                                 grouped(trained.num_words), grouped(trained.num_different_words))});
  table.add({"time", fmt::format("{:.2f} s", seconds)});
  add_skipped(table, trained.skipped);
  print_text(table.text());
}

/// Reading takes most of the time for large files, merging for small ones; each has its own estimate.
class Display {
 public:
  explicit Display(int64_t vocab_size) : vocab_size_(vocab_size) {}
  void show(const tokenizer_training::TrainingProgress& progress) {
    if (!progress.merging) {
      const auto total = static_cast<double>(progress.total_bytes);
      line_->show(total > 0 ? static_cast<double>(progress.bytes_read) / total : 0,
                  fmt::format("counting words  {:.1f} MB", megabytes(progress.text_bytes)));
      return;
    }
    if (!merging_) {
      merging_ = true;
      line_->finish();
      line_ = std::make_unique<Progress>();
    }
    line_->show(static_cast<double>(progress.num_tokens) / static_cast<double>(vocab_size_),
                fmt::format("merging  {} tokens", grouped(progress.num_tokens)));
  }

 private:
  int64_t vocab_size_;
  bool merging_ = false;
  std::unique_ptr<Progress> line_ = std::make_unique<Progress>();
};

Status train(const DataTokenizerArguments& arguments) {
  const double start = now_seconds();
  const StopSignals signals(false);
  // Whether it can be written is known before the work, not after it.
  const io::NewFolder folder(arguments.output);
  PLIMSOLL_TRY(io::create_writable_directory(arguments.output));
  tokenizer_training::TokenizerTraining training = arguments.training;
  training.num_threads = arguments.reading.num_threads();
  training.text_key = arguments.reading.text_key;
  training.on_error = arguments.reading.when_unusable();
  training.stop = [] { return stop_requested() != 0; };
  Result<tokenizer_training::TrainedTokenizer> trained = [&] {
    Display display(training.vocab_size);
    training.progress = [&display](const tokenizer_training::TrainingProgress& progress) {
      display.show(progress);
    };
    return tokenizer_training::train_tokenizer(training);
  }();
  PLIMSOLL_ASSIGN(const tokenizer_training::TrainedTokenizer result, std::move(trained));
  PLIMSOLL_TRY(tokenizer_training::write_tokenizer(result, arguments.output));
  const double seconds = now_seconds() - start;
  for (const std::string& line : result.invalid.lines()) note(line);
  arguments.reading.json ? print_json(arguments, result, seconds) : print_table(arguments, result, seconds);
  return Ok{};
}

}  // namespace

Command add_data_tokenizer(Parser data) {
  return add_command<DataTokenizerArguments>(data, "tokenizer", "train a tokenizer on files of text",
                                             add_data_tokenizer_options, train);
}

}  // namespace plimsoll::cli
