// The new tokenizer's own documents tell how words are cut: what counts here is what encodes later.
#include "tokenizer_training/train_tokenizer.h"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <string_view>
#include <unordered_set>

#include "base/check.h"
#include "corpora/example_reader.h"
#include "corpora/record_reader.h"
#include "io/file.h"
#include "tokenizer_training/corpus_words.h"
#include "tokenizer_training/tokenizer_files.h"
#include "tokenizers/tokenizer.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizer_training {
namespace {

constexpr int64_t kNumBytes = 256;
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;

Status check(const TokenizerTraining& training) {
  const auto wrong = [](std::string what, std::string where, std::string hint) {
    return Error{ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
  };
  std::unordered_set<std::string> seen;
  for (const std::string& token : training.special_tokens) {
    if (token.empty()) return wrong("a special token is empty", "--special-token", "leave it out");
    if (tokenizers::valid_utf8_prefix(token) != token.size() || token.size() > 1024)
      return wrong("a special token is no UTF-8 or longer than 1024 bytes", "--special-token",
                   "choose a shorter one, such as <|endoftext|>");
    if (!seen.insert(token).second)
      return wrong(fmt::format("'{}' is given twice", token), "--special-token", "give it once");
  }
  const int64_t least = kNumBytes + static_cast<int64_t>(training.special_tokens.size());
  if (training.vocab_size < least || training.vocab_size > kMaxVocabulary)
    return wrong(fmt::format("a vocabulary of {} is not possible", training.vocab_size), "--vocab-size",
                 fmt::format("from {} (the bytes and {} special tokens) to {}", least,
                             training.special_tokens.size(), kMaxVocabulary));
  return Ok{};
}

/// A tokenizer that knows no merges but cuts words as the trained one will.
struct WordCutter {
  tokenizers::Document document;
  tokenizers::Normalizer normalizer;
  tokenizers::PreTokenizer pre_tokenizer;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer;
};

Result<WordCutter> make_cutter(const std::string& name) {
  PLIMSOLL_ASSIGN(const std::string json, tokenizer_json({}, {}, name));
  PLIMSOLL_ASSIGN(tokenizers::Document document, tokenizers::read_document(json, "tokenizer.json"));
  const tokenizers::Field root{&document.root, "", "tokenizer.json"};
  PLIMSOLL_ASSIGN(auto normalizer, tokenizers::Normalizer::build(root.member("normalizer")));
  PLIMSOLL_ASSIGN(auto pre_tokenizer, tokenizers::PreTokenizer::build(root.member("pre_tokenizer")));
  PLIMSOLL_ASSIGN(auto whole, tokenizers::Tokenizer::parse(json, "tokenizer.json"));
  return WordCutter{std::move(document), std::move(normalizer), std::move(pre_tokenizer), std::move(whole)};
}

/// Reports and asks whether to go on.
class Reporter {
 public:
  Reporter(const TokenizerTraining& training, const corpora::ExampleReader& reader)
      : training_(training), reader_(reader) {
    progress_.total_bytes = reader.total_bytes();
  }
  bool counted(int64_t text_bytes) {
    progress_.text_bytes = text_bytes;
    progress_.bytes_read = reader_.bytes_read();
    return report();
  }
  bool merged(int64_t num_tokens) {
    progress_.merging = true;
    progress_.num_tokens = num_tokens;
    return report();
  }

 private:
  bool report() {
    if (training_.progress) training_.progress(progress_);
    return !training_.stop || !training_.stop();
  }
  const TokenizerTraining& training_;
  const corpora::ExampleReader& reader_;
  TrainingProgress progress_ = {};
};

/// A file with its content, not yet under its name.
Result<io::AtomicFile> written(const std::string& path, std::string_view content) {
  PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
  PLIMSOLL_TRY(file.write_at(0, std::as_bytes(std::span(content))));
  return file;
}

}  // namespace

Result<TrainedTokenizer> train_tokenizer(const TokenizerTraining& training) {
  PLIMSOLL_TRY(check(training));
  PLIMSOLL_ASSIGN(const WordCutter cutter, make_cutter(training.pre_tokenizer));
  corpora::ReaderOptions reading{.on_error = training.on_error, .text_key = training.text_key};
  reading.cut = [&cutter](std::string_view text) { return cutter.tokenizer->last_safe_cut(text); };
  PLIMSOLL_ASSIGN(const auto reader, corpora::ExampleReader::open(training.inputs, reading));
  reader->records().set_stop(training.stop);
  Reporter reporter(training, *reader);
  PLIMSOLL_ASSIGN(CorpusWords corpus,
                  count_words(*reader, cutter.normalizer, cutter.pre_tokenizer, training.num_threads,
                              [&](int64_t text_bytes) { return reporter.counted(text_bytes); }));
  if (corpus.num_words == 0)
    return Error{ErrorCode::kBadData, "there is no word to learn from", reader->files().front(),
                 "check that these are the files you meant"};
  const TrainedBpe trained =
      train_bpe(corpus.words, {.vocab_size = training.vocab_size,
                               .min_frequency = training.min_frequency,
                               .special_tokens = training.special_tokens,
                               .progress = [&](int64_t tokens) { return reporter.merged(tokens); }});
  if (trained.stopped) return corpora::interrupted();
  TrainedTokenizer result;
  PLIMSOLL_ASSIGN(result.tokenizer_json,
                  tokenizer_json(trained, training.special_tokens, training.pre_tokenizer));
  result.config_json = tokenizer_config_json(training.special_tokens);
  result.vocab_size = static_cast<int64_t>(trained.tokens.size());
  result.num_merges = static_cast<int64_t>(trained.merges.size());
  result.num_files = static_cast<int64_t>(reader->files().size());
  result.num_examples = corpus.num_examples;
  result.text_bytes = corpus.text_bytes;
  result.num_words = corpus.num_words;
  result.num_different_words = static_cast<int64_t>(corpus.words.size());
  result.skipped = std::move(corpus.skipped);
  result.invalid = std::move(corpus.invalid);
  return result;
}

Status write_tokenizer(const TrainedTokenizer& trained, const std::string& directory) {
  PLIMSOLL_TRY(io::create_writable_directory(directory));
  // A full disk is noticed before either takes its place.
  PLIMSOLL_ASSIGN(io::AtomicFile config, written(directory + "/tokenizer_config.json", trained.config_json));
  PLIMSOLL_ASSIGN(io::AtomicFile tokenizer, written(directory + "/tokenizer.json", trained.tokenizer_json));
  PLIMSOLL_TRY(config.commit());
  return tokenizer.commit();
}

}  // namespace plimsoll::tokenizer_training
