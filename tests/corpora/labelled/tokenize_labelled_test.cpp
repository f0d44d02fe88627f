// Files of labelled lines as a shard and its labels.
#include "corpora/labelled/tokenize_labelled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "labelled_files.h"

namespace plimsoll::corpora {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

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

/// A row's ids with their types.
std::vector<std::pair<int32_t, int32_t>> typed(const std::string& path, int64_t index) {
  const auto tokens = datasets::Shard::open(path), types = datasets::Shard::open(types_beside(path));
  EXPECT_TRUE(tokens && types);
  const std::vector<int32_t> ids = tokens_of(*tokens, index), kinds = tokens_of(*types, index);
  EXPECT_EQ(ids.size(), kinds.size());
  std::vector<std::pair<int32_t, int32_t>> all;
  for (size_t i = 0; i < ids.size(); ++i) all.emplace_back(ids[i], kinds[i]);
  return all;
}

TEST(TokenizeLabelled, TypesStandBesideTheTokens) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  const std::string lines = R"({"text": "ab", "label": 1}
{"text": "ac", "text_pair": "d", "label": 0}
{"input_ids": [5, 6, 7], "token_type_ids": [1, 0, 1], "label": 0}
{"input_ids": [5, 6], "label": 0}
)";
  const LabelledOptions options{.tokenizer = tokenizer.get(), .format = {.num_token_types = 2}};
  const std::string path = labelled_shard(folder, "x", lines, options);
  EXPECT_THAT(typed(path, 0), ElementsAre(Pair(29, 0), Pair(28, 0), Pair(30, 0)));
  EXPECT_THAT(typed(path, 1),
              ElementsAre(Pair(29, 0), Pair(1, 0), Pair(3, 0), Pair(30, 0), Pair(4, 1), Pair(30, 1)));
  EXPECT_THAT(typed(path, 2), ElementsAre(Pair(5, 1), Pair(6, 0), Pair(7, 1)));
  EXPECT_THAT(typed(path, 3), ElementsAre(Pair(5, 0), Pair(6, 0)));
  EXPECT_EQ(LabelFile::open(labels_beside(path))->shard_hash(),
            labelled_hash(datasets::Shard::open(path)->info().content_hash,
                          datasets::Shard::open(types_beside(path))->info().content_hash));
  for (const int64_t few : {0, 1}) {
    const std::string none =
        labelled_shard(folder, "none", R"({"text": "ac", "text_pair": "d", "label": 0})",
                       {.tokenizer = tokenizer.get(), .format = {.num_token_types = few}});
    EXPECT_FALSE(std::filesystem::exists(types_beside(none))) << "a model of one type needs none";
  }
}

TEST(TokenizeLabelled, NamesATypeThatTheModelLacks) {
  const io::TemporaryFolder folder;
  const auto tokenizer = template_tokenizer({{"A", 0}}, {{"A", 0}, {"</s>", 0}, {"B", 2}});
  const std::vector<std::string> files = {
      folder.write("x.jsonl", R"({"text": "a", "text_pair": "b", "label": 0})")};
  const auto counts = tokenize_labelled(
      files, {.tokenizer = tokenizer.get(), .format = {.num_token_types = 2}}, folder.path("x.shard"), {});
  ASSERT_FALSE(counts);
  EXPECT_THAT(counts.error().message(),
              HasSubstr("gives a token the type 2, and the model has 2 types: " + files[0] + ": line 1"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("x.types")));
}

TEST(TokenizeLabelled, TextsAreCutAsByTransformers) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  const std::string lines = R"({"text": "cdefgh", "label": 1}
{"text": "cdefgh", "text_pair": "ij", "label": 0}
{"text": "c", "text_pair": "defgh", "label": 0}
{"text": "cd", "text_pair": "e", "label": 0}
{"input_ids": [1, 2, 3, 4, 5, 6, 7, 8], "label": 0}
)";
  const std::string path = labelled_shard(
      folder, "x", lines, {.tokenizer = tokenizer.get(), .format = {.num_token_types = 2}, .max_tokens = 6});
  const auto shard = datasets::Shard::open(path);
  ASSERT_TRUE(shard);
  EXPECT_THAT(tokens_of(*shard, 0), ElementsAre(29, 3, 4, 5, 6, 30)) << "what stands behind the text stays";
  EXPECT_THAT(typed(path, 1),
              ElementsAre(Pair(29, 0), Pair(3, 0), Pair(4, 0), Pair(30, 0), Pair(9, 1), Pair(30, 1)));
  EXPECT_THAT(tokens_of(*shard, 2), ElementsAre(29, 3, 30, 4, 5, 30));
  EXPECT_THAT(tokens_of(*shard, 3), ElementsAre(29, 3, 4, 30, 5, 30)) << "as long as there is room";
  EXPECT_THAT(tokens_of(*shard, 4), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << "whoever reads rows cuts them";
  const std::vector<std::string> files = {folder.path("x.jsonl")};
  const auto small =
      tokenize_labelled(files, {.tokenizer = tokenizer.get(), .max_tokens = 1}, folder.path("y.shard"), {});
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(small.error().hint, HasSubstr("data.sequence_length"));
}

TEST(TokenizeLabelled, WhereTextsAreCutDoesNotMoveThemToAnotherSide) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  std::string lines;
  for (int i = 0; i < 60; ++i)
    lines += "{\"text\": \"cde" + std::string(static_cast<size_t>(i), 'f') + "\", \"label\": 1}\n";
  const auto held_out = [&](int64_t most) {
    return datasets::Shard::open(labelled_shard(folder, "x", lines,
                                                {.tokenizer = tokenizer.get(),
                                                 .max_tokens = most,
                                                 .side = datasets::SplitSide::kEval,
                                                 .eval_fraction = 0.5}))
        ->info()
        .num_documents;
  };
  EXPECT_EQ(held_out(0), held_out(5)) << "cut they are all alike";
  EXPECT_GT(held_out(5), 10);
  EXPECT_LT(held_out(5), 50);
}

TEST(EndsWithSpecial, IsWhatStandsBehindAText) {
  EXPECT_FALSE(ends_with_special(*letters_tokenizer()));
  EXPECT_TRUE(ends_with_special(*pairs_tokenizer()));
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
  const LabelledOptions options{.tokenizer = tokenizer.get(), .format = {.num_token_types = 2}};
  for (const int threads : {1, 3}) {
    const auto counts = tokenize_labelled(files, options, folder.path(std::to_string(threads) + ".shard"),
                                          {.num_threads = threads});
    ASSERT_TRUE(counts) << counts.error().message();
    EXPECT_EQ(counts->num_documents, 20000);
  }
  for (const char* kind : {".shard", ".labels", ".types"})
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
