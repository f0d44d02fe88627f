#include "analysis/examine_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/glob.h"
#include "base/numbers.h"
#include "base/units.h"
#include "corpora/json_members.h"
#include "corpora/labelled/question.h"
#include "corpora/labelled/tokenize_labelled.h"
#include "corpora/record_reader.h"
#include "corpora/saved_dataset.h"
#include "corpora/text_input.h"
#include "io/checksum.h"
#include "io/json.h"
#include "preprocessing/data_files.h"
#include "preprocessing/run_data.h"
#include "preprocessing/run_hints.h"
#include "preprocessing/run_task.h"
#include "preprocessing/template_date.h"
#include "preprocessing/token_cache.h"

namespace plimsoll::analysis {
namespace {

constexpr int64_t kMostExamples = 512;

DataKind kind_of_example(corpora::ExampleKind kind) {
  switch (kind) {
    case corpora::ExampleKind::kCompletion:
      return DataKind::kCompletions;
    case corpora::ExampleKind::kMessages:
      return DataKind::kConversations;
    case corpora::ExampleKind::kTokens:
      return DataKind::kTokens;
    case corpora::ExampleKind::kText:
      break;
  }
  return DataKind::kTexts;
}

/// How many examples the files have, where `read` of them were looked at and there are `more`.
int64_t num_examples(const corpora::RecordReader& reader, int64_t read, bool more) {
  const double share = static_cast<double>(reader.total_bytes()) /
                       static_cast<double>(std::max<int64_t>(1, reader.bytes_of_records()));
  return more ? static_cast<int64_t>(static_cast<double>(read) * std::max(1.0, share)) : read;
}

/// Reads and encodes the first examples.
Status read_examples(const settings::RunConfig& config, const std::vector<std::string>& files,
                     DataLook& look) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, preprocessing::tokenizer_path(config));
  if (tokenizer == "bytes") {
    const auto json = std::ranges::find_if(
        files, [](const auto& f) { return preprocessing::kind_of(f) == preprocessing::FileKind::kJson; });
    PLIMSOLL_ASSIGN(const preprocessing::UnaskedBytes unasked,
                    preprocessing::unasked_bytes(config, tokenizer));
    if (json == files.end()) return unasked.refused ? Status(unasked.error(files.front())) : Status(Ok{});
    return Error{ErrorCode::kBadData, "without a tokenizer only .txt files are read, as bytes", *json,
                 "name a model's folder that has one, or a tokenizer: --tokenizer"};
  }
  PLIMSOLL_ASSIGN(const corpora::EncoderFiles encoder,
                  corpora::EncoderFiles::open(tokenizer, config.data.chat_template,
                                              preprocessing::template_now(config.data)));
  PLIMSOLL_ASSIGN(
      corpora::TextInput input,
      corpora::TextInput::open(
          encoder, files, preprocessing::text_options(config.data, preprocessing::masks_tokens(config))));
  corpora::Example example;
  corpora::EncodedExample encoded;
  corpora::ExampleEncoder::Scratch scratch;
  io::Checksum document;
  int64_t read = 0;
  bool more = true;
  while (read < kMostExamples) {
    PLIMSOLL_ASSIGN(more, input.reader->next(example));
    if (!more) break;
    if (auto bad = input.encoder.encode(example, scratch, encoded)) return std::move(bad->error);
    if (example.first || look.lengths.empty()) {
      look.lengths.push_back(0);
      look.hashes.push_back(0);
      document.reset();
    }
    size_t begin = 0;
    for (size_t i = 0; i + 1 < encoded.ends.size(); begin = encoded.ends[i++]) {
      document.add(std::as_bytes(std::span(encoded.ids).subspan(begin, encoded.ends[i] - begin)));
      look.lengths.back() = static_cast<int64_t>(encoded.ends[i] - begin);
      look.hashes.back() = document.value();
      look.lengths.push_back(0);
      look.hashes.push_back(0);
      document.reset();
    }
    document.add(std::as_bytes(std::span(encoded.ids).subspan(begin)));
    look.lengths.back() += static_cast<int64_t>(encoded.ids.size() - begin);
    look.hashes.back() = document.value();
    look.kind = kind_of_example(example.kind);
    read += example.continues ? 0 : 1;
  }
  look.is_estimate = more;
  look.examples = num_examples(input.reader->records(), read, more);
  std::ranges::sort(look.lengths);
  return Ok{};
}

/// The members of the first row that tell of what kind the rows are; none where it is no object.
corpora::Members first_row(const std::vector<std::string>& files, std::string& bytes) {
  if (!corpora::has_rows_by_name(files.front())) return {};
  corpora::ReaderOptions reading;
  reading.list_member = corpora::kArticles;
  const auto reader = corpora::RecordReader::open(std::span(files).first(1), reading);
  if (!reader) return {};
  corpora::Record record;
  const auto more = (*reader)->next(bytes, record);
  if (!more || !*more || !record.is_json) return {};
  corpora::JsonScanner scanner(std::string_view(bytes).substr(record.begin, record.size));
  std::string_view row;
  if (!scanner.value(row) || !corpora::is_object(row)) return {};
  constexpr std::string_view kKeys[] = {"label", "labels", "question", "context", "answers", "paragraphs"};
  return corpora::members_of(row, kKeys);
}

/// Whether it is an example with a label.
bool is_labelled(const corpora::Members& row) {
  const std::string_view labels = corpora::find(row, "labels");  // a list of them is of tokens
  return !corpora::find(row, "label").empty() ||
         (!labels.empty() && !corpora::is_list(labels) && !corpora::is_object(labels));
}

/// Whether it is a question about a text, or an article of SQuAD's file.
bool asks(const corpora::Members& row) {
  const bool is_question = corpora::is_string(corpora::find(row, "question")) &&
                           corpora::is_string(corpora::find(row, "context")) &&
                           !corpora::find(row, "answers").empty();
  return is_question || corpora::is_list(corpora::find(row, "paragraphs"));
}

void add_label(const corpora::RawLabel& label, DataLook& look) {
  if (look.labels.empty() && look.hashes.empty()) look.label_kind = label.kind;
  std::string name = label.kind == corpora::RawLabelKind::kName ? label.name : "";
  if (label.kind == corpora::RawLabelKind::kInteger) name = fmt::format("{:g}", label.values.front());
  if (!name.empty()) look.labels.insert(name);
  look.classes.push_back(std::move(name));
}

/// The same of examples that are classified: a text or a pair with its special tokens, or tokens.
Status read_labelled(const settings::RunConfig& config, const std::vector<std::string>& files,
                     DataLook& look) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, preprocessing::tokenizer_path(config));
  corpora::EncoderFiles encoder;
  if (tokenizer != "bytes") {
    PLIMSOLL_ASSIGN(encoder, corpora::EncoderFiles::open(tokenizer));
  }
  corpora::LabelledOptions options{.tokenizer = encoder.tokenizer.get()};
  options.format.text_key = config.data.text_key;
  PLIMSOLL_ASSIGN(const auto reader, corpora::RecordReader::open(files, {}));
  corpora::LabelledExample example;
  corpora::LabelledTokens tokens;
  std::string bytes;
  corpora::Record record;
  bool more = true;
  while (static_cast<int64_t>(look.lengths.size()) < kMostExamples) {
    bytes.clear();
    PLIMSOLL_ASSIGN(more, reader->next(bytes, record));
    if (!more) break;
    example.file = reader->files()[record.file];
    example.line = record.line;
    const std::string_view json = std::string_view(bytes).substr(record.begin, record.size);
    auto bad = corpora::parse_labelled_example(json, options.format, example);
    if (!bad) bad = corpora::encode_labelled(example, options, tokens);
    if (bad) return std::move(bad->error);
    add_label(example.label, look);
    look.lengths.push_back(static_cast<int64_t>(tokens.ids.size()));
    look.hashes.push_back(tokens.hash);
  }
  look.is_estimate = more;
  look.examples = num_examples(*reader, static_cast<int64_t>(look.lengths.size()), more);
  std::ranges::sort(look.lengths);
  return Ok{};
}

/// The same of questions, each with its whole text.
Status read_questions(const settings::RunConfig& config, const std::vector<std::string>& files,
                      DataLook& look) {
  PLIMSOLL_ASSIGN(const std::string tokenizer, preprocessing::tokenizer_path(config));
  if (tokenizer == "bytes")
    return Error{ErrorCode::kInvalidArgument, "questions are texts, and the model has no tokenizer",
                 files.front(), "name one: --tokenizer DIR"};
  PLIMSOLL_ASSIGN(const corpora::EncoderFiles encoder, corpora::EncoderFiles::open(tokenizer));
  constexpr int64_t kWhole = int64_t{1} << 40;
  PLIMSOLL_ASSIGN(const auto cutter,
                  corpora::WindowCutter::make(
                      {.tokenizer = encoder.tokenizer.get(), .max_tokens = kWhole, .doc_stride = 0}));
  corpora::ReaderOptions reading;
  reading.list_member = corpora::kArticles;
  PLIMSOLL_ASSIGN(const auto reader, corpora::RecordReader::open(files, reading));
  std::vector<corpora::Question> questions;
  std::string bytes;
  corpora::Record record;
  int64_t read = 0;
  bool more = true;
  while (read < kMostExamples) {
    bytes.clear();
    PLIMSOLL_ASSIGN(more, reader->next(bytes, record));
    if (!more) break;
    const std::string place = corpora::place_of(reader->files()[record.file], record.line);
    const std::string_view json = std::string_view(bytes).substr(record.begin, record.size);
    if (auto bad = corpora::parse_questions(json, place, /*with_answers=*/true, questions))
      return std::move(bad->error);
    read += std::ssize(questions);
    for (const corpora::Question& question : questions) {
      if (std::ssize(look.lengths) >= kMostExamples) break;
      auto windows = cutter.cut(question);
      if (!windows) return std::move(windows).error().at(place);
      look.lengths.push_back(std::ssize(windows->front().ids));
      look.hashes.push_back(corpora::example_hash(windows->front().ids));
    }
  }
  look.is_estimate = more;
  look.examples = num_examples(*reader, read, more);
  std::ranges::sort(look.lengths);
  return Ok{};
}

}  // namespace

std::string DataLook::text() const {
  if (asks) return fmt::format("{}{} questions", is_estimate ? "about " : "", grouped(examples));
  if (labelled)
    return fmt::format("{}{} examples with labels", is_estimate ? "about " : "", grouped(examples));
  constexpr std::array<const char*, 4> kNames = {"tokens", "documents", "prompts with completions",
                                                 "conversations"};
  if (kind == DataKind::kTokens || examples == 0) return kNames[static_cast<size_t>(kind)];
  return fmt::format("{}{} {}", is_estimate ? "about " : "", grouped(examples),
                     kNames[static_cast<size_t>(kind)]);
}

Result<DataLook> look_at_data(const settings::RunConfig& config) {
  DataLook look;
  std::vector<std::string> files;
  for (const std::string& pattern : config.data.train) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> found, corpora::expand_data(pattern));
    files.insert(files.end(), found.begin(), found.end());
  }
  const auto is_tokens = [](const std::string& path) {
    const preprocessing::FileKind kind = preprocessing::kind_of(path);
    return kind == preprocessing::FileKind::kTokens || kind == preprocessing::FileKind::kShard;
  };
  if (std::ranges::any_of(files, is_tokens)) {
    look.kind = DataKind::kTokens;
    return look;
  }
  std::string bytes;
  const corpora::Members row = first_row(files, bytes);
  look.labelled = config.task != "causal_lm" && is_labelled(row);
  look.asks = !look.labelled && asks(row);
  if (look.asks) {
    if (Status read = read_questions(config, files, look); !read)
      return preprocessing::in_words_of_runs(std::move(read).error());
    return look;
  }
  if (look.labelled) {
    if (Status read = read_labelled(config, files, look); !read)
      return preprocessing::in_words_of_runs(std::move(read).error());
    return look;
  }
  if (Status read = read_examples(config, files, look); !read)
    return preprocessing::in_words_of_runs(std::move(read).error());
  return look;
}

}  // namespace plimsoll::analysis
