// The pipeline: the same documents for any number of threads, errors where they stand, memory that is given
// back.
#include "corpora/tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "corpora/packed.h"
#include "corpora/tiny_tokenizer.h"
#include "corpora/token_output.h"
#include "datasets/token_source.h"
#include "io/temporary_folder.h"
#include "sanitizer.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

struct Outcome {
  std::vector<std::vector<int32_t>> documents;
  std::vector<std::vector<uint8_t>> masks;
  TokenizeCounts counts;
  std::optional<Error> error;
};

/// Of this process's address space.
int64_t mapped_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0;
  statm >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

class TokenizeTest : public testing::Test {
 protected:
  Outcome run(std::vector<std::string> paths, int threads, OnError on_error = OnError::kFail,
              EncoderOptions encoding = {}, TokenizeOptions options = {}) {
    Outcome result;
    auto reader = ExampleReader::open(
        paths, {.on_error = on_error, .piece_bytes = 5000, .cut = [this](std::string_view text) {
                  return tokenizer_->last_safe_cut(text);
                }});
    if (!reader) return result.error = reader.error(), result;
    bool open = false;
    const TokenSink sink = [&](std::span<const int32_t> ids, std::span<const uint8_t> in_loss,
                               bool continues) -> Status {
      if (!open) result.documents.emplace_back(), result.masks.emplace_back();
      result.documents.back().insert(result.documents.back().end(), ids.begin(), ids.end());
      result.masks.back().insert(result.masks.back().end(), in_loss.begin(), in_loss.end());
      open = continues;
      return Ok{};
    };
    options.num_threads = threads;
    auto counts = tokenize_files(**reader, ExampleEncoder(*tokenizer_, nullptr, encoding), sink, options);
    if (counts)
      result.counts = *counts;
    else
      result.error = counts.error();
    EXPECT_TRUE(result.error || !open);
    return result;
  }
  std::vector<int32_t> ids(std::string_view text) {
    std::vector<int32_t> out;
    EXPECT_TRUE(tokenizer_->encode(text, false, out));
    return out;
  }
  io::TemporaryFolder folder_;
  std::unique_ptr<tokenizers::Tokenizer> tokenizer_ = tiny_tokenizer();
};

TEST_F(TokenizeTest, TheSameForAnyNumberOfThreads) {
  const std::string book = some_text(1'500'000) + "hello \xff w\n";
  std::string lines;
  for (int i = 0; i < 20000; ++i)
    lines += i % 3 == 0 ? "{\"prompt\": \"hello\", \"completion\": \" w" + std::to_string(i) + "\"}\n"
                        : "{\"text\": \"line " + std::to_string(i) + "\"}\n";
  lines += "{\"text\": \"\"}\n";
  const std::vector<std::string> paths = {folder_.write("book.txt", book),
                                          folder_.write("lines.jsonl.gz", gzip(lines)),
                                          folder_.write("c.txt", "c")};
  const Outcome one = run(paths, 1);
  ASSERT_FALSE(one.error) << one.error->message();
  EXPECT_EQ(one.documents.size(), 20002U);
  EXPECT_TRUE(one.documents[0] == ids(book)) << "pieces join to the ids of the whole";
  EXPECT_EQ(one.documents[1], ids("hello w0"));
  EXPECT_THAT(one.masks[1], ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(one.documents[2], ids("line 1"));
  EXPECT_EQ(one.documents.back(), ids("c"));
  EXPECT_EQ(one.counts.num_documents, 20002);
  EXPECT_EQ(one.counts.num_empty, 1);
  EXPECT_EQ(one.counts.num_files, 3);
  EXPECT_EQ(one.counts.bytes_read, one.counts.total_bytes);
  int64_t tokens = 0;
  for (const auto& document : one.documents) tokens += static_cast<int64_t>(document.size());
  EXPECT_EQ(one.counts.num_tokens, tokens);
  int64_t targets = 0;  // the first of a document is none
  for (size_t i = 0; i < one.documents.size(); ++i) {
    const std::vector<uint8_t>& mask = one.masks[i];
    targets += static_cast<int64_t>(mask.empty() ? one.documents[i].size() - 1
                                                 : std::count(mask.begin() + 1, mask.end(), 1));
  }
  EXPECT_EQ(one.counts.num_targets, targets);
  for (const int threads : {2, 5}) {
    const Outcome other = run(paths, threads);
    EXPECT_TRUE(other.documents == one.documents && other.masks == one.masks) << threads;
    EXPECT_EQ(other.counts.num_targets, one.counts.num_targets);
    EXPECT_EQ(other.counts.text_bytes, one.counts.text_bytes);
  }
}

TEST_F(TokenizeTest, EndsEachDocumentWhereAsked) {
  const std::string path = folder_.write("a.txt", some_text(300'000));
  const Outcome result = run({path, folder_.write("b.jsonl", "{\"text\": \"b\"}\n{\"text\": \"\"}\n")}, 2,
                             OnError::kFail, {.append_id = kTinyEnd});
  ASSERT_EQ(result.documents.size(), 3U);
  for (const auto& document : result.documents) {
    EXPECT_EQ(document.back(), kTinyEnd);
    EXPECT_EQ(std::count(document.begin(), document.end(), kTinyEnd), 1);
  }
}

TEST_F(TokenizeTest, EndsBehindTheDocumentsThatAreWanted) {
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += "{\"text\": \"line " + std::to_string(i) + "\"}\n";
  lines += "no JSON\n";
  const std::string path = folder_.write("a.jsonl", "{\"text\": \"\"}\n" + lines);
  for (const int threads : {1, 3})
    for (const int64_t most : {int64_t{1}, int64_t{7}, int64_t{19999}}) {
      const Outcome some = run({path}, threads, OnError::kFail, {}, {.max_documents = most});
      ASSERT_FALSE(some.error) << some.error->message();
      ASSERT_EQ(some.documents.size(), static_cast<size_t>(most));
      EXPECT_EQ(some.documents.back(), ids("line " + std::to_string(most - 1)));
      EXPECT_EQ(some.counts.num_documents, most);
    }
  EXPECT_TRUE(run({path}, 2, OnError::kFail, {}, {.max_documents = 20001}).error)
      << "the last line is needed";
}

TEST_F(TokenizeTest, CountsWhatExamplesAreUsableInSpiteOf) {
  const std::string path =
      folder_.write("a.jsonl", "{\"prompt\": \"he\", \"completion\": \"llo\"}\n{\"text\": \"b\"}\n");
  EXPECT_EQ(run({path, path}, 2).counts.remarks.split_prompts, 2);
}

TEST_F(TokenizeTest, CountsBytesThatAreNoUtf8) {
  std::string text(20000, 'a');
  for (size_t i = 0; i < text.size(); i += 9) text[i] = ' ';
  text[12345] = '\xE4';
  text[19000] = '\xFC';
  const std::string a = folder_.write("a.txt", text);
  const std::string b = folder_.write("b.jsonl", "{\"text\": \"b\"}\n{\"text\": \"\xE4\"}\n");
  const std::string c = folder_.write("c.csv", "text\nb\n\xE4\n");
  for (const int threads : {1, 3})
    EXPECT_THAT(
        run({a, b, c}, threads).counts.remarks.invalid.lines(),
        ElementsAre(HasSubstr("a.txt: 2 bytes are not valid UTF-8 (the first: byte 12346)"),
                    HasSubstr("b.jsonl: 1 byte in 1 example is not valid UTF-8 (the first: line 2, byte 11)"),
                    HasSubstr("c.csv: 1 byte in 1 example is not valid UTF-8 (the first: line 3)")));
}

TEST_F(TokenizeTest, TheFirstErrorWinsWhateverTheThreads) {
  std::string lines;
  for (int i = 0; i < 30000; ++i)
    lines += i >= 20000 && i % 1000 == 7 ? "{\"text\": 1}\n" : "{\"text\": \"x\"}\n";
  const std::string path = folder_.write("a.jsonl", lines);
  for (const int threads : {1, 4}) {
    const Outcome failed = run({path}, threads);
    ASSERT_TRUE(failed.error);
    EXPECT_EQ(failed.error->where, path + ": line 20008");
    EXPECT_EQ(failed.documents.size(), 20007U);
    const Outcome passed = run({path}, threads, OnError::kSkip);
    EXPECT_THAT(passed.counts.skipped.by_reason, ElementsAre(Pair("wrong type", 10)));
    EXPECT_EQ(passed.documents.size(), 29990U);
  }
}

TEST_F(TokenizeTest, ErrorsOfTheReaderComeInTheirPlace) {
  const std::string good = folder_.write("a.jsonl", "{\"text\": \"x\"}\n");
  std::string packed = gzip(some_text(1'000'000));
  packed.resize(packed.size() - 100);
  const std::string damaged = folder_.write("b.txt.gz", packed);
  const Outcome failed = run({good, damaged, good}, 2);
  ASSERT_TRUE(failed.error);
  EXPECT_THAT(failed.error->message(), HasSubstr("cut off"));
  EXPECT_EQ(failed.documents.front(), ids("x"));
  const Outcome passed = run({good, damaged, good}, 2, OnError::kSkip);
  ASSERT_FALSE(passed.error);
  EXPECT_EQ(passed.documents.size(), 3U) << "what was read of the damaged text is one";
  EXPECT_THAT(passed.counts.skipped.by_reason, ElementsAre(Pair("damaged file", 1)));
}

TEST_F(TokenizeTest, StopsWhenAsked) {
  const std::string path = folder_.write("a.txt", some_text(2'000'000));
  int asked = 0;
  const Outcome stopped = run({path}, 2, OnError::kFail, {}, {.stop = [&] { return ++asked > 3; }});
  ASSERT_TRUE(stopped.error);
  EXPECT_EQ(stopped.error->code, ErrorCode::kInterrupted);
}

TEST_F(TokenizeTest, StopsWithinARecordThatIsReadPast) {
  const std::string path = folder_.write("a.jsonl", std::string(8'000'000, 'x') + "\n{\"text\": \"x\"}\n");
  auto reader =
      ExampleReader::open(std::vector{path}, {.on_error = OnError::kSkip, .max_record_bytes = 1000});
  ASSERT_TRUE(reader);
  const auto within = [&] { return (*reader)->bytes_read() > 0 && (*reader)->bytes_read() < 7'000'000; };
  const TokenSink sink = [](auto, auto, bool) -> Status { return Ok{}; };
  const auto counts =
      tokenize_files(**reader, ExampleEncoder(*tokenizer_, nullptr, {}), sink, {.stop = within});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, ErrorCode::kInterrupted);
}

TEST_F(TokenizeTest, UsesTheThreadsThatWereAskedForAndNoOthers) {
  const std::string path = folder_.write("a.txt", some_text(3'000'000));
  for (const int threads : {1, 3}) {
    std::mutex mutex;
    std::set<std::thread::id> users;
    auto reader =
        ExampleReader::open(std::vector{path}, {.piece_bytes = 5000, .cut = [&](std::string_view text) {
                                                  const std::scoped_lock lock(mutex);
                                                  users.insert(std::this_thread::get_id());
                                                  return tokenizer_->last_safe_cut(text);
                                                }});
    ASSERT_TRUE(reader);
    const TokenSink sink = [&](auto, auto, bool) -> Status {
      const std::scoped_lock lock(mutex);
      users.insert(std::this_thread::get_id());
      return Ok{};
    };
    ASSERT_TRUE(
        tokenize_files(**reader, ExampleEncoder(*tokenizer_, nullptr, {}), sink, {.num_threads = threads}));
    EXPECT_LE(users.size(), static_cast<size_t>(threads));
    EXPECT_TRUE(threads > 1 || users.contains(std::this_thread::get_id()));
  }
}

TEST_F(TokenizeTest, AThreadThatCannotBeStartedIsAnError) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's own memory needs the room that is taken away here";
  const std::string path = folder_.write("a.txt", some_text(300'000));
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight = {static_cast<rlim_t>(mapped_bytes() + (64 << 20)), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);  // no room for the stacks of 63 threads
  const Outcome failed = run({path}, 64);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_TRUE(failed.error);
  EXPECT_EQ(failed.error->code, ErrorCode::kIo);
  EXPECT_THAT(failed.error->message(), HasSubstr("cannot be started"));
  EXPECT_THAT(failed.error->hint, HasSubstr("--threads"));
  EXPECT_FALSE(run({path}, 3).error);
}

TEST_F(TokenizeTest, ASinkThatFailsEndsIt) {
  const std::string path = folder_.write("a.txt", some_text(2'000'000));
  auto reader = ExampleReader::open(std::vector{path}, {});
  ASSERT_TRUE(reader);
  const TokenSink full = [](auto, auto, bool) -> Status { return Error{ErrorCode::kIo, "disk full"}; };
  const auto counts =
      tokenize_files(**reader, ExampleEncoder(*tokenizer_, nullptr, {}), full, {.num_threads = 3});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, ErrorCode::kIo);
}

TEST_F(TokenizeTest, WritesArraysThatTheProjectReads) {
  for (const int64_t vocab_size : {65536, 65537}) {
    const std::string path = folder_.path("a.npy");
    std::vector<int32_t> tokens(1'000'003);
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<int32_t>(i * 2654435761U % static_cast<uint64_t>(vocab_size));
    auto output = TokenOutput::create(path, {.vocab_size = vocab_size});
    ASSERT_TRUE(output);
    EXPECT_TRUE(output->is_npy());
    for (size_t at = 0; at < tokens.size(); at += 70'001)
      ASSERT_TRUE(output->add(std::span(tokens).subspan(at, std::min<size_t>(70'001, tokens.size() - at)), {},
                              false));
    EXPECT_EQ(folder_.num_files(), vocab_size == 65536 ? 0U : 1U) << "nothing is there before the end";
    ASSERT_TRUE(output->finish());
    const auto source = datasets::TokenSource::open(path, vocab_size);
    ASSERT_TRUE(source) << source.error().message();
    EXPECT_EQ(source->element_bytes(), vocab_size == 65536 ? 2 : 4);
    std::vector<int32_t> read(tokens.size());
    std::vector<std::byte> scratch(1 << 16);
    ASSERT_EQ(source->num_tokens(), static_cast<int64_t>(tokens.size()));
    ASSERT_TRUE(source->read(0, read, scratch));
    EXPECT_TRUE(read == tokens);
  }
}

}  // namespace
}  // namespace plimsoll::corpora
