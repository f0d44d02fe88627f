// Files of labelled lines as a shard and its labels.
#include "corpora/labelled/tokenize_labelled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

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

/// The labels of a shard, in order.
std::vector<std::vector<float>> values_of(const std::string& path) {
  const auto labels = LabelFile::open(labels_beside(path));
  EXPECT_TRUE(labels);
  std::vector<std::vector<float>> all;
  EXPECT_TRUE(labels->visit([&](const LabelEntry& entry) -> Status {
    all.emplace_back(entry.values.begin(), entry.values.end());
    return Ok{};
  }));
  return all;
}

/// A line whose question is a letter, so that each of its windows begins with it.
std::string asked_line(int question, size_t context_letters) {
  std::string context;
  for (size_t i = 0; i < context_letters; ++i) context += static_cast<char>('c' + (i * 7) % 20);
  return "{\"question\": \"" + std::string(1, static_cast<char>('a' + question)) + "\", \"context\": \"" +
         context + R"(", "answers": {"text": [")" + context.substr(0, 1) + R"("], "answer_start": [0]}})" +
         "\n";
}

LabelledOptions of_questions(const tokenizers::Tokenizer& tokenizer, bool asks = false) {
  LabelledOptions options{
      .tokenizer = &tokenizer, .max_tokens = 8, .questions = QuestionOptions{.doc_stride = 1, .asks = asks}};
  options.format.num_token_types = 2;
  return options;
}

/// The second token of each window: its question.
std::vector<int32_t> questions_of(const std::string& path) {
  const auto shard = datasets::Shard::open(path);
  std::vector<int32_t> all;
  for (int64_t i = 0; i < shard->info().num_documents; ++i) all.push_back(tokens_of(*shard, i)[1] - 1);
  return all;
}

TEST(TokenizeLabelled, OfPredictionsItSaysWhereTokensStand) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  // A blank is an empty stretch where it ends.
  const std::string path = labelled_shard(folder, "x",
                                          "{\"question\": \"q\", \"context\": \"cdefg\"}\n"
                                          "{\"question\": \" qr\", \"context\": \"ab c\"}\n",
                                          of_questions(*tokenizer, /*asks=*/true));
  EXPECT_THAT(values_of(path), ElementsAre(ElementsAre(0, 3, 4), ElementsAre(0, 3, 2), ElementsAre(1, 4, 3)));
  const auto begins = datasets::Shard::open(begins_beside(path)),
             ends = datasets::Shard::open(ends_beside(path));
  ASSERT_TRUE(begins && ends);
  EXPECT_THAT(tokens_of(*begins, 0), ElementsAre(0, 0, 0, 0, 1, 2, 3, 0));
  EXPECT_THAT(tokens_of(*ends, 0), ElementsAre(0, 0, 0, 1, 2, 3, 4, 0));
  EXPECT_THAT(tokens_of(*begins, 1), ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(tokens_of(*ends, 1), ElementsAre(0, 0, 0, 4, 5, 0));
  EXPECT_THAT(tokens_of(*begins, 2), ElementsAre(0, 0, 0, 0, 0, 3, 3, 0));
  EXPECT_THAT(tokens_of(*ends, 2), ElementsAre(0, 0, 0, 0, 2, 3, 4, 0));
  const std::string trained = labelled_shard(folder, "y", asked_line(1, 5), of_questions(*tokenizer));
  EXPECT_FALSE(std::filesystem::exists(begins_beside(trained)));
  EXPECT_THAT(values_of(trained), ElementsAre(ElementsAre(3, 3), ElementsAre(0, 0)));
}

TEST(TokenizeLabelled, TheFirstExamplesAreQuestions) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  std::string lines, all;
  for (int q = 0; q < 5; ++q) lines += asked_line(q, 10);  // three windows each
  for (int q = 0; q < 5; ++q)
    all += std::string(q == 0 ? "" : ", ") + R"({"qas": [{"id": ")" + std::to_string(q) + "\", " +
           asked_line(q, 10).substr(1, asked_line(q, 10).find("\"context\"") - 1) +
           R"("answers": []}], "context": "cdefghijkl"})";
  const std::vector<std::vector<std::string>> forms = {
      {folder.write("x.jsonl", lines)},
      {folder.write("x.json", R"({"data": [{"paragraphs": [)" + all + "]}]}")}};
  for (const auto& files : forms) {
    LabelledOptions options = of_questions(*tokenizer);
    options.format.vocab_size = 100;
    const auto counts =
        tokenize_labelled(files, options, folder.path("x.shard"), {.max_documents = 2, .num_threads = 2});
    ASSERT_TRUE(counts) << counts.error().message();
    EXPECT_EQ(counts->num_documents, 6) << "windows of two questions";
    EXPECT_THAT(questions_of(folder.path("x.shard")), ElementsAre(0, 0, 0, 1, 1, 1)) << files[0];
  }
}

TEST(TokenizeLabelled, AllWindowsOfAQuestionAreOnOneSide) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  std::string lines;
  for (int q = 0; q < 26; ++q) lines += asked_line(q, 4 + static_cast<size_t>(q));
  const auto side = [&](datasets::SplitSide which, int64_t most) {
    LabelledOptions options = of_questions(*tokenizer);
    options.side = which;
    options.eval_fraction = 0.4;
    options.max_tokens = most;
    std::vector<int32_t> windows = questions_of(labelled_shard(folder, "x", lines, options));
    windows.erase(std::unique(windows.begin(), windows.end()), windows.end());
    return windows;
  };
  const std::vector<int32_t> train = side(datasets::SplitSide::kTrain, 8),
                             eval = side(datasets::SplitSide::kEval, 8);
  EXPECT_GT(eval.size(), 4U);
  EXPECT_LT(eval.size(), 20U);
  std::vector<int32_t> both = train;
  both.insert(both.end(), eval.begin(), eval.end());
  std::ranges::sort(both);
  ASSERT_EQ(both.size(), 26U) << "none is on both";
  for (int q = 0; q < 26; ++q) EXPECT_EQ(both[static_cast<size_t>(q)], q);
  EXPECT_EQ(side(datasets::SplitSide::kEval, 12), eval) << "where windows are cut moves none";
}

TEST(TokenizeLabelled, QuestionsDoNotShowTheNumberOfThreads) {
  const io::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += asked_line(i % 26, 1 + static_cast<size_t>(i % 37));
  const std::vector<std::string> files = {folder.write("x.jsonl", lines)};
  const auto tokenizer = pairs_tokenizer();
  LabelledOptions options = of_questions(*tokenizer, /*asks=*/true);
  options.format.vocab_size = 100;
  for (const int threads : {1, 3})
    ASSERT_TRUE(tokenize_labelled(files, options, folder.path(std::to_string(threads) + ".shard"),
                                  {.num_threads = threads}));
  for (const char* kind : {".shard", ".labels", ".types", ".begins", ".ends"})
    EXPECT_EQ(io::read_all(folder.path(std::string("1") + kind)),
              io::read_all(folder.path(std::string("3") + kind)));
}

TEST(TokenizeLabelled, NamesTheQuestionThatIsWrongOrPassesOverIt) {
  const io::TemporaryFolder folder;
  const auto tokenizer = pairs_tokenizer();
  LabelledOptions options = of_questions(*tokenizer);
  options.format.vocab_size = 100;
  const auto cut = [&](const std::string& lines) {
    const std::vector<std::string> files = {folder.write("x.jsonl", lines)};
    return tokenize_labelled(files, options, folder.path("x.shard"), {});
  };
  const std::string off =
                        R"({"question": "q", "context": "cd", "answers": [{"text": "d", "answer_start": 0}]})"
                        "\n",
                    asks_much = R"({"question": "qrstuvw", "context": "cd", "answers": []})"
                                "\n",
                    none = R"({"question": "q", "context": "cd"})"
                           "\n";
  for (const std::string& wrong : {off, asks_much, none, std::string("{}\n")}) {
    const auto counts = cut(asked_line(1, 3) + wrong);
    ASSERT_FALSE(counts) << wrong;
    EXPECT_EQ(counts.error().code, ErrorCode::kBadData) << wrong;
    EXPECT_THAT(counts.error().message(), HasSubstr("x.jsonl: line 2"));
    EXPECT_FALSE(std::filesystem::exists(folder.path("x.labels")));
  }
  options.on_error = OnError::kSkip;
  const auto counts = cut(off + asked_line(3, 3) + asks_much + none + asked_line(1, 3) + "{}\n");
  ASSERT_TRUE(counts) << counts.error().message();
  EXPECT_THAT(questions_of(folder.path("x.shard")), ElementsAre(3, 1));
  EXPECT_THAT(counts->skipped.by_reason,
              testing::UnorderedElementsAre(Pair("bad label", 1), Pair("missing field", 2),
                                            Pair("no tokens for it", 1)));
  LabelledOptions without = options;
  without.tokenizer = nullptr;
  const std::vector<std::string> files = {folder.path("x.jsonl")};
  const auto no_tokenizer = tokenize_labelled(files, without, folder.path("x.shard"), {});
  ASSERT_FALSE(no_tokenizer);
  EXPECT_EQ(no_tokenizer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(no_tokenizer.error().hint, HasSubstr("set data.tokenizer"));
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
