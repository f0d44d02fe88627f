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

class Run {
 public:
  /// `types`: where rows have some.
  Run(const LabelledOptions& options, RecordReader& reader, datasets::ShardWriter shard,
      std::optional<datasets::ShardWriter> types, LabelFileWriter labels, const TokenizeOptions& tokenizing)
      : options_(options),
        reader_(reader),
        shard_(std::move(shard)),
        types_(std::move(types)),
        labels_(std::move(labels)),
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
    PLIMSOLL_ASSIGN(const datasets::ShardInfo info, shard_.finish());
    std::optional<uint64_t> types_hash;
    if (types_) {
      PLIMSOLL_ASSIGN(const datasets::ShardInfo types, types_->finish());
      types_hash = types.content_hash;
    }
    PLIMSOLL_TRY(labels_.finish(labelled_hash(info.content_hash, types_hash)));
    return counts_;
  }

 private:
  [[nodiscard]] bool is_full() const {
    return tokenizing_.max_documents > 0 && counts_.num_documents >= tokenizing_.max_documents;
  }
  struct Encoded {
    LabelledExample example = {};
    LabelledTokens tokens = {};
    std::optional<BadExample> bad = {};
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

  Result<bool> read() {
    bytes_.clear();
    records_.clear();
    while (bytes_.size() < kBatchBytes && records_.size() < kBatchRecords) {
      Record record;
      PLIMSOLL_ASSIGN(const bool more, reader_.next(bytes_, record));
      if (!more) return false;
      if (!record.is_json)
        return Error{
            ErrorCode::kInvalidArgument, "examples with labels are JSON lines, and this is no such file",
            reader_.files()[record.file], "name .jsonl files, a line {\"text\": …, \"label\": …} each"};
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
    encoded.bad = parse_labelled_example(json, options_.format, example);
    if (!encoded.bad) encoded.bad = encode_labelled(example, options_, encoded.tokens);
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
      if (!e.bad) {
        Status fits = labels_.check(e.example.label, records_[i].file, records_[i].line);
        if (!fits) e.bad = BadExample{corpora::reason::kBadLabel, std::move(fits).error()};
      }
      if (e.bad && (options_.on_error == OnError::kFail || e.bad->error.code != ErrorCode::kBadData))
        return std::move(e.bad->error);
      if (e.bad) {
        counts_.skipped.add(e.bad->reason);
        continue;
      }
      const bool kept = options_.side == datasets::SplitSide::kAll ||
                        datasets::on_eval_side(e.tokens.hash, options_.eval_fraction) ==
                            (options_.side == datasets::SplitSide::kEval);
      if (!kept) continue;
      PLIMSOLL_TRY(shard_.add(e.tokens.ids, {}));
      if (types_) PLIMSOLL_TRY(types_->add(e.tokens.types, {}));
      PLIMSOLL_TRY(labels_.add(e.example.label, records_[i].file, records_[i].line));
      ++counts_.num_documents;
      counts_.num_tokens += static_cast<int64_t>(e.tokens.ids.size());
    }
    return Ok{};
  }

  const LabelledOptions& options_;
  RecordReader& reader_;
  datasets::ShardWriter shard_;
  std::optional<datasets::ShardWriter> types_;
  LabelFileWriter labels_;
  const TokenizeOptions& tokenizing_;
  std::string bytes_;
  std::vector<Record> records_;
  std::vector<Encoded> encoded_;
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
  const auto beyond = std::ranges::find_if(
      tokens.types, [&](int32_t type) { return type >= options.format.num_token_types; });
  if (beyond == tokens.types.end()) return std::nullopt;
  return bad(example, corpora::reason::kUnencodable,
             fmt::format("the tokenizer gives a token the type {}, and the model has {} types", *beyond,
                         options.format.num_token_types),
             "use the model's own tokenizer");
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
  PLIMSOLL_ASSIGN(const auto reader, RecordReader::open(paths, reading));
  const tokenizers::Tokenizer* tokenizer = options.tokenizer;
  datasets::ShardOptions shard{.vocab_size = options.format.vocab_size};
  if (tokenizer != nullptr) {
    shard.vocab_size = std::max(shard.vocab_size, tokenizer->vocab_size());
    shard.vocabulary_hash = tokenizer->vocabulary_hash();
  }
  if (shard.vocab_size == 0) shard.vocab_size = std::numeric_limits<int32_t>::max();
  PLIMSOLL_ASSIGN(datasets::ShardWriter writer, datasets::ShardWriter::create(shard_path, shard));
  std::optional<datasets::ShardWriter> types;
  if (options.has_types()) {
    PLIMSOLL_ASSIGN(datasets::ShardWriter of_types,
                    datasets::ShardWriter::create(types_beside(shard_path),
                                                  {.vocab_size = options.format.num_token_types}));
    types.emplace(std::move(of_types));
  }
  PLIMSOLL_ASSIGN(LabelFileWriter labels,
                  LabelFileWriter::create(labels_beside(shard_path), reader->files()));
  return Run(options, *reader, std::move(writer), std::move(types), std::move(labels), within)();
}

}  // namespace plimsoll::corpora
