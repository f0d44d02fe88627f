// From training to text: the final folder of a run generates, the same in any batch and with any number of
// threads, within its plan; and what goes wrong says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "io/json.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

/// A model of bytes, trained for a few steps once for all tests.
const Folder& trained() {
  static const Folder* folder = [] {
    auto* f = new Folder();
    f->write("train.txt", some_text(20'000));
    f->write("eval.txt", some_text(700));
    f->write("run.yaml",
             run_file() + "training: {global_batch_size: 2, max_steps: 12, learning_rate: 1.0e-2}\n");
    const Outcome outcome = f->run("train run.yaml");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return f;
  }();
  return *folder;
}

Outcome generate(const std::string& arguments) {
  return trained().run("generate --model out/final " + arguments);
}

std::vector<io::Tree> generated_events(const std::string& out) {
  std::vector<io::Tree> result;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    auto event = io::parse_json(line);
    EXPECT_TRUE(event.ok()) << line;
    if (event) result.push_back(std::move(*event));
  }
  return result;
}

TEST(Generate, WritesTextToStdoutAndFiguresToStderr) {
  const Outcome outcome = generate("--prompt 'the ship ' --max-new-tokens 40");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(outcome.out.size(), 1U);
  EXPECT_EQ(outcome.out.back(), '\n');
  EXPECT_NE(outcome.err.find("plan: "), std::string::npos);
  EXPECT_NE(outcome.err.find("decode "), std::string::npos);
  EXPECT_EQ(generate("--prompt 'the ship ' --max-new-tokens 40 --threads 1").out, outcome.out);
  EXPECT_EQ(generate("--prompt 'the ship ' --max-new-tokens 40 --no-stream --threads 3").out, outcome.out);
}

TEST(Generate, ADrawIsThatOfItsSeedInAnyBatch) {
  trained().write("prompts.txt", "the ship\nis\n\nto her line. the ship is loaded\nx\n");
  const std::string drawn = "--prompts prompts.txt --temperature 1.3 --top-p 0.9 --max-new-tokens 30";
  const Outcome outcome = generate(drawn);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("==> 4: x <==\n"), std::string::npos);
  EXPECT_EQ(generate(drawn + " --batch-size 1").out, outcome.out);
  EXPECT_EQ(generate(drawn + " --batch-size 3 --threads 1").out, outcome.out);
  EXPECT_NE(generate(drawn + " --seed 7").out, outcome.out);
}

TEST(Generate, TellsMachinesInJson) {
  const Outcome outcome = generate("--prompt 'the ship' --prompt-ids 104,105 --max-new-tokens 20 --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<io::Tree> lines = generated_events(outcome.out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].find("event")->text, "plan");
  EXPECT_GT(lines[0].find("classes")->find("kv_cache")->integer, 0);
  EXPECT_EQ(lines[1].find("prompt")->text, "the ship");
  EXPECT_EQ(lines[2].find("prompt")->text, "hi");
  EXPECT_EQ(lines[1].find("ids")->items.size(), 20U);
  EXPECT_EQ(lines[1].find("new_tokens")->integer, 20);
  EXPECT_EQ(io::to_json(*lines[1].find("tokens")), io::to_json(*lines[1].find("ids")));
  EXPECT_EQ(lines[1].find("finish_reason")->text, "length");
  EXPECT_GT(lines[1].find("tokens_per_second")->number, 0);
  const io::Tree& summary = lines[3];
  EXPECT_EQ(summary.find("new_tokens")->integer, 40);
  EXPECT_EQ(summary.find("allocations_after_first_token")->integer, 0);
  EXPECT_LE(summary.find("measured_peak_bytes")->integer, summary.find("planned_peak_bytes")->integer);
}

TEST(Generate, InBf16TakesHalfTheMemory) {
  const std::string arguments = "--prompt 'the ship is' --prompt is --max-new-tokens 30 --json";
  const std::vector<io::Tree> fp32 = generated_events(generate(arguments).out);
  const Outcome outcome = generate(arguments + " --dtype bf16");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<io::Tree> bf16 = generated_events(outcome.out);
  for (const char* name : {"parameters", "kv_cache"})
    EXPECT_EQ(2 * bf16[0].find("classes")->find(name)->integer, fp32[0].find("classes")->find(name)->integer);
  EXPECT_LE(bf16[3].find("measured_peak_bytes")->integer, bf16[3].find("planned_peak_bytes")->integer);
  const auto again = generated_events(generate(arguments + " --dtype bf16 --batch-size 1 --threads 1").out);
  for (const size_t i : {1, 2})
    EXPECT_EQ(io::to_json(*again[i].find("tokens")), io::to_json(*bf16[i].find("tokens")));
}

TEST(Generate, FillsTheModelsPositionsByDefaultAndNotBeyond) {
  const std::string prompt(390, 'a');  // of 400 positions
  const Outcome by_default = generate("--json --prompt " + prompt);
  ASSERT_EQ(by_default.exit_code, 0) << by_default.err;
  EXPECT_EQ(generated_events(by_default.out)[1].find("new_tokens")->integer, 11);
  const Outcome beyond = generate("--max-new-tokens 12 --prompt " + prompt);
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_NE(beyond.err.find("a prompt of 390 tokens and 12 new ones exceed the model's 400 positions"),
            std::string::npos)
      << beyond.err;
  EXPECT_EQ(generate("--prompt " + prompt + prompt).exit_code, 2);
}

// The model of bytes with a template of its own: what a chat says is what its messages say at once.
TEST(Generate, Chats) {
  trained().write("t.jinja",
                  "{% for m in messages %}{{ m.role[0] }}: {{ m.content }}\n{% endfor %}"
                  "{% if add_generation_prompt %}a: {% endif %}");
  const std::string chat = "--chat-template t.jinja --system 'the ship' --max-new-tokens 12 --json";
  trained().write("turns.txt", "is it loaded\n\nto \\\nher line\n/clear\nx\n/exit\nnever\n");
  const Outcome outcome = trained().run("generate --model out --chat --context 200 " + chat, "", "turns.txt");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<io::Tree> turns = generated_events(outcome.out);
  ASSERT_EQ(turns.size(), 5U);
  EXPECT_EQ(turns[2].find("prompt")->text, "to \nher line");
  EXPECT_LE(turns[4].find("measured_peak_bytes")->integer, turns[4].find("planned_peak_bytes")->integer);
  const auto user = [](const std::string& text) {
    return io::Tree::map({{"role", io::Tree::of(std::string("user"))}, {"content", io::Tree::of(text)}});
  };
  std::vector<io::Tree> messages{
      user("is it loaded"),
      io::Tree::map({{"role", io::Tree::of(std::string("assistant"))}, {"content", *turns[1].find("text")}}),
      user("to \nher line")};
  trained().write("m.jsonl", io::to_json(io::Tree::map({{"messages", io::Tree::list({messages[0]})}})) +
                                 "\n" + io::to_json(io::Tree::map({{"messages", io::Tree::list(messages)}})) +
                                 "\n" + R"({"prompt": "x"})");
  const Outcome at_once = trained().run("generate --model out --messages - " + chat, "", "m.jsonl");
  ASSERT_EQ(at_once.exit_code, 0) << at_once.err;
  const std::vector<io::Tree> answers = generated_events(at_once.out);
  ASSERT_EQ(answers.size(), 5U);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(io::to_json(*turns[i].find("tokens")), io::to_json(*answers[i].find("tokens"))) << i;
    EXPECT_EQ(turns[i].find("prompt_tokens")->integer, answers[i].find("prompt_tokens")->integer) << i;
  }
}

TEST(Generate, AnOverlongChatLeavesItsBeginningOut) {
  trained().write("t.jinja", "{% for m in messages %}{{ m.content }}\n{% endfor %}");
  trained().write("turns.txt", "one\ntwo\nthree\nfour\n" + std::string(90, 'x') + "\n");
  const Outcome outcome =
      trained().run("generate --model out --chat --chat-template t.jinja --context 60 --max-new-tokens 15",
                    "", "turns.txt");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("left out"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("a turn of 91 tokens leaves no room"), std::string::npos) << outcome.err;
}

TEST(Generate, StopsAtTexts) {
  const std::string arguments =
      "--prompt 'the ship ' --max-new-tokens 40 --ignore-eos --top-k 5 --temperature 2";
  const std::string all = generate(arguments).out;
  size_t at = 1;  // of three letters that come for the first time, behind others
  while (all.find(all.substr(at, 3)) < at) ++at;
  const std::string stop = all.substr(at, 3), text = all.substr(0, at);
  const std::string stopping = arguments + " --stop nowhere --stop '" + stop + "'";
  const Outcome streamed = generate(stopping), json = generate(stopping + " --json");
  EXPECT_EQ(streamed.out, text + "\n") << streamed.err;
  const std::vector<io::Tree> lines = generated_events(json.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].find("text")->text, text);
  EXPECT_EQ(lines[1].find("finish_reason")->text, "stop");
  EXPECT_EQ(lines[1].find("stopped_by")->text, "text");
  EXPECT_EQ(lines[1].find("tokens")->items.size(), text.size() + 3);
}

/// Starts generating for many prompts, sends `signal` once the plan and a batch have been told; the exit code
/// as a shell gives it.
int interrupted(int signal, const std::string& file) {
  std::filesystem::remove(trained().path(file));  // an earlier run's lines would end the wait at once
  const pid_t child = ::fork();
  if (child == 0) {
    const bool ready = ::chdir(trained().path().c_str()) == 0 &&
                       std::freopen(file.c_str(), "w", stdout) != nullptr &&
                       std::freopen("figures.txt", "w", stderr) != nullptr;
    if (ready)
      ::execl(PLIMSOLL_BINARY, "plimsoll", "generate", "--model", "out/final", "--prompts", "many.txt",
              "--batch-size", "2", "--json", "--ignore-eos", nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && std::ranges::count(trained().read(file), '\n') < 3; ++i) ::usleep(10'000);
  ::kill(child, signal);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Generate, ASignalEndsItWithWhatThereIs) {
  std::string many;
  for (int i = 0; i < 20'000; ++i) many += "the ship is loaded\n";
  trained().write("many.txt", many);
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string file = "events-" + std::to_string(signal);
    std::string reason;
    // A signal between two batches cuts no text short.
    for (int attempt = 0; attempt < 10 && reason != "interrupted"; ++attempt) {
      EXPECT_EQ(interrupted(signal, file), 128 + signal);
      const std::vector<io::Tree> lines = generated_events(trained().read(file));
      ASSERT_GE(lines.size(), 3U);
      EXPECT_LT(lines.size(), 20'000U);
      EXPECT_EQ(lines.back().find("event")->text, "summary");
      reason = lines[lines.size() - 2].find("finish_reason")->text;
    }
    EXPECT_EQ(reason, "interrupted");
  }
}

TEST(Generate, RefusesWithCodeAndHint) {
  const std::pair<const char*, std::pair<int, const char*>> cases[] = {
      {"--model out/final", {2, "there is no prompt"}},
      {"--model out/final --prompt ''", {2, "the prompt is empty"}},
      {"--model out/final --prompt a --memory-budget 1MiB", {69, "--memory-budget"}},
      {"--model out/final --prompt a --memory-budget some", {2, "--memory-budget is 'some'"}},
      {"--model out/final --prompt a --dtype fp8", {2, "--dtype"}},
      {"--model out/final --chat --chat-template t.jinja --memory-budget 1MiB", {69, "--context"}},
      {"--model out/final --prompt a --temperature -1", {2, "--temperature is -1"}},
      {"--model out/final --prompt-ids 259", {2, "the id 259 is not in the model's vocabulary"}},
      {"--model out/final --prompts none.txt", {65, "none.txt"}},
      {"--model out/final --chat", {2, "the model has no chat template"}},
      {"--model stopped --prompt a", {65, "a run's folder without final/"}},
      {"--model nowhere/at/all --prompt a", {65, "nowhere/at/all"}},
      {"--model bare --prompt a", {65, "bare"}},
      {"--prompt a", {2, "--model"}},
  };
  trained().write("t.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  std::filesystem::create_directories(trained().path("bare"));
  std::filesystem::create_directories(trained().path("stopped/checkpoint-20"));
  trained().write("stopped/checkpoint-20/config.json", "{}");
  trained().write("bare/config.json", trained().read("out/final/config.json"));
  for (const auto& [arguments, expected] : cases) {
    const Outcome outcome = trained().run(std::string("generate ") + arguments);
    EXPECT_EQ(outcome.exit_code, expected.first) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(expected.second), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("hint: "), std::string::npos) << arguments;
    EXPECT_TRUE(outcome.out.empty()) << arguments;
  }
}

}  // namespace
}  // namespace plimsoll::e2e
