// inspect and data inspect on files of tokens, as their user calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "cli/run_plimsoll.h"
#include "corpora/tiny_tokenizer.h"
#include "datasets/shard.h"
#include "io/json.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Documents of the given lengths; every third token is not in the loss.
std::string write_shard(const std::string& path, const std::vector<int>& lengths, uint64_t vocabulary_hash) {
  auto writer = datasets::ShardWriter::create(path, {300, vocabulary_hash, true});
  EXPECT_TRUE(writer);
  for (const int length : lengths) {
    std::vector<int32_t> ids;
    std::vector<uint8_t> in_loss;
    for (int i = 0; i < length; ++i) {
      ids.push_back(i % 300);
      in_loss.push_back(i % 3 == 0 ? 0 : 1);
    }
    EXPECT_TRUE(writer->add(ids, in_loss));
  }
  EXPECT_TRUE(writer->finish());
  return path;
}

TEST(InspectShard, TellsWhatIsInIt) {
  const io::TemporaryFolder folder;
  const std::string path = write_shard(folder.path("a"), {3, 30, 300}, 0xab);
  const Outcome people = run_plimsoll({"inspect", path});
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_THAT(people.out, HasSubstr("tokens      333, ids of 2 bytes"));
  EXPECT_THAT(people.out, HasSubstr("targets     222 (66.7 % of the tokens"));
  EXPECT_THAT(people.out, HasSubstr("hash 00000000000000ab"));
  EXPECT_THAT(people.out, HasSubstr("checked     every byte"));
  EXPECT_THAT(people.out, HasSubstr("256 to 511"));
  const auto json = objects(run_plimsoll({"inspect", path, "--json"}).out);
  ASSERT_EQ(json.size(), 1U);
  EXPECT_EQ(json[0].find("documents")->integer, 3);
  EXPECT_EQ(json[0].find("lengths")->find("p50")->integer, 30);
}

TEST(InspectShard, DamageIsSaidAfterWhatIsKnown) {
  const io::TemporaryFolder folder;
  const std::string path = write_shard(folder.path("a"), {3, 30, 300}, 0xab);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(200).put('\x55');
  const Outcome output = run_plimsoll({"inspect", path});
  EXPECT_EQ(output.code, 65);
  EXPECT_THAT(output.out, HasSubstr("damaged"));
  EXPECT_THAT(output.err, HasSubstr("block 0 (tokens 0 to 332) does not match its checksum"));
}

TEST(DataInspect, CountsSamplesAndPacking) {
  const io::TemporaryFolder folder;
  const std::string a = write_shard(folder.path("a"), {3, 30, 300, 7, 7}, 0xab);
  const Outcome people = run_plimsoll({"data", "inspect", a, "--samples", "2", "--sequence-length", "64"});
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_THAT(people.out, HasSubstr("document 2 of 5"));
  EXPECT_THAT(people.out, HasSubstr("[0] 1 2[ 3] 4 5"));
  EXPECT_THAT(people.out, HasSubstr("best_fit"));
  const auto json = objects(run_plimsoll({"data", "inspect", a, "--json", "--sequence-length", "64"}).out);
  ASSERT_EQ(json.size(), 4U) << "the data and three samples";
  EXPECT_EQ(json[0].find("tokens")->integer, 347);
  EXPECT_EQ(json[0].find("packing")->items.size(), 3U);
  EXPECT_EQ(json[1].find("document")->integer, 0);
  EXPECT_EQ(json[1].find("in_loss")->items.size(), 3U);
}

/// Inspects in a process of its own, which is told to stop when it has begun to pack; its wait status.
int stopped_while_packing(const std::string& path, const std::string& scratch) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TMPDIR", scratch.c_str(), 1);
    ::_exit(run_plimsoll({"data", "inspect", path, "--sequence-length", "64"}).code);
  }
  int status = 0;
  while (std::filesystem::is_empty(scratch))
    if (::waitpid(child, &status, WNOHANG) != 0) return status;  // it was through too soon
  ::kill(child, SIGTERM);
  ::waitpid(child, &status, 0);
  return status;
}

TEST(DataInspect, ASignalLeavesNoScratchBehind) {
  const io::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("tmp"));
  const std::string path = write_shard(folder.path("a"), std::vector<int>(300'000, 2), 0);
  int code = 0;
  for (int attempt = 0; attempt < 5 && code == 0; ++attempt) {
    const int status = stopped_while_packing(path, folder.path("tmp"));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path("tmp")));
    ASSERT_TRUE(WIFEXITED(status));
    code = WEXITSTATUS(status);
  }
  EXPECT_EQ(code, 75);
}

TEST(DataInspect, WhatAFileHoldsGoesBeforeItsName) {
  const io::TemporaryFolder folder;
  const std::string path = write_shard(folder.path("a.txt"), {3, 30}, 0xab);
  const Outcome output = run_plimsoll({"data", "inspect", path});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("token shard"));
}

TEST(DataInspect, ReadsTextsAsBytes) {
  const io::TemporaryFolder folder;
  const std::string text = folder.write("a.txt", "hello\nw\xc3\xb6rld \xff");
  const Outcome output = run_plimsoll({"data", "inspect", text});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("hello"));
  EXPECT_THAT(output.out, HasSubstr("w\xc3\xb6rld \\xff"));
  EXPECT_THAT(output.out, Not(HasSubstr("is not in the loss")));
  const auto json = objects(run_plimsoll({"data", "inspect", text, "--json"}).out);
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[1].find("text")->text, "hello\nw\xc3\xb6rld \xef\xbf\xbd");
}

/// A ChatML tokenizer with a template, and an end of text.
std::string tokenizer_folder(const io::TemporaryFolder& folder) {
  std::filesystem::create_directories(folder.path("tok"));
  folder.write("tok/tokenizer.json", corpora::tiny_tokenizer_json());
  folder.write("tok/tokenizer_config.json", R"({"eos_token": "<|endoftext|>"})");
  folder.write(
      "tok/chat_template.jinja",
      "{% for m in messages %}{{ '<|im_start|>' + m.role + ':' + m.content + '<|im_end|>' }}{% endfor %}"
      "{% if add_generation_prompt %}{{ '<|im_start|>assistant:' }}{% endif %}");
  return folder.path("tok");
}

constexpr const char* kLines =
    R"({"messages": [{"role": "user", "content": "he"}, {"role": "assistant", "content": "lo"}]}
{"prompt": "say he", "completion": "llo w"}
{"text": "hello"}
)";

TEST(DataInspect, ShowsWhatOfLinesIsInTheLoss) {
  const io::TemporaryFolder folder;
  const std::string tokenizer = tokenizer_folder(folder);
  const std::string lines = folder.write("a.jsonl", kLines);
  const std::vector<std::string> call = {"data", "inspect", lines, "--tokenizer", tokenizer};
  const Outcome people = run_plimsoll(call);
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_THAT(people.out, HasSubstr("a.jsonl"));
  EXPECT_THAT(people.out, HasSubstr("JSON lines"));
  EXPECT_THAT(people.out, HasSubstr("[<|im_start|>user:he<|im_end|><|im_start|>assistant:]lo<|im_end|>"));
  EXPECT_THAT(people.out, HasSubstr("[say ]hello w<|endoftext|>"));
  EXPECT_THAT(people.err, HasSubstr("in 1 example the prompt ends inside a token"));
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), call.begin(), call.end());
    more.emplace_back("--json");
    const Outcome told = run_plimsoll(more);
    EXPECT_EQ(told.code, 0) << told.err;
    return objects(told.out);
  };
  const auto json = with({});
  ASSERT_EQ(json.size(), 4U);
  EXPECT_EQ(json[0].find("split_prompts")->integer, 1);
  EXPECT_EQ(json[0].find("files")->items[0].find("path")->text, lines);
  EXPECT_EQ(json[2].find("text")->text, "say hello w<|endoftext|>");
  EXPECT_EQ(json[3].find("text")->text, "hello");
  EXPECT_EQ(with({"--append-eos", "trl"})[3].find("text")->text, "hello<|endoftext|>");
  const auto all = with({"--loss", "trl"});
  EXPECT_EQ(all[0].find("targets")->integer - json[0].find("targets")->integer,
            all[1].find("tokens")->integer - 1 - 2)
      << "all of the conversation but its first token; it had two targets";
  EXPECT_EQ(with({"--max-documents", "2"})[0].find("documents")->integer, 2);
  EXPECT_EQ(with({"--sequence-length", "8"})[0].find("packing")->items.size(), 3U);
}

TEST(DataInspect, TakesAllOfARunFile) {
  const io::TemporaryFolder folder;
  const std::string tokenizer = tokenizer_folder(folder);
  folder.write("b.txt", "hello");
  const std::string run = folder.write(
      "run.yaml", "model: {preset: gpt2}\ndata: {train: [" + folder.write("a.jsonl", kLines) + ", " +
                      folder.path("b.txt") + "], tokenizer: " + tokenizer + ", append_eos: true}\n");
  const auto json = objects(run_plimsoll({"data", "inspect", "--run", run, "--json"}).out);
  ASSERT_EQ(json.size(), 4U);
  EXPECT_EQ(json[0].find("files")->items.size(), 2U);
  EXPECT_EQ(json[0].find("documents")->integer, 4);
  EXPECT_EQ(json[0].find("files")->items[1].find("kind")->text, "text");
  EXPECT_EQ(json[0].find("files")->items[1].find("tokens")->integer, 3);
}

TEST(DataInspect, Refusals) {
  const io::TemporaryFolder folder;
  const Outcome other = run_plimsoll({"data", "inspect", folder.write("a.md", "# text")});
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("neither a token shard nor"));
  EXPECT_EQ(run_plimsoll({"data", "inspect", folder.path("none")}).code, 65);
  EXPECT_THAT(run_plimsoll({"data", "inspect"}).err, HasSubstr("no file is named"));
  const Outcome lines = run_plimsoll({"data", "inspect", folder.write("a.jsonl", "{}")});
  EXPECT_EQ(lines.code, 2);
  EXPECT_THAT(lines.err, HasSubstr("no tokenizer is named"));
  const Outcome packing =
      run_plimsoll({"data", "inspect", folder.write("a.txt", "abc"), "--sequence-length", "2"});
  EXPECT_THAT(packing.err, HasSubstr("only token shards are packed"));
}

}  // namespace
}  // namespace plimsoll::cli
