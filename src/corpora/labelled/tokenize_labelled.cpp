// Lines are read by one thread, a batch of them is encoded by all, and written in their order.
#include "corpora/labelled/tokenize_labelled.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/process_memory.h"
#include "corpora/labelled/label_file.h"
#include "corpora/labelled/question.h"
#include "corpora/reasons.h"
#include "corpora/record_reader.h"
#include "corpora/tokenizing_memory.h"
#include "io/checksum.h"
#include "io/parallel.h"

namespace plimsoll::corpora {
namespace {

/// Enough for all threads to be busy for milliseconds, little beside the tokenizer's own memory.
constexpr size_t kBatchBytes = size_t{1} << 20, kBatchRecords = 8192, kRecordsPerPiece = 64;

BadExample bad(const LabelledExample& example, std::string_view reason, std::string what, std::string hint) {
  return {reason,
          {ErrorCode::kBadData, std::move(what), place_of(example.file, example.line), std::move(hint)}};
}

std::optional<BadExample> check_types(const LabelledExample& example, const LabelledOptions& options,
                                      const std::vector<int32_t>& types);

/// By what data.eval_fraction divides questions: all windows of one are on one side, however they are cut.
uint64_t question_hash(const Question& question) {
  const std::string &asked = question.question, &context = question.context;
  return XXH3_64bits_withSeed(context.data(), context.size(), XXH3_64bits(asked.data(), asked.size()));
}

/// The files of a set of examples.
struct Output {
  datasets::ShardWriter shard;
  std::optional<datasets::ShardWriter> types = {};              ///< where rows have some
  std::optional<datasets::ShardWriter> begins = {}, ends = {};  ///< with LabelledOptions::has_spans
  LabelFileWriter labels;
};

class Run {
 public:
  /// `cutter`: of questions.
  Run(const LabelledOptions& options, RecordReader& reader, Output output,
      const std::optional<WindowCutter>& cutter, const TokenizeOptions& tokenizing)
      : options_(options),
        reader_(reader),
        output_(std::move(output)),
        cutter_(cutter),
        tokenizing_(tokenizing) {
    reader_.set_stop(tokenizing.stop);
  }

  Result<TokenizeCounts> operator()() {
    for (bool more = true; more && !is_full();) {
      PLIMSOLL_ASSIGN(more, read());
      PLIMSOLL_TRY(encode());
      PLIMSOLL_TRY(write());
      if (tokenizing_.progress) tokenizing_.progress(counts_);
    }
    counts_.num_files = static_cast<int64_t>(reader_.files().size());
    if (counts_.num_documents == 0) return nothing_kept();
    PLIMSOLL_ASSIGN(const datasets::ShardInfo info, output_.shard.finish());
    std::optional<uint64_t> types_hash;
    if (output_.types) {
      PLIMSOLL_ASSIGN(const datasets::ShardInfo types, output_.types->finish());
      types_hash = types.content_hash;
    }
    for (auto* side : {&output_.begins, &output_.ends})
      if (*side) PLIMSOLL_TRY((*side)->finish());
    PLIMSOLL_TRY(output_.labels.finish(labelled_hash(info.content_hash, types_hash)));
    return counts_;
  }

 private:
  [[nodiscard]] bool is_full() const {
    return tokenizing_.max_documents > 0 && num_kept_ >= tokenizing_.max_documents;
  }
  /// What becomes a document.
  struct Row {
    LabelledTokens tokens = {};
    RawLabel label = {};
    size_t first = 0;  ///< of a window, as `spans`
    std::vector<tokenizers::Span> spans = {};
  };
  /// A line: an example, or the windows of questions.
  struct Encoded {
    LabelledExample example = {};
    std::vector<Question> questions = {};
    std::vector<std::vector<Row>> rows = {};  ///< of each question, or of the one example
    std::optional<BadExample> bad = {};
    std::vector<BadExample> passed_over = {};  ///< questions that are left out
    InvalidUtf8 invalid = {};
  };

  [[nodiscard]] Error nothing_kept() const {
    if (counts_.num_examples == 0)
      return {ErrorCode::kBadData, "there is no example in it", reader_.files().front(),
              "check that these are the files you meant"};
    if (options_.side == datasets::SplitSide::kAll)
      return {ErrorCode::kBadData, "none of its examples can be used", reader_.files().front(),
              "without data.on_error: skip the first that is wrong is named"};
    return {ErrorCode::kBadData,
            fmt::format("data.eval_fraction leaves no example {}",
                        options_.side == datasets::SplitSide::kEval ? "to evaluate on" : "to train on"),
            reader_.files().front(), "set another fraction, or name held-out data: data.eval"};
  }

  [[nodiscard]] Error not_rows(const std::string& file) const {
    if (cutter_)
      return {ErrorCode::kInvalidArgument, "questions are JSON, and this is no such file", file,
              "name SQuAD's .json, or .jsonl files, a line {\"question\": …, \"context\": …} each"};
    return {ErrorCode::kInvalidArgument, "examples with labels are JSON lines, and this is no such file",
            file, "name .jsonl files, a line {\"text\": …, \"label\": …} each"};
  }

  Result<bool> read() {
    bytes_.clear();
    records_.clear();
    while (bytes_.size() < kBatchBytes && records_.size() < kBatchRecords) {
      Record record;
      PLIMSOLL_ASSIGN(const bool more, reader_.next(bytes_, record));
      if (!more) return false;
      if (!record.is_json) return not_rows(reader_.files()[record.file]);
      records_.push_back(record);
    }
    return true;
  }

  Status encode() {
    if (encoded_.size() < records_.size()) encoded_.resize(records_.size());
    const size_t pieces = (records_.size() + kRecordsPerPiece - 1) / kRecordsPerPiece;
    return io::in_parallel(pieces, tokenizing_.num_threads, [&](size_t piece, size_t) -> Status {
      const size_t end = std::min(records_.size(), (piece + 1) * kRecordsPerPiece);
      for (size_t i = piece * kRecordsPerPiece; i < end; ++i) encode(records_[i], encoded_[i]);
      return Ok{};
    });
  }

  void encode(const Record& record, Encoded& encoded) const {
    LabelledExample& example = encoded.example;
    example.file = reader_.files()[record.file];
    example.line = record.line;
    const std::string_view json = std::string_view(bytes_).substr(record.begin, record.size);
    encoded.invalid = {};
    encoded.invalid.look_at(json, example.file, record.place());
    if (cutter_) {
      encoded.bad = encode_questions(json, encoded);
      return;
    }
    encoded.rows.resize(1);
    encoded.rows[0].resize(1);
    Row& row = encoded.rows[0][0];
    encoded.bad = parse_labelled_example(json, options_.format, example);
    if (!encoded.bad) encoded.bad = encode_labelled(example, options_, row.tokens);
    if (!encoded.bad) row.label = example.label;
  }

  std::optional<BadExample> encode_questions(std::string_view json, Encoded& encoded) const {
    const std::string place = place_of(encoded.example.file, encoded.example.line);
    encoded.rows.clear();
    encoded.passed_over.clear();
    const bool skips = options_.on_error == OnError::kSkip;
    if (auto wrong = parse_questions(json, place, !options_.questions->asks, encoded.questions,
                                     skips ? &encoded.passed_over : nullptr))
      return wrong;
    for (const Question& question : encoded.questions) {
      auto windows = cutter_->cut(question);
      if (!windows) {
        BadExample wrong{reason::kUnencodable, std::move(windows).error().at(place)};
        if (!skips) return wrong;
        encoded.passed_over.push_back(std::move(wrong));
        continue;
      }
      std::vector<Row>& rows = encoded.rows.emplace_back();
      for (Window& window : *windows) {
        if (auto wrong = check_types(encoded.example, options_, window.types)) return wrong;
        const TokenSpan span =
            question.answers.empty() ? TokenSpan{} : find_answer(window, question.answers.front());
        Row& row = rows.emplace_back();
        row.label = {
            RawLabelKind::kList, {static_cast<float>(span.first), static_cast<float>(span.last)}, {}};
        if (options_.has_spans())
          row.label.values = {0, static_cast<float>(window.first), static_cast<float>(window.spans.size())};
        row.tokens = {std::move(window.ids), std::move(window.types), 0};
        row.first = window.first;
        if (options_.has_spans()) row.spans = std::move(window.spans);
      }
      rows.front().tokens.hash = question_hash(question);
    }
    return std::nullopt;
  }

  Status write() {
    counts_.skipped.add(reader_.take_skipped());
    counts_.bytes_read = reader_.bytes_read();
    counts_.total_bytes = reader_.total_bytes();
    for (size_t i = 0; i < records_.size() && !is_full(); ++i) {
      Encoded& e = encoded_[i];
      ++counts_.num_examples;
      counts_.text_bytes += static_cast<int64_t>(records_[i].size);
      counts_.remarks.invalid.add(e.invalid);
      for (const BadExample& wrong : e.passed_over) counts_.skipped.add(wrong.reason);
      for (const auto& rows : e.rows)
        for (const Row& row : rows) {
          if (e.bad) break;
          Status fits = output_.labels.check(row.label, records_[i].file, records_[i].line);
          if (!fits) e.bad = BadExample{corpora::reason::kBadLabel, std::move(fits).error()};
        }
      if (e.bad && (options_.on_error == OnError::kFail || e.bad->error.code != ErrorCode::kBadData))
        return std::move(e.bad->error);
      if (e.bad) {
        counts_.skipped.add(e.bad->reason);
        continue;
      }
      for (const auto& rows : e.rows)
        if (!is_full() && is_kept(rows.front())) PLIMSOLL_TRY(add(rows, records_[i]));
    }
    return Ok{};
  }

  [[nodiscard]] bool is_kept(const Row& row) const {
    return options_.side == datasets::SplitSide::kAll ||
           datasets::on_eval_side(row.tokens.hash, options_.eval_fraction) ==
               (options_.side == datasets::SplitSide::kEval);
  }

  /// An example, or a question's windows.
  Status add(const std::vector<Row>& rows, const Record& record) {
    for (const Row& row : rows) {
      PLIMSOLL_TRY(output_.shard.add(row.tokens.ids, {}));
      if (output_.types) PLIMSOLL_TRY(output_.types->add(row.tokens.types, {}));
      RawLabel label = row.label;
      if (options_.has_spans()) {
        label.values[0] = static_cast<float>(num_kept_);
        PLIMSOLL_TRY(add_spans(row));
      }
      PLIMSOLL_TRY(output_.labels.add(label, record.file, record.line));
      ++counts_.num_documents;
      counts_.num_tokens += static_cast<int64_t>(row.tokens.ids.size());
    }
    ++num_kept_;
    return Ok{};
  }

  Status add_spans(const Row& row) {
    for (const bool of_ends : {false, true}) {
      places_.assign(row.tokens.ids.size(), 0);
      for (size_t i = 0; i < row.spans.size(); ++i)
        places_[row.first + i] = static_cast<int32_t>(of_ends ? row.spans[i].end : row.spans[i].begin);
      PLIMSOLL_TRY((of_ends ? output_.ends : output_.begins)->add(places_, {}));
    }
    return Ok{};
  }

  const LabelledOptions& options_;
  RecordReader& reader_;
  Output output_;
  const std::optional<WindowCutter>& cutter_;
  const TokenizeOptions& tokenizing_;
  std::string bytes_;
  std::vector<Record> records_;
  std::vector<Encoded> encoded_;
  std::vector<int32_t> places_;
  int64_t num_kept_ = 0;  ///< examples, or questions
  TokenizeCounts counts_;
};

/// Ids and types of texts, `most` tokens at most.
Status encode_texts(const LabelledExample& example, const LabelledOptions& options, size_t most,
                    LabelledTokens& tokens) {
  const auto pair = example.has_pair ? std::optional<std::string_view>(example.text_pair) : std::nullopt;
  tokens.ids.clear();
  tokens.types.clear();
  Status encoded = options.tokenizer->encode_within(example.text, pair, most, tokens.ids,
                                                    options.has_types() ? &tokens.types : nullptr);
  if (encoded) return encoded;
  Error error = std::move(encoded).error().at(place_of(example.file, example.line));
  if (error.hint.empty()) error.hint = "allow more tokens: data.sequence_length, of predict --max-length";
  return error;
}

void leave_out_padding(const LabelledOptions& options, LabelledTokens& tokens) {
  if (options.pad_token)
    while (tokens.ids.size() > 1 && tokens.ids.back() == *options.pad_token) tokens.ids.pop_back();
  tokens.types.resize(options.has_types() ? tokens.ids.size() : 0);
}

std::optional<BadExample> check_types(const LabelledExample& example, const LabelledOptions& options,
                                      const std::vector<int32_t>& types) {
  const auto beyond =
      std::ranges::find_if(types, [&](int32_t type) { return type >= options.format.num_token_types; });
  if (beyond == types.end()) return std::nullopt;
  return bad(example, corpora::reason::kUnencodable,
             fmt::format("the tokenizer gives a token the type {}, and the model has {} types", *beyond,
                         options.format.num_token_types),
             "use the model's own tokenizer");
}

std::string beside(const std::string& shard_path, const char* kind) {
  constexpr std::string_view kShard = ".shard";
  const bool named = shard_path.ends_with(kShard);
  return shard_path.substr(0, shard_path.size() - (named ? kShard.size() : 0)) + kind;
}

}  // namespace

std::optional<BadExample> encode_labelled(const LabelledExample& example, const LabelledOptions& options,
                                          LabelledTokens& tokens) {
  if (example.has_ids) {
    tokens.ids = example.ids;
    tokens.types = example.types;
  } else if (options.tokenizer == nullptr) {
    return bad(example, corpora::reason::kUnencodable, "the line is a text, and there is no tokenizer",
               "set data.tokenizer to a model's folder or a tokenizer.json, or give input_ids");
  } else if (Status encoded = encode_texts(example, options, std::numeric_limits<size_t>::max(), tokens);
             !encoded) {
    return BadExample{corpora::reason::kUnencodable, std::move(encoded).error()};
  }
  if (tokens.ids.empty())
    return bad(example, corpora::reason::kUnencodable, "the example has no token", kSkipHint);
  const size_t whole = tokens.ids.size(), most = static_cast<size_t>(options.max_tokens);
  leave_out_padding(options, tokens);
  tokens.hash = example_hash(tokens.ids);
  if (!example.has_ids && most > 0 && whole > most) {
    if (Status cut = encode_texts(example, options, most, tokens); !cut)
      return BadExample{corpora::reason::kUnencodable, std::move(cut).error()};
    leave_out_padding(options, tokens);
  }
  return check_types(example, options, tokens.types);
}

bool ends_with_special(const tokenizers::Tokenizer& tokenizer) {
  constexpr int32_t kText = -1;  // stands for the text's tokens
  std::vector<int32_t> ids;
  const Status joined = tokenizer.join(std::span(&kText, 1), std::nullopt, ids);
  return joined && !ids.empty() && ids.back() != kText;
}

bool cuts_texts(const tokenizers::Tokenizer* tokenizer, bool is_bidirectional) {
  return tokenizer != nullptr && (is_bidirectional || ends_with_special(*tokenizer));
}

/// As the shard hashes a document.
uint64_t example_hash(std::span<const int32_t> ids) { return XXH3_64bits(ids.data(), ids.size_bytes()); }

std::string labels_beside(const std::string& shard_path) { return beside(shard_path, ".labels"); }
std::string types_beside(const std::string& shard_path) { return beside(shard_path, ".types"); }
std::string begins_beside(const std::string& shard_path) { return beside(shard_path, ".begins"); }
std::string ends_beside(const std::string& shard_path) { return beside(shard_path, ".ends"); }

uint64_t labelled_hash(uint64_t shard_hash, std::optional<uint64_t> types_hash) {
  if (!types_hash) return shard_hash;
  io::Checksum both;
  for (const uint64_t hash : {shard_hash, *types_hash}) both.add(std::as_bytes(std::span(&hash, 1)));
  return both.value();
}

Result<TokenizeCounts> tokenize_labelled(std::span<const std::string> paths, const LabelledOptions& options,
                                         const std::string& shard_path, const TokenizeOptions& tokenizing) {
  PLIMSOLL_ASSIGN(const TokenizingMemory memory,
                  tokenizing_memory(tokenizing.budget_bytes, resident_bytes(), tokenizing.num_threads,
                                    tokenizing.budget_name));
  TokenizeOptions within = tokenizing;
  within.num_threads = memory.num_threads;
  ReaderOptions reading;
  reading.on_error = options.on_error;
  if (options.questions) reading.list_member = kArticles;
  PLIMSOLL_ASSIGN(const auto reader, RecordReader::open(paths, reading));
  const tokenizers::Tokenizer* tokenizer = options.tokenizer;
  datasets::ShardOptions shard{.vocab_size = options.format.vocab_size};
  if (tokenizer != nullptr) {
    shard.vocab_size = std::max(shard.vocab_size, tokenizer->vocab_size());
    shard.vocabulary_hash = tokenizer->vocabulary_hash();
  }
  if (shard.vocab_size == 0) shard.vocab_size = std::numeric_limits<int32_t>::max();
  std::optional<WindowCutter> cutter;
  if (options.questions) {
    if (tokenizer == nullptr)
      return Error{ErrorCode::kInvalidArgument, "questions are texts, and there is no tokenizer",
                   reader->files().front(), "set data.tokenizer to a model's folder or a tokenizer.json"};
    PLIMSOLL_ASSIGN(WindowCutter made, WindowCutter::make({.tokenizer = tokenizer,
                                                           .max_tokens = options.max_tokens,
                                                           .doc_stride = options.questions->doc_stride,
                                                           .has_types = options.has_types()}));
    cutter.emplace(made);
  }
  using datasets::ShardWriter;
  PLIMSOLL_ASSIGN(ShardWriter tokens, ShardWriter::create(shard_path, shard));
  PLIMSOLL_ASSIGN(LabelFileWriter labels,
                  LabelFileWriter::create(labels_beside(shard_path), reader->files()));
  Output output{.shard = std::move(tokens), .labels = std::move(labels)};
  if (options.has_types()) {
    PLIMSOLL_ASSIGN(ShardWriter types, ShardWriter::create(types_beside(shard_path),
                                                           {.vocab_size = options.format.num_token_types}));
    output.types.emplace(std::move(types));
  }
  if (options.has_spans()) {
    constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
    PLIMSOLL_ASSIGN(ShardWriter begins, ShardWriter::create(begins_beside(shard_path), {.vocab_size = kAny}));
    PLIMSOLL_ASSIGN(ShardWriter ends, ShardWriter::create(ends_beside(shard_path), {.vocab_size = kAny}));
    output.begins.emplace(std::move(begins));
    output.ends.emplace(std::move(ends));
  }
  return Run(options, *reader, std::move(output), cutter, within)();
}

}  // namespace plimsoll::corpora
