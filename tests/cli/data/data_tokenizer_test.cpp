// plimsoll data tokenizer as its user calls it: files, summaries, errors, what a failure leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/run_plimsoll.h"
#include "io/json.h"
#include "io/temporary_folder.h"
#include "tokenizers/tokenizer.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class DataTokenizer : public testing::Test {
 protected:
  Outcome train(const std::string& output, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"data", "tokenizer", "--input", text_, "--output", output};
    words.insert(words.end(), more.begin(), more.end());
    return run_plimsoll(words);
  }
  io::TemporaryFolder folder_;
  std::string text_ = folder_.write("a.txt", "low lower lowest low low slow slower\n");
};

TEST_F(DataTokenizer, WritesATokenizerThatOpens) {
  const std::string output = folder_.path("new/model");
  const Outcome outcome =
      train(output, {"--vocab-size", "262", "--special-token", "<s>", "</s>", "--threads", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("vocabulary  262\n"));
  EXPECT_THAT(outcome.out, HasSubstr("8 words"));
  const auto tokenizer = tokenizers::Tokenizer::open(output);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message();
  EXPECT_EQ((*tokenizer)->vocab_size(), 262);
  EXPECT_EQ((*tokenizer)->id_of("</s>"), 1);
  std::vector<int32_t> ids;
  ASSERT_TRUE((*tokenizer)->encode("low slow<s>", false, ids));
  EXPECT_EQ((*tokenizer)->decode(ids, true), "low slow");
  EXPECT_LT(ids.size(), 8U) << "something was learnt";
  const auto config = io::parse_json(io::read_all(output + "/tokenizer_config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->find("eos_token")->text, "</s>");
}

TEST_F(DataTokenizer, TellsAProgramWhatItDid) {
  const std::string output = folder_.path("m\xff");
  const Outcome outcome = train(output, {"--vocab-size", "258", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<io::Tree> events = objects(outcome.out);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].find("event")->text, "tokenizer");
  EXPECT_EQ(events[0].find("output")->text, folder_.path("m\uFFFD")) << "JSON holds UTF-8 alone";
  EXPECT_EQ(events[0].find("vocab_size")->integer, 258);
  EXPECT_EQ(events[0].find("merges")->integer, 2);
  EXPECT_EQ(events[0].find("files")->integer, 1);
  EXPECT_EQ(events[0].find("words")->integer, 8);
}

TEST_F(DataTokenizer, TheSameForAnyNumberOfThreads) {
  ASSERT_EQ(train(folder_.path("one"), {"--vocab-size", "265", "--threads", "1"}).code, 0);
  ASSERT_EQ(train(folder_.path("four"), {"--vocab-size", "265", "--threads", "4"}).code, 0);
  EXPECT_EQ(io::read_all(folder_.path("one/tokenizer.json")),
            io::read_all(folder_.path("four/tokenizer.json")));
}

TEST_F(DataTokenizer, AFailureLeavesNothingBehind) {
  const std::string lines = folder_.write("a.jsonl", "{\"text\": \"low\"}\n{\"text\": 1}\n");
  const size_t before = folder_.num_files();
  struct Row {
    std::vector<std::string> more;
    int code;
    const char* text;
  };
  const Row rows[] = {
      {{"--vocab-size", "100"}, 2, "256"},
      {{"--vocab-size", "300", "--input", lines}, 65, "line 2"},
      {{"--vocab-size", "300", "--input", folder_.path("absent.txt")}, 65, "there is no such file"},
      {{"--vocab-size", "300", "--pre-tokenizer", "none"}, 2, "--pre-tokenizer"},
      {{"--vocab-size", "300", "--special-token", "<s>", "<s>"}, 2, "<s>"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = train(folder_.path("some/new/folder"), row.more);
    EXPECT_EQ(outcome.code, row.code) << row.text << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty()) << row.text;
    EXPECT_THAT(outcome.err, HasSubstr(row.text));
    EXPECT_THAT(outcome.err, HasSubstr("hint: "));
    EXPECT_EQ(folder_.num_files(), before) << row.text << ": a folder stayed";
  }
  std::filesystem::create_directories(folder_.path("there"));
  EXPECT_EQ(train(folder_.path("there/new"), {"--vocab-size", "100"}).code, 2);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("there"))) << "what was there before stays";
  const Outcome passed =
      train(folder_.path("model"), {"--vocab-size", "300", "--input", lines, "--on-error", "skip"});
  ASSERT_EQ(passed.code, 0) << passed.err;
  EXPECT_THAT(passed.out, HasSubstr("1 (wrong type)"));
}

}  // namespace
}  // namespace plimsoll::cli
