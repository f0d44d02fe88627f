// plimsoll data tokenize as its user calls it: outputs, summaries, errors, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "cli/run_plimsoll.h"
#include "corpora/tiny_tokenizer.h"
#include "datasets/shard.h"
#include "datasets/token_source.h"
#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class DataTokenize : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path("model"));
    model_ = folder_.path("model");
    folder_.write("model/tokenizer.json", corpora::tiny_tokenizer_json());
  }
  void add_template() {
    folder_.write("model/tokenizer_config.json", R"({"eos_token": {"content": "<|im_end|>"}, "chat_template":
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"})");
  }
  Outcome tokenize(const std::vector<std::string>& inputs, const std::string& output,
                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"data", "tokenize", "--tokenizer",
                                      model_, "--output", folder_.path(output)};
    words.push_back("--input");
    for (const std::string& input : inputs) words.push_back(input);
    words.insert(words.end(), more.begin(), more.end());
    return run_plimsoll(words);
  }
  std::vector<int32_t> npy(const std::string& name) {
    const auto source = datasets::TokenSource::open(folder_.path(name), 1000);
    EXPECT_TRUE(source) << source.error().message();
    std::vector<int32_t> ids(static_cast<size_t>(source->num_tokens()));
    std::vector<std::byte> scratch(4096);
    EXPECT_TRUE(source->read(0, ids, scratch));
    return ids;
  }
  std::vector<int32_t> ids(std::string_view text) {
    std::vector<int32_t> out;
    EXPECT_TRUE(corpora::tiny_tokenizer()->encode(text, false, out));
    return out;
  }
  io::TemporaryFolder folder_;
  std::string model_;
};

TEST_F(DataTokenize, WritesArrays) {
  const std::string a = folder_.write("a.txt", "hello w\n"), b = folder_.write("b.txt", "lo<|im_end|>");
  const Outcome outcome = tokenize({a, b}, "out.npy", {"--threads", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(npy("out.npy"), ids("hello w\nlo<|im_end|>"));
  for (const char* line : {"files      2\n", "documents  2\n", "tokens     6 of a vocabulary of 264\n"})
    EXPECT_THAT(outcome.out, HasSubstr(line));
  const Outcome ended = tokenize({folder_.path("?.txt")}, "out.npy", {"--append-eos"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(npy("out.npy"), ids("hello w\n<|endoftext|>lo<|im_end|><|endoftext|>"));
  model_ += "/tokenizer.json";
  EXPECT_EQ(tokenize({a}, "out.npy", {"--eos-token", "he"}).code, 0);
  EXPECT_EQ(npy("out.npy").back(), 256);
}

TEST_F(DataTokenize, WritesShardsWithDocumentsAndTargets) {
  add_template();
  const std::string lines =
      folder_.write("a.jsonl",
                    "{\"text\": \"hello\"}\n{\"prompt\": \"he\", \"completion\": \" w\"}\n"
                    "{\"messages\": [{\"role\": \"user\", \"content\": \"he\"}, {\"role\": \"assistant\", "
                    "\"content\": \"lo\"}]}\n");
  const Outcome outcome = tokenize({lines}, "out.shard", {"--json", "--append-eos"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto event = io::parse_json(outcome.out);
  ASSERT_TRUE(event) << outcome.out;
  EXPECT_EQ(event->find("event")->text, "tokenize");
  EXPECT_EQ(event->find("format")->text, "shard");
  EXPECT_EQ(event->find("documents")->integer, 3);
  const auto shard = datasets::Shard::open(folder_.path("out.shard"));
  ASSERT_TRUE(shard) << shard.error().message();
  ASSERT_TRUE(shard->verify());
  EXPECT_TRUE(shard->info().has_mask);
  EXPECT_EQ(shard->info().num_documents, 3);
  EXPECT_EQ(shard->info().vocabulary_hash, corpora::tiny_tokenizer()->vocabulary_hash());
  EXPECT_EQ(shard->info().num_tokens, event->find("tokens")->integer);
  std::vector<int32_t> tokens(static_cast<size_t>(shard->info().num_tokens));
  std::vector<uint8_t> in_loss(tokens.size());
  std::vector<std::byte> scratch(static_cast<size_t>(shard->block_bytes()));
  ASSERT_TRUE(shard->read(0, tokens, in_loss, scratch));
  EXPECT_EQ(tokens, ids("hello<|im_end|>he w<|im_end|><|im_start|>user\nhe<|im_end|>\n"
                        "<|im_start|>assistant\nlo<|im_end|>\n"));
  std::vector<int32_t> targets;
  for (size_t i = 0; i < tokens.size(); ++i)
    if (in_loss[i] == 1) targets.push_back(tokens[i]);
  EXPECT_EQ(targets, ids("hello<|im_end|> w<|im_end|>lo<|im_end|>\n"));
  EXPECT_EQ(event->find("targets")->integer, static_cast<int64_t>(targets.size()) - 1)
      << "the text's first token is in the loss, but nothing predicts it";
  EXPECT_EQ(event->find("targets")->integer, shard->info().num_targets);
  const Outcome array = tokenize({lines}, "out.npy");
  EXPECT_THAT(array.err, HasSubstr("note: an .npy file has no loss mask"));
}

TEST_F(DataTokenize, NamesThatAreNoTextStayValidJson) {
  const std::string text = folder_.write("a\xff.txt", "hello");
  const Outcome outcome = tokenize({text}, "out\xe4\xbd.shard", {"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<io::Tree> events = objects(outcome.out);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].find("output")->text, folder_.path("out\uFFFD.shard"));
  const Outcome inspected = run_plimsoll({"data", "inspect", folder_.path("out\xe4\xbd.shard"), "--json"});
  ASSERT_EQ(inspected.code, 0) << inspected.err;
  const std::vector<io::Tree> shown = objects(inspected.out);
  ASSERT_EQ(shown.size(), 2U) << inspected.out;
  EXPECT_EQ(shown[0].find("files")->items[0].find("path")->text, folder_.path("out\uFFFD.shard"));
  EXPECT_EQ(shown[1].find("path")->text, folder_.path("out\uFFFD.shard"));
}

TEST_F(DataTokenize, CountsWhatItPassesOver) {
  const std::string lines =
      folder_.write("a.jsonl", "{\"text\": \"hello\"}\n{\"text\": 1}\nx\n{\"text\": \"\"}\n");
  const Outcome failed = tokenize({lines}, "out.shard");
  EXPECT_EQ(failed.code, 65);
  EXPECT_THAT(failed.out, IsEmpty());
  EXPECT_THAT(failed.err,
              HasSubstr("error: \"text\" is a number, expected a string: " + lines + ": line 2\nhint: "));
  EXPECT_EQ(folder_.num_files(), 2U) << "nothing is left behind";
  const Outcome passed = tokenize({lines}, "out.shard", {"--on-error", "skip"});
  ASSERT_EQ(passed.code, 0) << passed.err;
  EXPECT_THAT(passed.out, HasSubstr("documents  1, and 1 without a token, left out\n"));
  EXPECT_THAT(passed.out, HasSubstr("skipped    1 (not JSON)\n           1 (wrong type)\n"));
  const auto event = io::parse_json(tokenize({lines}, "out.shard", {"--on-error", "skip", "--json"}).out);
  ASSERT_TRUE(event);
  EXPECT_EQ(io::to_json(*event->find("skipped")), R"({"not JSON": 1, "wrong type": 1})");
}

TEST_F(DataTokenize, RefusesWhatCannotBe) {
  const std::string text = folder_.write("a.txt", "hello");
  const std::string chat = folder_.write("c.jsonl", R"({"messages": [{"role": "user", "content": "a"}]})");
  const std::string empty = folder_.write("e.jsonl", R"({"text": ""})");
  struct Row {
    std::vector<std::string> inputs, more;
    int code;
    const char* text;
  };
  const Row rows[] = {
      {{folder_.path("absent.txt")}, {}, 65, "there is no such file"},
      {{folder_.path("*.none")}, {}, 65, "no file matches the pattern"},
      {{chat}, {}, 65, "line 1"},
      {{empty}, {}, 65, "nothing to write"},
      {{text}, {"--loss", "none"}, 2, "--loss"},
      {{text}, {"--threads", "0"}, 2, "--threads"},
      {{text}, {"--append-eos", "--eos-token", "</none>"}, 65, "no token '</none>'"},
      {{text}, {"--chat-template", folder_.path("absent.jinja")}, 65, "absent.jinja"},
  };
  for (const Row& row : rows) {
    const Outcome outcome = tokenize(row.inputs, "out.shard", row.more);
    EXPECT_EQ(outcome.code, row.code) << row.text;
    EXPECT_THAT(outcome.out, IsEmpty()) << row.text;
    EXPECT_THAT(outcome.err, HasSubstr(row.text));
    EXPECT_THAT(outcome.err, HasSubstr("hint: "));
  }
  const Outcome onto = tokenize({text}, "a.txt");
  EXPECT_EQ(onto.code, 2);
  const Outcome nowhere = tokenize({text}, "absent/out.npy");
  EXPECT_EQ(nowhere.code, 74);
  EXPECT_EQ(run_plimsoll({"data"}).code, 2);
  const Outcome help = run_plimsoll({"data", "tokenize", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("examples:"));
}

}  // namespace
}  // namespace plimsoll::cli
