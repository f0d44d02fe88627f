// Files of labelled lines as a shard and its labels.
#include "corpora/labelled/tokenize_labelled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "labelled_files.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int32_t> tokens_of(const datasets::Shard& shard, int64_t index) {
  std::vector<std::byte> scratch(
      static_cast<size_t>(shard.block_bytes() + datasets::Shard::kDocumentScratchBytes));
  datasets::ShardDocument at;
  EXPECT_TRUE(shard.read_documents(index, {&at, 1}, scratch));
  std::vector<int32_t> ids(static_cast<size_t>(at.num_tokens()));
  EXPECT_TRUE(shard.read(at.begin, ids, {}, scratch));
  return ids;
}

TEST(TokenizeLabelled, TextsPairsAndTokens) {
  const io::TemporaryFolder folder;
  const auto tokenizer = letters_tokenizer();
  const std::string path = labelled_shard(folder, "x",
                                          R"({"text": "abc", "label": 1}
{"text": "abc", "text_pair": "ab", "label": "x"}

{"input_ids": [5, 29, 5], "label": 0.5}
)",
                                          {.tokenizer = tokenizer.get()});
  const auto shard = datasets::Shard::open(path);
  ASSERT_TRUE(shard) << shard.error().message();
  EXPECT_EQ(shard->info().num_documents, 3);
  EXPECT_EQ(shard->info().vocab_size, 100) << "the model's, for ids that are no text's";
  EXPECT_THAT(tokens_of(*shard, 0), ElementsAre(29, 28, 3));
  EXPECT_THAT(tokens_of(*shard, 1), ElementsAre(29, 28, 3, 29, 28));
  EXPECT_THAT(tokens_of(*shard, 2), ElementsAre(5, 29, 5));
  const auto labels = LabelFile::open(labels_beside(path));
  ASSERT_TRUE(labels);
  EXPECT_EQ(labels->shard_hash(), shard->info().content_hash);
  std::vector<int64_t> lines;
  ASSERT_TRUE(labels->visit([&](const LabelEntry& entry) -> Status {
    lines.push_back(entry.line);
    return Ok{};
  }));
  EXPECT_THAT(lines, ElementsAre(1, 2, 4));
}

TEST(TokenizeLabelled, PaddingAtTheEndIsNotKept) {
  const io::TemporaryFolder folder;
  const std::string path = labelled_shard(folder, "x",
                                          R"({"input_ids": [7, 4, 7, 7], "label": 1}
{"input_ids": [7, 7], "label": 0}
)",
                                          {.pad_token = 7});
  const auto shard = datasets::Shard::open(path);
  ASSERT_TRUE(shard);
  EXPECT_THAT(tokens_of(*shard, 0), ElementsAre(7, 4));
  EXPECT_THAT(tokens_of(*shard, 1), ElementsAre(7));
}

TEST(TokenizeLabelled, TheNumberOfThreadsDoesNotShow) {
  const io::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20000; ++i)
    lines += "{\"text\": \"" + std::string(static_cast<size_t>(1 + i % 50), 'a') +
             "\", \"label\": " + std::to_string(i % 3) + "}\n";
  const std::vector<std::string> files = {folder.write("x.jsonl", lines)};
  const auto tokenizer = letters_tokenizer();
  const LabelledOptions options{.tokenizer = tokenizer.get()};
  for (const int threads : {1, 3}) {
    const auto counts = tokenize_labelled(files, options, folder.path(std::to_string(threads) + ".shard"),
                                          {.num_threads = threads});
    ASSERT_TRUE(counts) << counts.error().message();
    EXPECT_EQ(counts->num_documents, 20000);
  }
  for (const char* kind : {".shard", ".labels"})
    EXPECT_EQ(io::read_all(folder.path(std::string("1") + kind)),
              io::read_all(folder.path(std::string("3") + kind)));
}

TEST(TokenizeLabelled, TheSidesOfASplitShareNothing) {
  const io::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 100; ++i)
    lines +=
        "{\"input_ids\": [" + std::to_string(i % 90) + ", " + std::to_string(i % 7) + "], \"label\": 1}\n";
  LabelledOptions options{.side = datasets::SplitSide::kTrain, .eval_fraction = 0.3};
  const auto train = datasets::Shard::open(labelled_shard(folder, "train", lines, options));
  options.side = datasets::SplitSide::kEval;
  const auto eval = datasets::Shard::open(labelled_shard(folder, "eval", lines, options));
  ASSERT_TRUE(train && eval);
  EXPECT_EQ(train->info().num_documents + eval->info().num_documents, 100);
  EXPECT_GT(eval->info().num_documents, 10);
  EXPECT_LT(eval->info().num_documents, 60);
}

TEST(TokenizeLabelled, NamesTheLineThatIsWrong) {
  const io::TemporaryFolder folder;
  const auto refusal = [&](const std::string& lines, LabelledOptions options = {}) {
    options.format.vocab_size = 100;
    const std::vector<std::string> files = {folder.write("x.jsonl", lines)};
    const auto counts = tokenize_labelled(files, options, folder.path("x.shard"), {});
    EXPECT_FALSE(std::filesystem::exists(folder.path("x.shard")) ||
                 std::filesystem::exists(folder.path("x.labels")));
    return counts ? std::string("accepted") : counts.error().message();
  };
  const std::string good = "{\"input_ids\": [1], \"label\": 1}\n";
  EXPECT_THAT(refusal(good + "{\"input_ids\": [], \"label\": 1}\n"), HasSubstr("the example has no token: "));
  EXPECT_THAT(refusal(good + "{\"text\": \"a\", \"label\": 1}\n"), HasSubstr("there is no tokenizer: "));
  EXPECT_THAT(refusal(good + "{\"input_ids\": [1], \"label\": [1]}\n"), HasSubstr("x.jsonl: line 2"));
  EXPECT_THAT(refusal(good + good + "{\"input_ids\": [100], \"label\": 1}\n"), HasSubstr("x.jsonl: line 3"));
  EXPECT_THAT(refusal(""), HasSubstr("the file is empty"));
  EXPECT_THAT(refusal("{}\n", {.on_error = OnError::kSkip}), HasSubstr("none of its examples can be used"));
  const auto text =
      tokenize_labelled(std::vector{folder.write("x.txt", "a")}, {}, folder.path("y.shard"), {});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kInvalidArgument);
}

TEST(TokenizeLabelled, PassesOverWhatIsWrongWhereAsked) {
  const io::TemporaryFolder folder;
  const std::vector<std::string> files = {
      folder.write("x.jsonl",
                   "{\"input_ids\": [1], \"label\": 1}\n{\"input_ids\": [1], \"label\": {}}\nno\n"
                   "{\"input_ids\": [2], \"label\": [0]}\n{\"input_ids\": [3], \"label\": 2}\n")};
  const LabelledOptions options{.format = {.vocab_size = 9}, .on_error = OnError::kSkip};
  const auto counts = tokenize_labelled(files, options, folder.path("x.shard"), {});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->num_documents, 2);
  EXPECT_THAT(counts->skipped.by_reason, ElementsAre(std::pair("bad label", 2), std::pair("not JSON", 1)));
}

}  // namespace
}  // namespace plimsoll::corpora
