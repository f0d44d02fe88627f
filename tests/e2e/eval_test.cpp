// plimsoll eval as its user stops it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"
#include "io/json.h"

namespace plimsoll::e2e {
namespace {

TEST(Eval, ASignalEndsItBetweenBatches) {
  const Folder folder;
  folder.write("run.yaml", run_file());
  folder.write("eval.txt", some_text(20'000'000));  // minutes
  const std::string command =
      "cd '" + folder.path() +
      "' && ( '" PLIMSOLL_BINARY
      "' eval run.yaml --json >out.txt 2>err.txt & p=$!; i=0; "
      "while [ $i -lt 1000 ] && ! grep -q plan out.txt; do i=$((i + 1)); sleep 0.01; done; "
      "kill -TERM $p; wait $p )";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 75) << folder.read("err.txt");
  EXPECT_THAT(folder.read("err.txt"), testing::HasSubstr("error: stopped by SIGTERM"));
  EXPECT_THAT(folder.read("err.txt"), testing::HasSubstr("hint: run the same command again"));
  EXPECT_THAT(folder.read("out.txt"), testing::Not(testing::HasSubstr("\"event\": \"eval\"")));
}

/// Of weights so large that activations leave fp16. The result stands on stdout all the same.
TEST(Eval, ALossThatIsNotFiniteIsToldApartByItsExitCode) {
  const Folder folder;
  folder.write("run.yaml", run_file());
  folder.write("eval.txt", some_text(2000));
  const std::string command = "eval run.yaml model.config.initializer_range=100 training.precision=";
  const Outcome lost = folder.run(command + "fp16");
  EXPECT_EQ(lost.exit_code, 76) << lost.err;
  EXPECT_THAT(lost.out, testing::HasSubstr("\nloss nan, perplexity nan over "));
  EXPECT_THAT(lost.err, testing::HasSubstr("error: the loss is nan\nhint: activations may exceed 65504"));
  const Outcome json = folder.run(command + "fp16 --json");
  EXPECT_EQ(json.exit_code, 76) << json.err;
  EXPECT_THAT(json.out, testing::HasSubstr("\"event\": \"eval\""));
  EXPECT_EQ(folder.run(command + "bf16").exit_code, 0);
}

/// eval_strategy as in transformers; without it a run with held-out data evaluates after its last step.
TEST(EvalStrategy, SaysWhenTrainingEvaluates) {
  const Folder folder;
  folder.write("train.txt", some_text(5'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml",
               run_file() + "training: {global_batch_size: 2, max_steps: 4, learning_rate: 1.0e-3}\n");
  const auto evaluations = [&](const std::string& overrides) {
    const Outcome outcome = folder.run("train run.yaml --json --resume never " + overrides);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    size_t count = 0;
    for (size_t at = 0; (at = outcome.out.find("\"event\": \"eval\"", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  EXPECT_EQ(evaluations(""), 1U);
  EXPECT_EQ(evaluations("eval_strategy=no"), 0U);
  EXPECT_EQ(evaluations("eval_strategy=steps logging_steps=2"), 2U);
  EXPECT_EQ(evaluations("eval_strategy=steps eval_steps=1"), 4U);
  EXPECT_EQ(evaluations("eval_strategy=epoch save_strategy=epoch load_best_model_at_end=true "
                        "training.max_steps=null training.num_epochs=3 training.global_batch_size=7"),
            3U);
  const Outcome plan = folder.run("plan run.yaml --json eval_strategy=no");
  EXPECT_THAT(plan.out, testing::Not(testing::HasSubstr("\"eval\"")));
}

/// Events of a kind, in order.
std::vector<io::Tree> eval_events(const std::string& out) {
  std::vector<io::Tree> events;
  for (size_t begin = 0, end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    auto event = io::parse_json(std::string_view(out).substr(begin, end - begin));
    if (event && event->find("event")->text == "eval") events.push_back(std::move(*event));
  }
  return events;
}

/// Each set's loss is that of the set alone; all of them together weigh by their targets.
TEST(EvalSets, AreEvaluatedEach) {
  const Folder folder;
  folder.write("train.txt", some_text(5'000));
  folder.write("a.txt", some_text(900));
  folder.write("b.txt", "other words entirely, of which there are not so many: " + some_text(300));
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 2, eval_steps: 1}\n"));
  const std::string sets = "'data.eval={first: a.txt, second: [b.txt]}' ";
  const std::string best =
      "output.save_steps=1 load_best_model_at_end=true metric_for_best_model=eval_second_loss ";
  const Outcome run = folder.run("train run.yaml --json " + best + sets);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<io::Tree> events = eval_events(run.out);
  ASSERT_EQ(events.size(), 6U) << run.out;
  EXPECT_EQ(events[3].find("name")->text, "first");
  EXPECT_EQ(events[4].find("name")->text, "second");
  EXPECT_EQ(events[5].find("name"), nullptr);
  const io::Tree* sources = events[5].find("sources");
  ASSERT_NE(sources, nullptr);
  double sum = 0;
  for (const size_t i : {3U, 4U}) {
    const io::Tree* part = sources->find(events[i].find("name")->text);
    ASSERT_NE(part, nullptr);
    EXPECT_EQ(part->find("loss")->number, events[i].find("loss")->number);
    sum += part->find("loss")->number * static_cast<double>(part->find("targets")->integer);
  }
  EXPECT_NEAR(events[5].find("loss")->number, sum / static_cast<double>(events[5].find("targets")->integer),
              1e-12);
  EXPECT_THAT(run.out, testing::HasSubstr("\"best_metric\": \"eval_second_loss\""));
  const std::string model = "model.config=null model.init=auto model.path=out/checkpoint-2 ";
  for (const auto& [file, index] : {std::pair{"a.txt", 3U}, {"b.txt", 4U}}) {
    const Outcome alone = folder.run("eval run.yaml --json " + model + "data.eval=" + file);
    ASSERT_EQ(alone.exit_code, 0) << alone.err;
    EXPECT_EQ(eval_events(alone.out).at(0).find("loss")->number, events[index].find("loss")->number);
  }
  const Outcome both = folder.run("eval run.yaml " + model + sets);
  EXPECT_THAT(both.out, testing::HasSubstr("second: loss "));
}

/// What is held out of a mixture is told by source.
TEST(EvalSets, OfAMixtureAreItsSources) {
  const Folder folder;
  std::string a, b;
  for (int i = 0; i < 60; ++i) {
    a += R"({"text": ")" + some_text(40 + i) + "\"}\n";
    b += R"({"text": "quite other words, )" + some_text(20 + i) + "\"}\n";
  }
  folder.write("a.jsonl", a);
  folder.write("b.jsonl", b);
  folder.write("book.txt", some_text(4000));
  ASSERT_EQ(
      folder
          .run(
              "data tokenizer --input book.txt --vocab-size 257 --special-token '<|endoftext|>' --output tok")
          .exit_code,
      0);
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 1}\n"));
  const Outcome run = folder.run(
      "train run.yaml --json data.eval=[] 'data.train=[a.jsonl, b.jsonl]' 'data.weights=[3, 1]' "
      "data.eval_fraction=0.3 data.tokenizer=tok");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::vector<io::Tree> events = eval_events(run.out);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].find("name")->text, "a.jsonl");
  EXPECT_NE(events[2].find("sources")->find("b.jsonl"), nullptr);
}

}  // namespace
}  // namespace plimsoll::e2e
