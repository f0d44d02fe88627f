// Conversations and texts from their files to a trained model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "program.h"
#include "sanitizer.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

/// "word word …", n of them, from position `seed` of the made-up text on.
std::string words(int seed, int n) {
  const std::string text = some_text(6000);
  std::string out;
  size_t at = static_cast<size_t>(seed) * 131 % 5000;
  for (int i = 0; i < n; ++i) {
    const size_t end = text.find(' ', at);
    out += (i == 0 ? "" : " ") + text.substr(at, end - at);
    at = end + 1;
  }
  return out;
}

class TextData : public testing::Test {
 protected:
  /// A model's folder with a tokenizer of its own and a chat template; conversations and texts.
  static void SetUpTestSuite() {
    folder_ = new Folder();
    std::string chats, texts;
    for (int i = 0; i < 60; ++i) {
      chats += R"({"messages": [{"role": "user", "content": ")" + words(i, 2 + i % 9) +
               R"("}, {"role": "assistant", "content": ")" + words(i + 77, 1 + i % 23) + "\"}]}\n";
      texts += R"({"text": ")" + words(3 * i, 1 + i * 7 % 60) + "\"}\n";
    }
    folder_->write("chats.jsonl", chats);
    folder_->write("texts.jsonl", texts);
    folder_->write("book.txt", some_text(20'000));
    const Outcome made = folder_->run(
        "data tokenizer --input texts.jsonl --vocab-size 300 --special-token '<|end|>' --output model");
    ASSERT_EQ(made.exit_code, 0) << made.err;
    folder_->write("model/config.json",
                   R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 300,
                       "hidden_size": 48, "intermediate_size": 70, "num_hidden_layers": 2,
                       "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16,
                       "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "tie_word_embeddings": true})");
    folder_->write("model/chat_template.jinja",
                   "{% for m in messages %}{{ m.role }}: {{ m.content }}<|end|>{% endfor %}"
                   "{% if add_generation_prompt %}assistant: {% endif %}");
    folder_->write("run.yaml",
                   "model: {path: model, init: random}\n"
                   "data: {train: chats.jsonl, sequence_length: 64}\n"
                   "training: {global_batch_size: 4, max_steps: 6, learning_rate: 1.0e-2, lr_scheduler: "
                   "constant}\noutput: {dir: out}\n");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static Outcome train(const std::string& out, const std::string& overrides) {
    return folder_->run("train run.yaml output.dir=" + out + " " + overrides);
  }
  static std::string weights(const std::string& out) {
    return folder_->read(out + "/final/model.safetensors");
  }
  static Folder* folder_;
};
Folder* TextData::folder_ = nullptr;

TEST_F(TextData, TheSameBitsHoweverItIsRead) {
  const Outcome plain = train("plain", "");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr("tokenized 60 documents"));
  EXPECT_THAT(plain.err, HasSubstr("packed 60 documents"));
  const std::string expected = weights("plain");
  ASSERT_GT(expected.size(), 1000U);
  int n = 0;
  for (const char* how : {"training.micro_batch_size=1", "training.micro_batch_size=2 runtime.threads=3",
                          "data.num_workers=3 data.prefetch_factor=1", "data.keep_in_memory=1MiB",
                          "data.num_workers=0", "memory.recompute=none", "memory.recompute=segments",
                          "debug.poison=true", "data.cache_dir=elsewhere", "debug.plan=separate"}) {
    const std::string out = "bits" + std::to_string(n++);
    const Outcome other = train(out, how);
    ASSERT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(weights(out), expected) << how;
  }
  // From a shard that was made by hand.
  const Outcome made = folder_->run("data tokenize --tokenizer model --input chats.jsonl --output c.shard");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome shard = train("shard", "data.train=c.shard data.loss=all");
  ASSERT_EQ(shard.exit_code, 0) << shard.err;
  EXPECT_EQ(weights("shard"), expected);
  EXPECT_THAT(shard.err, HasSubstr("data.loss has no effect on token shards"));
  ASSERT_EQ(train("all", "data.loss=all").exit_code, 0);
  EXPECT_NE(weights("all"), expected) << "the loss' scope";
}

TEST_F(TextData, ThePlanCountsWhatIsKeptInMemory) {
  const Outcome plain = folder_->run("plan run.yaml --json"),
                kept = folder_->run("plan run.yaml --json data.keep_in_memory=64MiB");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  for (const char* of : {"pageable_bytes", "process_peak_bytes"})
    EXPECT_EQ(number(kept.out, of), number(plain.out, of) + (int64_t{64} << 20)) << of;
  const Outcome run = train("kept", "data.keep_in_memory=64MiB --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  if (sanitized()) return;
  EXPECT_LE(number(run.out, "measured_peak_bytes"), number(run.out, "planned_peak_bytes"));
}

TEST_F(TextData, GoesOnWhereItStopped) {
  const std::string data = "'data.train=[chats.jsonl, texts.jsonl]' 'data.weights=[2, 1]' ";
  ASSERT_EQ(train("whole", data).exit_code, 0);
  ASSERT_EQ(train("halves", data + "training.max_steps=3 output.save_steps=3").exit_code, 0);
  const Outcome rest = train("halves", data + "output.save_steps=3");
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("resuming after step 3"));
  EXPECT_THAT(rest.err, Not(HasSubstr("tokenized"))) << "the cache holds it";
  EXPECT_EQ(weights("halves"), weights("whole"));
  const Outcome changed = train("halves", data + "data.packing=pad");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("data.packing"));
}

TEST_F(TextData, OtherDataThanTheCheckpointsIsRefused) {
  folder_->write("own.jsonl", folder_->read("texts.jsonl"));
  ASSERT_EQ(train("own", "data.train=own.jsonl training.max_steps=2 output.save_steps=2").exit_code, 0);
  folder_->write("own.jsonl", folder_->read("texts.jsonl") + "{\"text\": \"one more line of text\"}\n");
  const Outcome changed = train("own", "data.train=own.jsonl output.save_steps=2");
  EXPECT_EQ(changed.exit_code, 2) << changed.err;
}

TEST_F(TextData, HoldsOutDocumentsAndEvaluates) {
  const Outcome run = train("held", "data.eval_fraction=0.3 training.eval_steps=3");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("held out by the train/eval split"));
  EXPECT_THAT(run.err, HasSubstr("eval at step 6"));
  const Outcome alone =
      folder_->run("eval run.yaml model.path=held/final output.dir=held data.eval=texts.jsonl --json");
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_THAT(alone.out, HasSubstr("\"perplexity\""));
}

TEST_F(TextData, TextIsAStreamOfTokensBesideATokenizerAndBytesWithoutOne) {
  const Outcome tokens = train("book", "data.train=book.txt");
  ASSERT_EQ(tokens.exit_code, 0) << tokens.err;
  EXPECT_THAT(tokens.err, HasSubstr("tokenized 1 document"));
  const Outcome made = folder_->run("data tokenize --tokenizer model --input book.txt --output book.npy");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_EQ(train("npy", "data.train=book.npy").exit_code, 0);
  EXPECT_EQ(weights("npy"), weights("book"));
  const Outcome bytes = train("bytes", "data.train=book.txt data.tokenizer=bytes");
  ASSERT_EQ(bytes.exit_code, 0) << bytes.err;
  EXPECT_THAT(bytes.err, Not(HasSubstr("tokenized")));
  EXPECT_NE(weights("bytes"), weights("book"));
}

TEST_F(TextData, ATextThatIsNoneIsNamed) {
  std::string bytes;
  for (uint32_t i = 1; bytes.size() < 9000; i = i * 1664525U + 1013904223U)
    bytes += static_cast<char>(i >> 24);
  folder_->write("noise.txt", bytes);
  for (const char* tokenizer : {"auto", "bytes"}) {
    const Outcome run =
        train("noise", "data.train=noise.txt --resume never training.max_steps=1 data.tokenizer=" +
                           std::string(tokenizer));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("noise.txt is read as text and is hardly one"));
  }
  EXPECT_THAT(train("book", "data.train=book.txt").err, Not(HasSubstr("hardly")));
}

TEST_F(TextData, LossOnAllOfConversationsAsTrlHasIt) {
  ASSERT_EQ(train("trl", "assistant_only_loss=false").exit_code, 0);
  ASSERT_EQ(train("trl-all", "data.loss=all").exit_code, 0);
  EXPECT_EQ(weights("trl"), weights("trl-all"));
}

TEST_F(TextData, TheSameBitsFromOtherKindsOfFiles) {
  const std::string rows = R"({"prompt": "say ", "completion": "hello"}
{"prompt": "a", "completion": "c"}
{"prompt": "b", "completion": "d"}
{"prompt": "a", "completion": "c"}
)";
  folder_->write("rows.jsonl", rows);
  folder_->write("rows.csv", "completion,prompt\r\nhello,\"say \"\r\nc,a\r\nd,b\r\nc,a\r\n");
  const Outcome made = folder_->run(
      "data tokenizer --input texts.jsonl --vocab-size 300 --special-token '<|endoftext|>' --output ends");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Outcome lines = train("from_lines", "data.tokenizer=ends data.train=rows.jsonl");
  ASSERT_EQ(lines.exit_code, 0) << lines.err;
  ASSERT_EQ(train("from_csv", "data.tokenizer=ends data.train=rows.csv").exit_code, 0);
  EXPECT_TRUE(weights("from_csv") == weights("from_lines"));
  ASSERT_EQ(train("unended", "data.tokenizer=ends data.train=rows.csv data.append_eos=false").exit_code, 0);
  EXPECT_FALSE(weights("unended") == weights("from_lines")) << "completions end with the end-of-text token";
  EXPECT_THAT(train("nameless", "data.train=rows.csv").err,
              HasSubstr("the completions of 4 examples have no end"));
  const std::string saved = std::string(PLIMSOLL_TEST_DIR) + "/corpora/columns/saved";
  const Outcome arrow = train("from_arrow", "data.tokenizer=ends data.train=" + saved);
  if (arrow.exit_code == 2 && arrow.err.find("built without") != std::string::npos)
    GTEST_SKIP() << "built without Arrow (tools/columns-env)";
  ASSERT_EQ(arrow.exit_code, 0) << arrow.err;
  EXPECT_TRUE(weights("from_arrow") == weights("from_lines"));
}

TEST_F(TextData, ADayThatTheTemplateWritesIsTheRunsOwn) {
  folder_->write("dated.jinja",
                 "{% for m in messages %}{{ strftime_now('%d %b %Y') }} {{ m.role }}: {{ m.content }}<|end|>"
                 "{% endfor %}");
  const std::string settings = "data.chat_template=dated.jinja output.save_steps=2 ";
  const Outcome first = train("dated", settings + "training.max_steps=2 data.template_date=2024-02-29");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("a date, which is 2024-02-29 in this run (data.template_date)"));
  std::filesystem::remove_all(folder_->path("dated/data"));
  const Outcome later = train("dated", settings);
  ASSERT_EQ(later.exit_code, 0) << later.err;
  EXPECT_THAT(later.err, HasSubstr("resuming after step 2"));
  EXPECT_THAT(later.err, HasSubstr("2024-02-29"));
  ASSERT_EQ(train("dated-whole", settings + "data.template_date=2024-02-29").exit_code, 0);
  EXPECT_TRUE(weights("dated") == weights("dated-whole"));
  const Outcome other = train("dated", settings + "training.max_steps=8 data.template_date=2024-03-01");
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err,
              HasSubstr("data.template_date is 2024-03-01, but the checkpoint was made with 2024-02-29"));
  EXPECT_EQ(train("undated", settings + "data.template_date=2024-02-30").exit_code, 2);
}

TEST_F(TextData, RowsThatArePackedAreTheirDocuments) {
  folder_->write("apart.jsonl", "{\"input_ids\": [5, 6, 7, 8]}\n{\"input_ids\": [9, 10, 11]}\n");
  folder_->write("packed.jsonl",
                 "{\"input_ids\": [5, 6, 7, 8, 9, 10, 11], \"seq_lengths\": [4, 3], \"text\": \"x\"}\n");
  ASSERT_EQ(train("apart", "data.train=apart.jsonl training.global_batch_size=1").exit_code, 0);
  const Outcome packed = train("packed", "data.train=packed.jsonl training.global_batch_size=1");
  ASSERT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_TRUE(weights("apart") == weights("packed"));
  EXPECT_THAT(packed.err, HasSubstr("in 1 example there are \"input_ids\" as well as a text"));
}

TEST_F(TextData, WithoutItsModuleColumnsAreRefusedByName) {
  std::filesystem::copy_file(PLIMSOLL_BINARY, folder_->path("alone"));
  const std::string saved = std::string(PLIMSOLL_TEST_DIR) + "/corpora/columns/";
  const std::string command = "cd " + folder_->path("") + " && ./alone data inspect --tokenizer model ";
  EXPECT_EQ(WEXITSTATUS(std::system((command + saved + "chats.parquet 2>refused.txt").c_str())), 2);
  EXPECT_THAT(folder_->read("refused.txt"),
              HasSubstr("Parquet files are not read here: this program was built "
                        "without what reads them: "));
  EXPECT_THAT(
      folder_->read("refused.txt"),
      HasSubstr("hint: add the reader: make columns, in the source tree; or convert the file: python3 -c "
                "\"import datasets; "));
}

TEST_F(TextData, TakesTheFirstDocumentsAlone) {
  const Outcome some = train("some",
                             "data.train=texts.jsonl data.max_train_samples=7 data.eval=texts.jsonl "
                             "data.max_eval_samples=3 data.long_documents=truncate data.sequence_length=16");
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_THAT(some.err, HasSubstr("tokenized 7 documents"));
  EXPECT_THAT(some.err, HasSubstr("tokenized 3 documents"));
  EXPECT_THAT(some.err, HasSubstr(" truncated ("));
}

TEST_F(TextData, PlanKnowsThePeak) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer's shadow memory is in no plan";
  const Outcome run = train("peak", "--json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto number = [&](const std::string& key) {
    const size_t at = run.out.rfind("\"" + key + "\":");
    return std::strtoll(run.out.c_str() + at + key.size() + 3, nullptr, 10);
  };
  EXPECT_LE(number("measured_peak_bytes"), number("planned_peak_bytes"));
  EXPECT_LE(number("planned_peak_bytes") - number("measured_peak_bytes"), 32 << 20);
  EXPECT_EQ(number("allocations_after_first_step"), 0);
}

/// Padding with buckets; short and long documents, of which 3 of 4 lengths come up.
constexpr const char* kBuckets =
    "'data.train=[chats.jsonl, texts.jsonl]' data.packing=pad 'data.buckets=[20, 32, 48]' "
    "training.max_steps=24 ";

/// All numbers behind `"key":` of the lines that hold `line`.
std::vector<double> numbers(const std::string& out, const std::string& line, const std::string& key) {
  std::vector<double> values;
  std::istringstream lines(out);
  for (std::string text; std::getline(lines, text);) {
    const size_t at = text.find("\"" + key + "\":");
    if (text.find("\"event\": \"" + line + "\"") == std::string::npos || at == std::string::npos) continue;
    values.push_back(std::strtod(text.c_str() + at + key.size() + 3, nullptr));
  }
  return values;
}

TEST_F(TextData, BucketsGiveTheSameBitsHoweverTheyAreRun) {
  const Outcome plain = train("bucket", std::string(kBuckets) + "--json");
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr("in buckets of 20, 32, 48, 64 tokens"));
  const std::string expected = weights("bucket");
  int n = 0;
  for (const char* how : {"training.micro_batch_size=1", "training.micro_batch_size=2 runtime.threads=3",
                          "data.num_workers=3 data.prefetch_factor=9", "debug.poison=true"}) {
    const std::string out = "bucket-bits" + std::to_string(n++);
    const Outcome other = train(out, std::string(kBuckets) + how);
    ASSERT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(weights(out), expected) << how;
  }
  // A dropped weight of attention is known by its place among T x T: T is that of the effective batch.
  const std::string dropout = std::string(kBuckets) + "'model.overrides={attention_dropout: 0.2}' ";
  ASSERT_EQ(train("bucket-dropout", dropout).exit_code, 0);
  ASSERT_EQ(train("bucket-dropout1", dropout + "training.micro_batch_size=1").exit_code, 0);
  EXPECT_EQ(weights("bucket-dropout1"), weights("bucket-dropout"));
  EXPECT_NE(weights("bucket-dropout"), expected);
  if (kSanitizer) return;  // its shadow memory is in no plan
  const auto planned = numbers(plain.out, "summary", "planned_peak_bytes"),
             measured = numbers(plain.out, "summary", "measured_peak_bytes");
  ASSERT_EQ(planned.size() + measured.size(), 2U);
  EXPECT_LE(measured[0], planned[0]);
  EXPECT_LE(planned[0] - measured[0], 32 << 20);
  EXPECT_EQ(numbers(plain.out, "summary", "allocations_after_first_step"), std::vector<double>{0});
}

/// Sequences of several lengths, none of whole blocks of tokens.
TEST_F(TextData, BucketsInFp8KnowNoMicroBatch) {
  for (const std::string recipe : {"block", "mxfp8"}) {
    const std::string run = std::string(kBuckets) +
                            "training.max_steps=8 training.precision=fp8 training.fp8.recipe=" + recipe + " ";
    ASSERT_EQ(train("bucket-" + recipe, run + "training.micro_batch_size=1").exit_code, 0);
    ASSERT_EQ(train("bucket-two-" + recipe, run + "training.micro_batch_size=2").exit_code, 0);
    EXPECT_EQ(weights("bucket-" + recipe), weights("bucket-two-" + recipe));
  }
}

TEST_F(TextData, BucketsGoOnInTheMiddleOfAnEpoch) {
  const std::string settings = std::string(kBuckets) + "training.num_epochs=null ";
  ASSERT_EQ(train("bucket-whole", settings).exit_code, 0);
  for (const int step : {5, 13, 22}) {  // the epochs of 120 sequences end with step 30
    const std::string out = "bucket-halves" + std::to_string(step), every = std::to_string(step);
    ASSERT_EQ(train(out, settings + "training.max_steps=" + every + " output.save_steps=" + every).exit_code,
              0);
    const Outcome rest = train(out, settings + "output.save_steps=" + every);
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    EXPECT_THAT(rest.err, HasSubstr("resuming after step " + every));
    EXPECT_EQ(weights(out), weights("bucket-whole")) << step;
  }
  const Outcome changed = train("bucket-halves5", settings + "'data.buckets=[16, 32]' output.save_steps=5");
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("data.buckets"));
}

TEST_F(TextData, EvaluationInBucketsIsThatOfFullLength) {
  const std::string eval =
      "eval run.yaml --json data.eval=texts.jsonl data.packing=pad output.dir=bucket-eval";
  double loss = 0, tokens = 0;
  for (const char* buckets : {"null", "[20, 32, 48]", "4", "[2, 3, 64]"}) {
    const Outcome outcome = folder_->run(eval + " 'data.buckets=" + buckets + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto losses = numbers(outcome.out, "eval", "loss"), counts = numbers(outcome.out, "eval", "tokens");
    ASSERT_EQ(losses.size() + counts.size(), 2U) << outcome.out;
    if (loss == 0) loss = losses[0], tokens = counts[0];
    EXPECT_NEAR(losses[0], loss, 1e-6 * loss) << buckets;
    EXPECT_EQ(counts[0], tokens) << buckets;
  }
}

TEST_F(TextData, PlanShowsBucketsOnceTheDataIsKnown) {
  const std::string plan = "plan run.yaml output.dir=bucket-plan data.packing=pad data.buckets=3";
  const Outcome before = folder_->run(plan);
  ASSERT_EQ(before.exit_code, 0) << before.err;
  EXPECT_THAT(before.out, HasSubstr("Buckets of 16, 32, 64 tokens"));
  EXPECT_THAT(before.out, HasSubstr("known once the data is tokenized"));
  EXPECT_FALSE(std::filesystem::exists(folder_->path("bucket-plan"))) << "a plan writes nothing";
  const Outcome run = train("bucket-plan", "data.packing=pad data.buckets=3 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const Outcome after = folder_->run(plan + " --json");
  ASSERT_EQ(after.exit_code, 0) << after.err;
  const auto buckets = [](const std::string& out) {
    const size_t at = out.find("\"buckets\":");
    return out.substr(at, out.find('}', at) - at);
  };
  EXPECT_THAT(buckets(after.out), HasSubstr("\"sequences\": 60"));
  EXPECT_EQ(buckets(after.out), buckets(run.out)) << "plan and run see the same";
  const auto share = [text = buckets(after.out)](const std::string& key) {
    const size_t at = text.find("\"" + key + "\": ");
    return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + key.size() + 4, nullptr);
  };
  EXPECT_GT(share("padding"), 0);
  EXPECT_LT(share("padding"), share("padding_of_one_length"));
}

TEST_F(TextData, SaysWhatIsWrongAndWhere) {
  folder_->write("broken.jsonl", "{\"text\": \"fine and long enough for a target\"}\n{\"text\": 3}\n{\"te\n");
  const std::pair<const char*, std::pair<int, const char*>> cases[] = {
      {"data.train=broken.jsonl", {65, "broken.jsonl: line 2"}},
      {"data.train=absent.jsonl", {65, "absent.jsonl"}},
      {"data.train=chats.jsonl data.tokenizer=bytes", {2, "without a tokenizer"}},
      {"data.train=chats.jsonl data.tokenizer=nowhere", {65, "nowhere"}},
      {"data.train=chats.jsonl data.chat_template=nowhere.jinja", {65, "nowhere.jinja"}},
      {"data.train=chats.jsonl 'data.weights=[1, 2]'", {2, "data.weights has 2 numbers"}},
      {"data.train=chats.jsonl data.eval_fraction=0.5 data.eval=texts.jsonl", {2, "contradict"}},
      {"data.train=book.txt data.eval_fraction=0.5 data.tokenizer=bytes", {2, "data.eval_fraction"}},
      {"'data.train=[chats.jsonl, book.npy]'", {2, "data.train joins"}},
      {"data.packing=dense", {2, "data.packing"}},
      {"data.buckets=4", {2, "data.buckets is 4, which has no effect with data.packing auto"}},
      {"data.packing=pad 'data.buckets=[32, 128]'", {2, "data.buckets has 128"}},
      {"data.packing=pad 'data.buckets=[32, 16]'", {2, "do not rise"}},
  };
  ASSERT_EQ(folder_->run("data tokenize --tokenizer model --input book.txt --output book.npy").exit_code, 0);
  int n = 0;
  for (const auto& [overrides, expected] : cases) {
    const Outcome outcome = train("wrong" + std::to_string(n++), overrides);
    EXPECT_EQ(outcome.exit_code, expected.first) << overrides << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(expected.second)) << overrides;
    EXPECT_THAT(outcome.err, HasSubstr("hint: ")) << overrides;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n') >= 2, true);
  }
  const Outcome skipped = train("skipped", "data.train=broken.jsonl data.on_error=skip");
  EXPECT_EQ(skipped.exit_code, 0) << skipped.err;
  EXPECT_THAT(skipped.err, HasSubstr("skipped 1 example"));
}

TEST_F(TextData, TheCacheHoldsNothingOld) {
  ASSERT_EQ(train("cache", "data.train=texts.jsonl").exit_code, 0);
  const Outcome again = train("cache", "data.train=texts.jsonl --resume never");
  EXPECT_THAT(again.err, Not(HasSubstr("tokenized")));
  // A byte of a token that no header covers.
  std::string shard;
  for (const auto& entry : std::filesystem::directory_iterator(folder_->path("cache/data")))
    if (entry.path().extension() == ".shard") shard = "cache/data/" + entry.path().filename().string();
  std::string bytes = folder_->read(shard);
  bytes[300] = static_cast<char>(bytes[300] ^ 1);
  folder_->write(shard, bytes);
  const Outcome damaged = train("cache", "data.train=texts.jsonl --resume never");
  EXPECT_EQ(damaged.exit_code, 0) << damaged.err;
  EXPECT_THAT(damaged.err, HasSubstr("tokenized 60 documents"));
  // The same tokens of the vocabulary, but another way to them.
  std::filesystem::create_directory(folder_->path("lower"));
  std::string tokenizer = folder_->read("model/tokenizer.json");
  const std::string member = "\"normalizer\": null";
  const size_t at = tokenizer.find(member);
  ASSERT_NE(at, std::string::npos);
  tokenizer.replace(at, member.size(), R"("normalizer": {"type": "Lowercase"})");
  folder_->write("lower/tokenizer.json", tokenizer);
  const Outcome lower = train("cache", "data.train=texts.jsonl data.tokenizer=lower --resume never");
  EXPECT_EQ(lower.exit_code, 0) << lower.err;
  EXPECT_THAT(lower.err, HasSubstr("tokenized 60 documents"));
  const Outcome refused = train("refused", "data.train=" + shard + " data.tokenizer=lower");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
}

TEST_F(TextData, ShardsOfTwoTokenizersDoNotMix) {
  ASSERT_EQ(folder_->run("data tokenizer --input book.txt --vocab-size 270 --output third").exit_code, 0);
  ASSERT_EQ(folder_->run("data tokenize --tokenizer third --input texts.jsonl --output 3.shard").exit_code,
            0);
  ASSERT_EQ(folder_->run("data tokenize --tokenizer model --input texts.jsonl --output 1.shard").exit_code,
            0);
  const Outcome mixed =
      train("mixed", "'data.train=[1.shard, 3.shard]' 'data.weights=[1, 1]' data.tokenizer=bytes");
  EXPECT_EQ(mixed.exit_code, 2) << mixed.err;
  EXPECT_THAT(mixed.err, HasSubstr("shards of different tokenizers"));
}

TEST_F(TextData, AShardOfAnotherTokenizerIsRefused) {
  ASSERT_EQ(folder_->run("data tokenizer --input book.txt --vocab-size 280 --output other").exit_code, 0);
  ASSERT_EQ(
      folder_->run("data tokenize --tokenizer other --input texts.jsonl --output other.shard").exit_code, 0);
  const Outcome outcome = train("other-out", "data.train=other.shard");
  EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("other.shard"));
}

}  // namespace
}  // namespace plimsoll::e2e
