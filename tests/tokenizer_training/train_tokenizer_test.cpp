// Training a tokenizer: against what the `tokenizers` package made of the same texts (record_trainer.py), on
// any number of threads, from any kind of file.
#include "tokenizer_training/train_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <random>

#include "io/file.h"
#include "io/json.h"
#include "io/temporary_folder.h"
#include "tokenizer_training/word_counts.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::tokenizer_training {
namespace {

using testing::HasSubstr;

constexpr io::TreeLimits kLarge{.max_bytes = 1 << 24, .max_depth = 64, .max_nodes = 1 << 24};

io::Tree tree_of(const std::string& json) {
  auto tree = io::parse_json(json, kLarge);
  EXPECT_TRUE(tree) << tree.error().message();
  return tree ? std::move(tree).value() : io::Tree();
}

std::vector<std::string> texts_of(const io::Tree& list) {
  std::vector<std::string> texts;
  for (const io::Tree& item : list.items) texts.push_back(item.text);
  return texts;
}

TrainedTokenizer train(const TokenizerTraining& training) {
  auto trained = train_tokenizer(training);
  EXPECT_TRUE(trained) << trained.error().message();
  return trained ? std::move(trained).value() : TrainedTokenizer();
}

Error training_refusal(const TokenizerTraining& training) {
  auto trained = train_tokenizer(training);
  EXPECT_FALSE(trained);
  return trained ? Error{} : trained.error();
}

/// Words of a few letters, so that there is something to learn.
std::string prose(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size) {
    for (unsigned k = 1 + random() % 5; k > 0; --k) text += "aeinorst"[random() % 8];
    text += random() % 9 == 0 ? ".\n\n  " : " ";
  }
  return text;
}

TEST(TrainTokenizer, MakesWhatThePackageMakes) {
  const auto recorded =
      io::read_small_file(PLIMSOLL_TEST_DIR "/tokenizer_training/recorded_training.json", 1 << 24);
  ASSERT_TRUE(recorded);
  const io::Tree cases = tree_of(*recorded);
  ASSERT_GT(cases.items.size(), 15u);
  for (const io::Tree& entry : cases.items) {
    const io::TemporaryFolder folder;
    TokenizerTraining training{.vocab_size = entry.find("vocab_size")->integer,
                               .min_frequency = entry.find("min_frequency")->integer,
                               .special_tokens = texts_of(*entry.find("special_tokens")),
                               .pre_tokenizer = entry.find("pre_tokenizer")->text,
                               .num_threads = 2};
    for (const std::string& text : texts_of(*entry.find("texts")))
      training.inputs.push_back(folder.write(std::to_string(training.inputs.size()) + ".txt", text));
    const TrainedTokenizer trained = train(training);
    const io::Tree document = tree_of(trained.tokenizer_json);
    std::vector<std::string> tokens, merges;
    for (const auto& [token, id] : document.find("model")->find("vocab")->members) {
      EXPECT_EQ(id.integer, static_cast<int64_t>(tokens.size()));
      tokens.push_back(token);
    }
    for (const io::Tree& pair : document.find("model")->find("merges")->items)
      merges.push_back(pair.items[0].text + " " + pair.items[1].text);
    EXPECT_EQ(tokens, texts_of(*entry.find("tokens"))) << training.pre_tokenizer;
    EXPECT_EQ(merges, texts_of(*entry.find("merges"))) << training.pre_tokenizer;
    EXPECT_EQ(trained.vocab_size, static_cast<int64_t>(tokens.size()));
    EXPECT_EQ(trained.num_merges, static_cast<int64_t>(merges.size()));
  }
}

TEST(TrainTokenizer, IsTheSameForAnyThreadsAndHoweverTheTextIsCut) {
  const io::TemporaryFolder folder;
  // More than one piece, more than one batch.
  const std::string text = prose(3 << 20, 1);
  std::string line = R"({"text": ")";
  for (const char c : text) line += c == '\n' ? "\\n" : std::string(1, c);
  TokenizerTraining training{.inputs = {folder.write("a.txt", text)}, .vocab_size = 600};
  const TrainedTokenizer one = train(training);
  training.num_threads = 5;
  EXPECT_EQ(train(training).tokenizer_json, one.tokenizer_json);
  training.inputs = {folder.write("a.jsonl", line + "\"}\n")};
  const TrainedTokenizer whole = train(training);
  EXPECT_EQ(whole.tokenizer_json, one.tokenizer_json);
  EXPECT_EQ(whole.num_words, one.num_words);
  EXPECT_EQ(whole.num_examples, one.num_examples);
  EXPECT_GT(one.num_merges, 100);
}

TEST(TrainTokenizer, EncodesWithWhatItLearnt) {
  const io::TemporaryFolder folder;
  const TrainedTokenizer trained = train({.inputs = {folder.write("a.txt", prose(5000, 2))},
                                          .vocab_size = 320,
                                          .special_tokens = {"<|endoftext|>", "<pad>"}});
  EXPECT_EQ(trained.vocab_size, 320);
  const std::string directory = folder.path("made/tokenizer");
  ASSERT_TRUE(write_tokenizer(trained, directory));
  const auto tokenizer = tokenizers::Tokenizer::open(directory);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ((*tokenizer)->id_of("<|endoftext|>"), 0);
  EXPECT_TRUE((*tokenizer)->is_special(1));
  const std::string text = prose(1000, 3) + "\xE4\xBD\xA0 \x01";
  std::vector<int32_t> ids;
  ASSERT_TRUE((*tokenizer)->encode(text + "<|endoftext|>", true, ids));
  EXPECT_LT(ids.size(), text.size() * 2 / 3);
  EXPECT_EQ(ids.back(), 0);
  EXPECT_EQ((*tokenizer)->decode(ids, true), text);
  const io::Tree config = tree_of(*io::read_small_file(directory + "/tokenizer_config.json", 1 << 20));
  EXPECT_EQ(config.find("tokenizer_class")->text, "PreTrainedTokenizerFast");
  EXPECT_EQ(config.find("eos_token")->text, "<|endoftext|>");
  EXPECT_EQ(config.find("pad_token")->text, "<pad>");
}

TEST(TrainTokenizer, WritesBothFilesOrNeither) {
  const io::TemporaryFolder folder;
  const TrainedTokenizer trained = train({.inputs = {folder.write("a.txt", "some text")}, .vocab_size = 300});
  const std::string directory = folder.path("made");
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {2000, before.rlim_max};  // the configuration fits, the tokenizer does not
  ASSERT_LT(trained.config_json.size(), 2000U);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write_tokenizer(trained, directory);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kIo);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST(TrainTokenizer, LearnsFromConversationsAndCompletions) {
  const io::TemporaryFolder folder;
  const std::string file = folder.write(
      "a.jsonl",
      R"({"messages": [{"role": "user", "content": "zqzq zqzq"}, {"role": "assistant", "content": [{"type": "text", "text": "xkxk xkxk"}]}]}
{"prompt": "vjvj vjvj", "completion": "wgwg wgwg"}
not JSON
)");
  TokenizerTraining training{.inputs = {file}, .vocab_size = 400};
  EXPECT_EQ(training_refusal(training).code, ErrorCode::kBadData);
  EXPECT_THAT(training_refusal(training).message(), HasSubstr("a.jsonl"));
  training.on_error = corpora::OnError::kSkip;
  const TrainedTokenizer trained = train(training);
  for (const char* word : {"zqzq", "xkxk", "vjvj", "wgwg"})
    EXPECT_THAT(trained.tokenizer_json, HasSubstr(word));
  EXPECT_THAT(trained.tokenizer_json, testing::Not(HasSubstr("assistant")));
  EXPECT_EQ(trained.num_examples, 2);
  EXPECT_EQ(trained.skipped.total(), 1);
}

TEST(TrainTokenizer, TheFirstErrorWinsWhateverTheThreads) {
  const io::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += i % 7000 == 6999 ? "{\"text\": 1}\n" : "{\"text\": \"ab cd\"}\n";
  const std::string late = folder.write("late.jsonl", lines);
  // The reader comes to its own error first, but it stands behind the line.
  const std::string both = folder.write("both.json", "[{\"text\": \"ab\"},\n{\"text\": 1},\n{\"te");
  for (const int threads : {1, 4}) {
    EXPECT_EQ(training_refusal({.inputs = {late}, .vocab_size = 300, .num_threads = threads}).where,
              late + ": line 7000");
    const Error wrong = training_refusal({.inputs = {both}, .vocab_size = 300, .num_threads = threads});
    EXPECT_EQ(wrong.where, both + ": line 2");
    EXPECT_THAT(wrong.hint, HasSubstr("--on-error skip"));
  }
}

TEST(TrainTokenizer, LongLinesAreReadByAnyNumberOfThreads) {
  const io::TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 8; ++i) {  // more at once than may be under way
    lines += R"({"score": NaN, "messages": [)";
    for (int k = 0; k < 3'000; ++k)
      lines += R"({"role": "user", "content": "some words that repeat", "more": [")" +
               std::string(1'000, 'x') + R"("]}, )";
    lines += R"({"role": "user", "content": null}]})";
    lines += '\n';
  }
  TokenizerTraining training{.inputs = {folder.write("a.jsonl", lines)}, .vocab_size = 280};
  const TrainedTokenizer one = train(training);
  EXPECT_EQ(one.num_words, 8 * 3'000 * 4);
  training.num_threads = 6;
  EXPECT_EQ(train(training).tokenizer_json, one.tokenizer_json);
}

TEST(TrainTokenizer, SaysWhatIsWrong) {
  const io::TemporaryFolder folder;
  const std::string file = folder.write("a.txt", "some text");
  const TokenizerTraining good{.inputs = {file}, .vocab_size = 300};
  const auto with = [&good](const std::function<void(TokenizerTraining&)>& change) {
    TokenizerTraining training = good;
    change(training);
    return training_refusal(training);
  };
  EXPECT_EQ(with([](auto& t) { t.vocab_size = 255; }).code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(with([](auto& t) { t.vocab_size = -1; }).hint, HasSubstr("256"));
  EXPECT_EQ(with([](auto& t) { t.vocab_size = INT64_MAX; }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(with([](auto& t) { t.vocab_size = 256, t.special_tokens = {"<s>"}; }).code,
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(with([](auto& t) { t.special_tokens = {"<s>", "<s>"}; }).message(), HasSubstr("twice"));
  EXPECT_EQ(with([](auto& t) { t.special_tokens = {""}; }).code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(with([](auto& t) { t.special_tokens = {"\xFF"}; }).code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(with([](auto& t) { t.pre_tokenizer = "bert"; }).hint, HasSubstr("gpt2"));
  EXPECT_EQ(with([&](auto& t) { t.inputs = {file + ".absent"}; }).code, ErrorCode::kBadData);
  EXPECT_EQ(with([&](auto& t) {
              t.inputs = {folder.write("empty.txt", "")}, t.on_error = corpora::OnError::kSkip;
            }).code,
            ErrorCode::kBadData);
  EXPECT_EQ(with([](auto& t) { t.stop = [] { return true; }; }).code, ErrorCode::kInterrupted);
}

TEST(WordCounts, CountsWordsOfAllLengths) {
  WordCounts counts, more;
  std::vector<std::string> words;
  for (size_t i = 0; i < 20000; ++i) words.push_back(std::to_string(i * i) + std::string(i % 40, 'x'));
  words.push_back(std::string(1 << 20, 'y'));
  for (const std::string& word : words) counts.add(word);
  for (size_t i = 0; i < words.size(); i += 2) more.add(words[i], 3);
  more.add("new", 5);
  counts.add(more);
  ASSERT_EQ(counts.size(), words.size() + 1);
  for (size_t i = 0; i < words.size(); ++i) {
    ASSERT_EQ(counts.word(i), words[i]);
    ASSERT_EQ(counts.count(i), i % 2 == 0 ? 4 : 1);
  }
  EXPECT_EQ(counts.word(words.size()), "new");
  EXPECT_EQ(counts.count(words.size()), 5);
}

}  // namespace
}  // namespace plimsoll::tokenizer_training
