// plimsoll data tokenize: files of text and conversations to a token shard or an .npy.
#include <fmt/format.h>

#include <filesystem>

#include "base/host.h"
#include "base/numbers.h"
#include "base/process.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/data/data_json.h"
#include "cli/data/data_reading.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "corpora/text_input.h"
#include "io/tree.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kDataTokenizeFooter =
    R"(inputs: .jsonl (.ndjson, .json): an example a line, or a list of objects: "text"; "messages" (with "tools");
"conversations" as ShareGPT has them; "prompt" and "completion"; "instruction", "input" and "output". .csv, .tsv:
the same, with column names in the first row. Every other file is one document. gzip and zstd are unpacked, by content. Names may be patterns: "corpus/*.txt".
output: a 1-D .npy file if the name ends in .npy, otherwise a token shard, which also stores the ends of documents
and the tokens that count in the loss.
loss: auto counts the assistant turns of a conversation, the completion after a prompt, and all of a text.

examples:
  plimsoll data tokenize --tokenizer models/smollm --input "corpus/*.txt" --output train.shard --append-eos
  plimsoll data tokenize --tokenizer models/smollm --input chats.jsonl.gz --output chats.shard --on-error skip
  plimsoll data tokenize --tokenizer tokenizer.json --input book.txt --output book.npy --json
exit codes: 0 done, 2 usage, 65 bad tokenizer or data, 74 I/O, 75 stopped by a signal; unless 0, nothing is
written)";

struct DataTokenizeArguments {
  std::string tokenizer;
  std::vector<std::string> inputs;
  std::string output;
  std::string chat_template;
  std::string loss = "auto";
  std::string eos_token;
  bool append_eos = false;
  bool add_special_tokens = false;
  ReadingArguments reading;
};

void add_data_tokenize_options(Parser c, DataTokenizeArguments& a) {
  c.add_option("--tokenizer", a.tokenizer,
               "a model's folder, a tokenizer.json, or a Hub id that is already cached")
      .required()
      .type_name("DIR|FILE");
  c.add_option("--input", a.inputs, "files or patterns, in this order").required().type_name("FILE");
  c.add_option("--output", a.output, "output file; an existing file is replaced")
      .required()
      .type_name("FILE");
  c.add_flag("--append-eos", a.append_eos, "append the end-of-text token to each document");
  c.add_option("--eos-token", a.eos_token, "as --append-eos, with this token instead of the tokenizer's")
      .type_name("TEXT");
  c.add_flag("--add-special-tokens", a.add_special_tokens,
             "add the tokenizer's special tokens around a text (<s> and the like)");
  c.add_option("--loss", a.loss, "tokens that count in the loss")
      .one_of({"auto", "all", "completions", "assistant", "all_assistant", "trl"})
      .show_default();
  c.add_option("--chat-template", a.chat_template, "chat template for conversations instead of the model's")
      .type_name("FILE");
  add_reading_options(c, a.reading, "threads in total (default: all available CPUs)");
  c.footer(kDataTokenizeFooter);
}

double ratio(double a, double b) { return b > 0 ? a / b : 0.0; }

struct Outcome {
  corpora::TokenizeCounts counts = {};
  double seconds = 0;
  int64_t vocab_size = 0;
  int64_t file_bytes = 0;
  bool is_npy = false;
};

void print_json(const DataTokenizeArguments& arguments, const Outcome& o) {
  const auto bytes = static_cast<double>(o.counts.text_bytes);
  const io::Tree event = io::Tree::map(
      {{"event", json_text("tokenize")},
       {"output", json_text(arguments.output)},
       {"format", json_text(o.is_npy ? "npy" : "shard")},
       {"files", io::Tree::of(o.counts.num_files)},
       {"documents", io::Tree::of(o.counts.num_documents)},
       {"empty", io::Tree::of(o.counts.num_empty)},
       {"skipped", skipped_tree(o.counts.skipped)},
       {"invalid_utf8_bytes", io::Tree::of(o.counts.remarks.invalid.num_bytes())},
       {"tokens", io::Tree::of(o.counts.num_tokens)},
       {"targets", io::Tree::of(o.counts.num_targets)},
       {"vocab_size", io::Tree::of(o.vocab_size)},
       {"text_bytes", io::Tree::of(o.counts.text_bytes)},
       {"bytes_per_token", io::Tree::of(ratio(bytes, static_cast<double>(o.counts.num_tokens)))},
       {"output_bytes", io::Tree::of(o.file_bytes)},
       {"seconds", io::Tree::of(o.seconds)},
       {"bytes_per_second", io::Tree::of(ratio(bytes, o.seconds))},
       {"peak_resident_bytes", io::Tree::of(peak_resident_bytes())}});
  fmt::print("{}\n", io::to_json(event));
}

void print_table(const DataTokenizeArguments& arguments, const Outcome& o) {
  const corpora::TokenizeCounts& c = o.counts;
  Table table({{"", Table::Align::kLeft}, {"", Table::Align::kLeft}});
  table.add({"written", fmt::format("{} ({})", arguments.output, to_string(Bytes(o.file_bytes)))});
  table.add({"files", grouped(c.num_files)});
  std::string documents = grouped(c.num_documents);
  if (c.num_empty > 0) documents += fmt::format(", and {} without a token, left out", grouped(c.num_empty));
  table.add({"documents", documents});
  table.add(
      {"tokens", fmt::format("{} of a vocabulary of {}", grouped(c.num_tokens), grouped(o.vocab_size))});
  if (c.num_targets < c.num_tokens - c.num_documents)
    table.add({"in the loss", fmt::format("{} ({:.1f}%)", grouped(c.num_targets),
                                          100 * ratio(static_cast<double>(c.num_targets),
                                                      static_cast<double>(c.num_tokens)))});
  table.add(
      {"text", fmt::format("{}, {:.2f} bytes a token", to_string(Bytes(c.text_bytes)),
                           ratio(static_cast<double>(c.text_bytes), static_cast<double>(c.num_tokens)))});
  table.add(
      {"time", fmt::format("{:.2f} s, {:.1f} MB/s", o.seconds, ratio(megabytes(c.text_bytes), o.seconds))});
  table.add({"memory", fmt::format("{} at most", to_string(Bytes(peak_resident_bytes())))});
  add_skipped(table, c.skipped);
  print_text(table.text());
}

Status check_output(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code code;
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(output, input, code))
      return Error{ErrorCode::kInvalidArgument, "the output is one of the inputs", output,
                   "choose another name"};
  return Ok{};
}

Result<corpora::TokenizeCounts> write_and_show(corpora::TextInput& input, corpora::TokenOutput& output,
                                               int threads) {
  Progress progress;
  const double start = now_seconds();
  corpora::TokenizeOptions options{.num_threads = threads};
  options.stop = [] { return stop_requested() != 0; };
  options.progress = [&](const corpora::TokenizeCounts& counts) {
    progress.show(ratio(static_cast<double>(counts.bytes_read), static_cast<double>(counts.total_bytes)),
                  fmt::format("{} tokens  {:.1f} MB/s", grouped(counts.num_tokens),
                              ratio(megabytes(counts.text_bytes), now_seconds() - start)));
  };
  return corpora::write_tokens(input, output, options);
}

Status tokenize(const DataTokenizeArguments& arguments) {
  const double start = now_seconds();
  const StopSignals signals(false);
  PLIMSOLL_ASSIGN(const corpora::EncoderFiles files,
                  corpora::EncoderFiles::open(arguments.tokenizer, arguments.chat_template));
  const corpora::TextOptions options{.loss = *corpora::parse_loss_scope(arguments.loss),
                                     .add_special_tokens = arguments.add_special_tokens,
                                     .append_end = arguments.append_eos || !arguments.eos_token.empty()
                                                       ? corpora::AppendEnd::kAlways
                                                       : corpora::AppendEnd::kNever,
                                     .end_token = arguments.eos_token,
                                     .on_error = arguments.reading.when_unusable(),
                                     .text_key = arguments.reading.text_key};
  PLIMSOLL_ASSIGN(corpora::TextInput input, corpora::TextInput::open(files, arguments.inputs, options));
  PLIMSOLL_TRY(check_output(arguments.output, input.reader->files()));
  PLIMSOLL_ASSIGN(corpora::TokenOutput output, corpora::TokenOutput::create(arguments.output, input.shard));
  PLIMSOLL_ASSIGN(corpora::TokenizeCounts counts,
                  write_and_show(input, output, arguments.reading.num_threads()));
  std::error_code code;
  const Outcome outcome{
      .counts = std::move(counts),
      .seconds = now_seconds() - start,
      .vocab_size = input.shard.vocab_size,
      .file_bytes = static_cast<int64_t>(std::filesystem::file_size(arguments.output, code)),
      .is_npy = output.is_npy()};
  if (outcome.is_npy && outcome.counts.num_targets < outcome.counts.num_tokens - outcome.counts.num_documents)
    note("an .npy file has no loss mask, so all tokens will count in the loss; write a shard instead");
  for (const std::string& line : corpora::remark_lines(outcome.counts.remarks)) note(line);
  arguments.reading.json ? print_json(arguments, outcome) : print_table(arguments, outcome);
  return Ok{};
}

}  // namespace

Command add_data_tokenize(Parser data) {
  return add_command<DataTokenizeArguments>(data, "tokenize",
                                            "tokenize files into a token shard or an .npy file",
                                            add_data_tokenize_options, tokenize);
}

}  // namespace plimsoll::cli
