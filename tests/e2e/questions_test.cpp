// Answers from a text, from questions through WordPiece and windows to a line for each question: the same
// bits however it is carried out, what `predict` writes, and what a user gets wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "io/json.h"
#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class QuestionsRun : public testing::Test {
 protected:
  static constexpr std::array<const char*, 8> kNouns = {"ship", "sea",  "sail", "mast",
                                                        "rope", "port", "wave", "deck"};

  /// Five special tokens, the words, and each letter at the beginning of a word and within it.
  static std::string letters_and_words() {
    std::string vocab, added;
    int id = 0;
    for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
      const std::string number = std::to_string(id++);
      vocab += std::string(vocab.empty() ? "" : ", ") + "\"" + token + "\": " + number;
      added += std::string(added.empty() ? "" : ", ") + "{\"id\": " + number + ", \"content\": \"" + token +
               R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                  "special": true})";
    }
    for (const char* word : kNouns) vocab += std::string(", \"") + word + "\": " + std::to_string(id++);
    for (const char* mark : {"", "##"})
      for (char letter = 'a'; letter <= 'z'; ++letter)
        vocab += std::string(", \"") + mark + letter + "\": " + std::to_string(id++);
    return R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [)" + added +
           R"(], "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
        "strip_accents": null, "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
          "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                     {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
          "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
                   {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
          "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                             "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
          "max_input_chars_per_word": 100, "vocab": {)" +
           vocab + "}}}";
  }

  struct Asked {
    std::string question, context, answer;  ///< no answer: the context has none
    size_t start = 0;                       ///< a character of the context
  };
  /// Contexts of 4 to 27 words, so that some become several windows; every fifth question has no answer.
  static std::vector<Asked> some_questions(int count, unsigned seed) {
    const auto draw = [&seed](unsigned end) {
      seed = seed * 1664525U + 1013904223U;
      return (seed >> 8) % end;
    };
    std::vector<Asked> all;
    for (int i = 0; i < count; ++i) {
      Asked asked;
      for (unsigned words = 1 + draw(3); words > 0; --words)
        asked.question += std::string(asked.question.empty() ? "" : " ") + kNouns[draw(8)];
      const unsigned words = 4 + draw(24), first = draw(words), last = std::min(words - 1, first + draw(3));
      for (unsigned w = 0; w < words; ++w) {
        const std::string word = kNouns[draw(8)];
        asked.context += w == 0 ? "" : " ";
        if (w == first) asked.start = asked.context.size();
        if (w >= first && w <= last) asked.answer += (w > first ? " " : "") + word;
        asked.context += word;
      }
      if (i % 5 == 4) asked.answer.clear();
      all.push_back(std::move(asked));
    }
    return all;
  }
  static std::string answers_of(const Asked& asked) {
    if (asked.answer.empty()) return R"({"text": [], "answer_start": []})";
    return "{\"text\": [\"" + asked.answer + "\"], \"answer_start\": [" + std::to_string(asked.start) + "]}";
  }
  static std::string lines_of(const std::vector<Asked>& questions, const std::string& end = "\n") {
    std::string lines;
    for (size_t i = 0; i < questions.size(); ++i)
      lines += "{\"id\": \"" + std::to_string(i) + "\", \"question\": \"" + questions[i].question +
               "\", \"context\": \"" + questions[i].context + "\", \"answers\": " + answers_of(questions[i]) +
               "}" + end;
    return lines;
  }
  /// The same as a file of SQuAD, two articles of a paragraph each question.
  static std::string squad_of(const std::vector<Asked>& questions) {
    std::string articles[2];
    for (size_t i = 0; i < questions.size(); ++i) {
      const Asked& asked = questions[i];
      const std::string answers =
          asked.answer.empty()
              ? ""
              : "{\"text\": \"" + asked.answer + "\", \"answer_start\": " + std::to_string(asked.start) + "}";
      std::string& article = articles[i < questions.size() / 2 ? 0 : 1];
      article += std::string(article.empty() ? "" : ", ") + "{\"context\": \"" + asked.context +
                 "\", \"qas\": [{\"question\": \"" + asked.question + "\", \"id\": \"" + std::to_string(i) +
                 "\", \"answers\": [" + answers +
                 "], \"is_impossible\": " + (answers.empty() ? "true" : "false") + "}]}";
    }
    return "{\"version\": \"v2.0\", \"data\": [{\"title\": \"a\", \"paragraphs\": [" + articles[0] +
           "]}, {\"title\": \"b\", \"paragraphs\": [" + articles[1] + "]}]}";
  }

  static void write_all(const Folder& folder) {
    folder.write("tokenizer.json", letters_and_words());
    folder.write("train.jsonl", lines_of(some_questions(23, 1)));
    folder.write("eval.jsonl", lines_of(some_questions(7, 9)));
    folder.write("run.yaml", R"(task: question_answering
model:
  config: {model_type: bert, vocab_size: 65, hidden_size: 48, num_hidden_layers: 2, num_attention_heads: 3,
           intermediate_size: 64, max_position_embeddings: 40, type_vocab_size: 2, pad_token_id: 0,
           hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1}
data: {train: train.jsonl, eval: eval.jsonl, tokenizer: tokenizer.json, sequence_length: 20}
qa: {doc_stride: 4}
training: {global_batch_size: 8, max_steps: 4, learning_rate: 1.0e-3, lr_scheduler: constant}
output: {dir: out}
)");
  }
  static Result trained(const std::string& overrides) {
    const Folder folder;
    write_all(folder);
    return result_of(folder, folder.run("train run.yaml --json " + overrides));
  }
  static std::vector<io::Tree> lines(const std::string& text) {
    std::vector<io::Tree> all;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      auto tree = io::parse_json(line);
      EXPECT_TRUE(tree) << line;
      if (tree) all.push_back(std::move(*tree));
    }
    return all;
  }
  static std::string text(const io::Tree& line, const char* key) {
    const io::Tree* value = line.find(key);
    return value == nullptr ? "(none)" : value->text;
  }
  static double figure(const io::Tree& line, const char* key) { return std::stod("0" + text(line, key)); }
  static std::vector<std::string> keys(const io::Tree& line) {
    std::vector<std::string> all;
    for (const auto& [key, value] : line.members) all.push_back(key);
    return all;
  }
  static Outcome predicted(const Folder& folder, const std::string& data, const std::string& more = "") {
    Outcome outcome = folder.run("predict --model out/final --data " + data + " " + more);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome;
  }
};

TEST_F(QuestionsRun, HasTheSameBitsHoweverItIsCarriedOut) {
  const Result whole = trained("runtime.threads=1 training.micro_batch_size=8");
  EXPECT_THAT(whole.events, HasSubstr("\"span_accuracy\": "));
  EXPECT_FALSE(whole.model.empty());
  for (const char* how : {"training.micro_batch_size=1", "training.micro_batch_size=4 runtime.threads=2",
                          "training.micro_batch_size=2 debug.poison=true", "memory.recompute=none",
                          "memory.recompute=full", "debug.plan=separate debug.poison=true"}) {
    const Result other = trained(how);
    EXPECT_EQ(other.events, whole.events) << how;
    EXPECT_TRUE(other.model == whole.model) << how;
  }
}

TEST_F(QuestionsRun, GoesOnFromACheckpoint) {
  const Result whole = trained("");
  const Folder folder;
  write_all(folder);
  const Outcome first = folder.run("train run.yaml training.max_steps=2 output.save_steps=2");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Result rest = result_of(folder, folder.run("train run.yaml output.save_steps=2 --json"));
  EXPECT_TRUE(rest.model == whole.model);
}

/// SQuAD's own file, lines that end as on Windows, and questions on several lines of one list are the same.
TEST_F(QuestionsRun, EveryFormOfTheDataIsTheSame) {
  const Result whole = trained("");
  const std::vector<Asked> questions = some_questions(23, 1);
  const Folder folder;
  write_all(folder);
  folder.write("squad.json", squad_of(questions));
  folder.write("crlf.jsonl", "\xEF\xBB\xBF" + lines_of(questions, "\r\n\r\n"));
  std::string list = lines_of(questions, ",\n");
  list.resize(list.size() - 2);
  folder.write("list.json", "[\n" + list + "\n]\n");
  for (const char* file : {"squad.json", "crlf.jsonl", "list.json"}) {
    const Result other =
        result_of(folder, folder.run("train run.yaml --json --resume never data.train=" + std::string(file) +
                                     " output.dir=" + file + ".out"));
    EXPECT_EQ(other.events, whole.events) << file;
    EXPECT_TRUE(folder.read(std::string(file) + ".out/final/model.safetensors") == whole.model) << file;
  }
}

/// Whole questions, whatever windows they became.
TEST_F(QuestionsRun, TheFirstSamplesAreQuestions) {
  const Folder folder;
  write_all(folder);
  std::vector<Asked> first = some_questions(23, 1);
  first.resize(6);
  folder.write("first.jsonl", lines_of(first));
  const Result six = result_of(folder, folder.run("train run.yaml --json data.train=first.jsonl"));
  const std::string model = folder.read("out/final/model.safetensors");
  const Outcome limited = folder.run("train run.yaml --json data.max_train_samples=6 output.dir=limited");
  ASSERT_EQ(limited.exit_code, 0) << limited.err;
  EXPECT_EQ(events_of(limited.out), six.events);
  EXPECT_TRUE(folder.read("limited/final/model.safetensors") == model);
}

TEST_F(QuestionsRun, FindsTheAnswers) {
  const Folder folder;
  write_all(folder);
  std::vector<Asked> asked = some_questions(8, 5);
  asked[2] = {"who sailed", "N\xC3\xA9 \xC3\xA0 l'\xC3\xA9t\xC3\xA9 \xE2\x80\x94 the Ship, a fine one",
              "Ship", 17};
  folder.write("train.jsonl", lines_of(asked));
  const Outcome learned = folder.run(
      "train run.yaml --json data.eval=train.jsonl training.max_steps=150 training.learning_rate=3e-3 "
      "'model.overrides={hidden_dropout_prob: 0, attention_probs_dropout_prob: 0}'");
  ASSERT_EQ(learned.exit_code, 0) << learned.err;
  const std::string last = learned.out.substr(learned.out.rfind("{\"event\": \"eval\""));
  EXPECT_THAT(last, HasSubstr("\"span_accuracy\": 1"));
  EXPECT_THAT(last, Not(HasSubstr("perplexity")));
  const std::string config = folder.read("out/final/config.json");
  EXPECT_THAT(config, HasSubstr("\"BertForQuestionAnswering\""));
  EXPECT_THAT(config, Not(HasSubstr("id2label"))) << "spans are no labels";

  const std::string window = "--max-length 20 --doc-stride 4 ";
  const Outcome all = predicted(folder, "train.jsonl", window + "--null-threshold 0");
  const std::vector<io::Tree> found = lines(all.out);
  ASSERT_EQ(found.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(text(found[i], "id"), std::to_string(i));
    EXPECT_EQ(text(found[i], "answer"), asked[i].answer) << i;
    EXPECT_GT(figure(found[i], "score"), 0.5) << i;
    EXPECT_LE(figure(found[i], "score"), 1) << i;
    if (asked[i].answer.empty()) continue;
    EXPECT_EQ(figure(found[i], "begin"), static_cast<double>(asked[i].start)) << i;
    EXPECT_THAT(text(found[i], "null_odds"), testing::StartsWith("-"));
  }
  EXPECT_EQ(text(found[2], "end"), "21") << "characters, not bytes";
  EXPECT_EQ(text(found[4], "begin") + text(found[4], "end"), "00") << "no answer";
  EXPECT_THAT(all.err,
              testing::ContainsRegex(
                  "exact 100.00, f1 100.00, HasAns_exact 100.00, HasAns_f1 100.00, NoAns_exact 100.00, "
                  "NoAns_f1 100.00, best_exact 100.00, best_exact_thresh -?[0-9.]+, best_f1 100.00, "
                  "best_f1_thresh -?[0-9.]+ of 8 questions"));

  // Without a threshold there is always an answer, and the one question without an answer is wrong.
  const Outcome always = predicted(folder, "train.jsonl", window + "--alternatives 3");
  const std::vector<io::Tree> best = lines(always.out);
  EXPECT_THAT(always.err, HasSubstr("exact 87.50, f1 87.50, HasAns_exact 100.00"));
  EXPECT_THAT(keys(best[0]), ElementsAre("id", "answer", "score", "begin", "end", "n_best"));
  ASSERT_EQ(best[0].find("n_best")->items.size(), 3U);
  EXPECT_EQ(text(best[0].find("n_best")->items[0], "answer"), asked[0].answer);
  EXPECT_GE(figure(best[0].find("n_best")->items[0], "score"),
            figure(best[0].find("n_best")->items[1], "score"));
  EXPECT_NE(text(best[4], "answer"), "");

  // Questions without answers beside them are answered alike, and there is nothing to compare.
  folder.write("plain.jsonl", "{\"question\": \"" + asked[0].question + "\", \"context\": \"" +
                                  asked[0].context + "\"}\n" + lines_of({asked[1]}));
  const Outcome plain = predicted(folder, "plain.jsonl", window);
  ASSERT_EQ(lines(plain.out).size(), 2U);
  EXPECT_THAT(keys(lines(plain.out)[0]), ElementsAre("answer", "score", "begin", "end")) << "it has no id";
  EXPECT_EQ(text(lines(plain.out)[0], "answer"), asked[0].answer);
  EXPECT_THAT(plain.err, Not(HasSubstr("exact")));

  // A file of SQuAD has the same lines, and so have other batches; --output is for the lines alone.
  folder.write("squad.json", squad_of(asked));
  const std::string same = predicted(folder, "squad.json", window + "--null-threshold 0").out;
  EXPECT_EQ(same, all.out);
  const Outcome one =
      predicted(folder, "squad.json", window + "--null-threshold 0 --batch-size 1 --output lines.jsonl");
  EXPECT_EQ(one.out, "");
  EXPECT_THAT(one.err, HasSubstr("exact 100.00"));
  EXPECT_EQ(folder.read("lines.jsonl"), all.out);

  // Of a threshold that nothing exceeds, and of one that everything does.
  for (const auto& [threshold, none] : {std::pair("1e9", false), std::pair("-1e9", true)}) {
    const std::vector<io::Tree> some =
        lines(predicted(folder, "train.jsonl", window + "--null-threshold=" + threshold).out);
    for (const io::Tree& line : some) EXPECT_EQ(text(line, "answer").empty(), none) << threshold;
  }
  // The head alone says what is meant: task may be left out.
  const Outcome evaluated = folder.run(
      "eval run.yaml model.path=out/final model.config=null task=auto data.tokenizer=auto "
      "data.eval=train.jsonl --json");
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_THAT(evaluated.out, HasSubstr("\"span_accuracy\": 1"));
}

/// A question has the same answer alone and among others, in a window that is filled up and in one that is
/// not.
TEST_F(QuestionsRun, PaddingAndNeighboursDoNotShow) {
  const Folder folder;
  write_all(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=2").exit_code, 0);
  const std::vector<Asked> asked = some_questions(9, 77);
  folder.write("all.jsonl", lines_of(asked));
  const std::string how = "--max-length 18 --doc-stride 3 --alternatives 2 --null-threshold 0";
  std::istringstream together(predicted(folder, "all.jsonl", how).out);
  for (const Asked& each : asked) {
    std::string line;
    ASSERT_TRUE(std::getline(together, line));
    folder.write("one.jsonl", lines_of({each}));
    const std::string alone = predicted(folder, "one.jsonl", how).out;
    EXPECT_EQ(alone.substr(alone.find("\"answer\"")), line.substr(line.find("\"answer\"")) + "\n");
  }
}

/// What is said of a long text is the best that is said of its windows.
TEST_F(QuestionsRun, WindowsOfALongTextAreOneQuestion) {
  const Folder folder;
  write_all(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=2").exit_code, 0);
  std::vector<Asked> asked = some_questions(5, 3);
  for (int i = 0; i < 40; ++i) asked[1].context += std::string(" ") + kNouns[static_cast<size_t>(i * 5 % 8)];
  folder.write("long.jsonl", lines_of(asked));
  for (const char* how : {"--max-length 12 --doc-stride 0", "--max-length 12 --doc-stride 5 --batch-size 2",
                          "--max-length 30 --doc-stride 9 --batch-size 3"}) {
    const std::vector<io::Tree> found = lines(predicted(folder, "long.jsonl", how).out);
    ASSERT_EQ(found.size(), asked.size()) << how;
    for (size_t i = 0; i < asked.size(); ++i) {
      const auto begin = static_cast<size_t>(figure(found[i], "begin")),
                 end = static_cast<size_t>(figure(found[i], "end"));
      EXPECT_EQ(text(found[i], "id"), std::to_string(i));
      EXPECT_EQ(text(found[i], "answer"), asked[i].context.substr(begin, end - begin)) << how;
      EXPECT_LT(begin, end) << how;
    }
  }
  for (const io::Tree& line :
       lines(predicted(folder, "long.jsonl", "--doc-stride 9 --max-answer-length 1").out))
    EXPECT_THAT(text(line, "answer"), Not(HasSubstr(" ")));
}

/// Texts that no tokenizer likes still have characters, and begin and end count them.
TEST_F(QuestionsRun, OddTextsHaveAnswersToo) {
  const Folder folder;
  write_all(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  folder.write("odd.jsonl",
               R"({"id": 7, "question": "a", "context": "\u0000\u0000ship"})"
               "\r\n"
               R"({"id": "\ud800", "question": "a", "context": "\ud800 \udc00 ship"})"
               "\r\n"
               R"({"id": "smile", "question": " \n a", "context": "\ud83d\ude00\ud83d\ude00 ship"})"
               "\n"
               "{\"question\": \"a\", \"context\": \"\xC3\xA9t\xC3\xA9 \xFF ship\"}\n"
               R"({"id": "nothing to say", "question": "", "context": " ship "})");
  const Outcome odd = predicted(folder, "odd.jsonl", "--max-answer-length 1 --n-best 1000 --alternatives 9");
  const std::vector<io::Tree> found = lines(odd.out);
  ASSERT_EQ(found.size(), 5U);
  EXPECT_EQ(text(found[0], "id"), "7");
  EXPECT_EQ(text(found[1], "id"), "\xEF\xBF\xBD");
  EXPECT_EQ(odd.out.find('\xFF'), std::string::npos) << "lines are UTF-8";
  const auto place_of_ship = [&](size_t i) {
    for (const io::Tree& each : found[i].find("n_best")->items)
      if (text(each, "answer") == "ship") return true;
    return false;
  };
  for (size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(place_of_ship(i)) << i;
  EXPECT_EQ(text(found[0], "answer") + " " + text(found[0], "begin") + " " + text(found[0], "end"),
            "ship 2 6");
  EXPECT_EQ(text(found[4], "answer") + " " + text(found[4], "begin") + " " + text(found[4], "end"),
            "ship 1 5");
}

TEST_F(QuestionsRun, AnAdapterAnswersWithItsHead) {
  const Folder folder;
  write_all(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1 output.dir=base").exit_code, 0);
  const Outcome tuned = folder.run(
      "train run.yaml model.path=base/final model.config=null data.tokenizer=auto "
      "'lora={r: 4, target_modules: all-linear, init_lora_weights: false}' "
      "training.learning_rate=1e-2");
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  ASSERT_TRUE(std::filesystem::exists(folder.path("out/final/adapter_model.safetensors")));
  const std::string how = " --data eval.jsonl --max-length 20 --doc-stride 4";
  const Outcome base = folder.run("predict --model base/final" + how),
                adapted = folder.run("predict --model base/final --adapter out/final" + how),
                named = folder.run("predict --model out/final" + how);
  ASSERT_EQ(adapted.exit_code, 0) << adapted.err;
  EXPECT_EQ(named.out, adapted.out) << named.err;
  EXPECT_NE(base.out, adapted.out);
  // PEFT's own adapters have no config.json, and their base may have another head, or none.
  std::filesystem::copy(folder.path("base/final"), folder.path("bare"));
  std::string config = folder.read("bare/config.json");
  constexpr std::string_view kHead = "ForQuestionAnswering";
  config.replace(config.find(kHead), kHead.size(), "Model");
  folder.write("bare/config.json", config);
  std::filesystem::remove(folder.path("out/final/config.json"));
  const Outcome peft = folder.run("predict --model bare --adapter out/final" + how);
  EXPECT_EQ(peft.out, adapted.out) << peft.err;
  const Outcome odd = folder.run("predict --model base/final --null-threshold nan" + how);
  EXPECT_EQ(odd.exit_code, 2);
  EXPECT_NE(odd.err.find("--null-threshold is nan"), std::string::npos) << odd.err;
}

TEST_F(QuestionsRun, ThePeakIsThePlanned) {
  if (sanitized()) GTEST_SKIP();
  const Folder folder;
  write_all(folder);
  const Outcome before = folder.run("plan run.yaml --json");
  ASSERT_EQ(before.exit_code, 0) << before.err;
  const Outcome there =
      folder.run("train run.yaml --json runtime.device=discrete runtime.discrete.check=true");
  ASSERT_EQ(there.exit_code, 0) << there.err;
  EXPECT_GT(number(there.out, "planned_peak_bytes"), 0);
  EXPECT_EQ(number(there.out, "measured_peak_bytes"), number(there.out, "planned_peak_bytes"));
  EXPECT_LE(number(there.out, "host_measured_peak_bytes"), number(there.out, "host_planned_peak_bytes"));
  const std::string on_discrete = folder.read("out/final/model.safetensors");
  const Outcome here = folder.run("train run.yaml --json runtime.device=cpu output.dir=here");
  ASSERT_EQ(here.exit_code, 0) << here.err;
  EXPECT_LE(number(here.out, "measured_peak_bytes"), number(here.out, "planned_peak_bytes"));
  EXPECT_EQ(number(here.out, "allocations_after_first_step"), 0);
  EXPECT_TRUE(folder.read("here/final/model.safetensors") == on_discrete);
  const Outcome after = folder.run("plan run.yaml --json");
  const auto parameters = [](const std::string& out) { return out.substr(out.find("\"parameters\""), 30); };
  EXPECT_EQ(parameters(before.out), parameters(after.out)) << "two rows of a head";
}

struct WrongQuestions {
  const char* train;  ///< null: as in write_all
  const char* overrides;
  int exit_code;
  const char* message;
  const char* hint;
};

TEST_F(QuestionsRun, SaysWhatIsWrongWhere) {
  const char* const ok =
      R"({"question": "who", "context": "a ship", "answers": {"text": ["ship"], "answer_start": [2]}})";
  const std::string lines = std::string(ok) + "\n";
  const std::string off = lines + R"({"question": "who", "context": "a ship", "answers": )" +
                          R"({"text": ["ship"], "answer_start": [1]}})" + "\n";
  const std::string long_question =
      lines + R"({"question": "ship ship ship ship ship ship ship ship ship ship ship ship ship ship ship )" +
      R"(ship ship", "context": "a", "answers": []})";
  const std::string no_answers = lines + R"({"question": "who", "context": "a ship"})";
  const std::string no_context = lines + R"({"question": "who", "answers": []})";
  const std::string broken = lines + R"({"question": "who", "context": "a )";
  const std::string empty_context = lines + R"({"question": "who", "context": " \n", "answers": []})";
  const WrongQuestions rows[] = {
      {off.c_str(), "", 65,
       "the answer 'ship' does not stand at character 1 of the context: train.jsonl: line 2",
       "data.on_error=skip"},
      {long_question.c_str(), "", 65, "train.jsonl: line 2", "data.sequence_length"},
      {long_question.c_str(), "", 65, "the question has 17 tokens, which leaves 0 of 20 to the context",
       "qa.doc_stride"},
      {nullptr, "qa.doc_stride=19", 65, "windows share 19", "qa.doc_stride"},
      {no_answers.c_str(), "", 65, "the question has no \"answers\": train.jsonl: line 2",
       "data.on_error=skip"},
      {no_context.c_str(), "", 65, "the question has no \"context\": train.jsonl: line 2",
       "data.on_error=skip"},
      {broken.c_str(), "", 65, "the line is no JSON", "data.on_error=skip"},
      {empty_context.c_str(), "", 65, "the context has no token: train.jsonl: line 2", "data.on_error=skip"},
      {"", "", 65, "the file is empty: train.jsonl", ""},
      {R"({"data": []})", "", 65, "none of its examples can be used", ""},
      {no_context.c_str(), "data.train=train.txt", 2, "data.train holds no questions: train.txt",
       "SQuAD's .json"},
      {nullptr, "data.train=absent.jsonl", 65, "absent.jsonl", "check the path"},
      {nullptr, "data.tokenizer=bytes", 2, "questions are texts, and there is no tokenizer",
       "set data.tokenizer"},
      {nullptr, "data.sequence_length=41", 2, "data.sequence_length (41) exceeds the model's 40 positions",
       ""},
      {nullptr, "data.buckets=[8,20]", 2, "data.buckets", ""},
      {nullptr, "data.packing=best_fit", 2, "data.packing is best_fit", "leave data.packing out"},
      {nullptr, "data.text_key=body", 2, "data.text_key", ""},
      {nullptr, "classification.num_labels=2", 2, "classification.num_labels", ""},
      {nullptr, "mlm.mask=0.5", 2, "mlm.mask", ""},
      {nullptr, "task=sequence_classification qa.doc_stride=5", 2, "qa.doc_stride", ""},
      {nullptr, "qa.doc_stride=-1", 2, "qa.doc_stride", ""},
      {nullptr,
       "'model.config={model_type: llama, vocab_size: 65, hidden_size: 16, intermediate_size: 16, "
       "num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1}'",
       2, "task is question_answering, and the model is no encoder of text", "name a BERT"},
  };
  for (const WrongQuestions& row : rows) {
    const Folder folder;
    write_all(folder);
    folder.write("train.txt", "text");
    if (row.train != nullptr) folder.write("train.jsonl", row.train);
    const Outcome outcome = folder.run("train run.yaml " + std::string(row.overrides));
    EXPECT_EQ(outcome.exit_code, row.exit_code) << row.message << ": " << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(row.message), HasSubstr("\nhint: "), HasSubstr(row.hint)))
        << row.overrides;
    EXPECT_THAT(outcome.err, Not(HasSubstr("hint: see plimsoll"))) << row.message;
    EXPECT_FALSE(std::filesystem::exists(folder.path("out/final"))) << row.message;
  }
}

TEST_F(QuestionsRun, SkipsWhatIsWrongWhereAsked) {
  const Folder folder;
  write_all(folder);
  const std::vector<Asked> asked = some_questions(23, 1);
  const std::string good = folder.read("train.jsonl");
  const std::string moved = R"({"question": "who", "context": "a ship", "answers": {"text": ["ship"], )"
                            R"("answer_start": [9]}})"
                            "\n";
  folder.write("some.jsonl", moved + good + "no JSON\n" + moved);
  const Result whole = result_of(folder, folder.run("train run.yaml --json"));
  const Outcome some = folder.run("train run.yaml data.train=some.jsonl data.on_error=skip output.dir=some");
  ASSERT_EQ(some.exit_code, 0) << some.err;
  EXPECT_TRUE(folder.read("some/final/model.safetensors") == whole.model);
  EXPECT_THAT(some.out + some.err,
              AllOf(HasSubstr("skipped 2 examples: bad label"), HasSubstr("skipped 1 example: not JSON")));
}

TEST_F(QuestionsRun, WhatPredictCannotDo) {
  const Folder folder;
  write_all(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  const std::string ok = R"({"question": "who", "context": "a ship"})"
                         "\n";
  folder.write("ok.jsonl", ok);
  folder.write("broken.jsonl", ok + "{\"question\": \"who\", \"context\": \n");
  folder.write("context.jsonl", ok + "{\"question\": \"who\"}\n");
  folder.write("off.jsonl", ok + R"({"question": "who", "context": "a ship", "answers": )"
                                 R"([{"text": "ship", "answer_start": 0}]})");
  std::string words;
  for (int i = 0; i < 60; ++i) words += "ship ";
  folder.write("long.jsonl", ok + "{\"question\": \"who\", \"context\": \"" + words + "\"}\n");
  folder.write("empty.jsonl", "");
  folder.write("text.txt", "text");
  std::filesystem::copy(folder.path("out/final"), folder.path("bare"));
  std::filesystem::remove(folder.path("bare/tokenizer.json"));
  const struct {
    const char* arguments;
    int exit_code;
    const char *what, *hint;
  } rows[] = {
      {"--data broken.jsonl", 65, "broken.jsonl: line 2", "none is skipped"},
      {"--data context.jsonl", 65, "the question has no \"context\": context.jsonl: line 2",
       "none is skipped"},
      {"--data off.jsonl", 65, "does not stand at character 0 of the context: off.jsonl: line 2", ""},
      {"--data long.jsonl", 65, "windows share 128: long.jsonl: line 2", "--max-length"},
      {"--data long.jsonl --max-length 9", 65, "windows share 128: long.jsonl: line 2", "--doc-stride"},
      {"--data ok.jsonl --max-length 3", 65, "which leaves 0 of 3 to the context", "--max-length"},
      {"--data empty.jsonl", 65, "the file is empty", ""},
      {"--data absent.jsonl", 65, "absent.jsonl", "check the path"},
      {"--data text.txt", 2, "text.txt", ""},
      {"--data ok.jsonl --memory-budget 1MiB", 69, "tokenizing", "--memory-budget "},
      {"--data ok.jsonl --output none/lines.jsonl", 74, "none/lines.jsonl", ""},
      {"--data ok.jsonl --null-threshold many", 2, "--null-threshold", ""},
      {"--data ok.jsonl --n-best 0", 2, "--n-best", ""},
      {"--data ok.jsonl --doc-stride -1", 2, "--doc-stride", ""},
      {"--data ok.jsonl --max-answer-length 0", 2, "--max-answer-length", ""},
      {"--model bare --data ok.jsonl", 65, "the model has no tokenizer: bare", "questions are texts"},
  };
  for (const auto& row : rows) {
    const std::string arguments = row.arguments;
    const Outcome outcome = folder.run(
        "predict " + std::string(arguments.starts_with("--model") ? "" : "--model out/final ") + arguments +
        (arguments.find("--output") == std::string::npos ? " --output lines.jsonl" : ""));
    EXPECT_EQ(outcome.exit_code, row.exit_code) << arguments << ": " << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(row.what), HasSubstr(row.hint))) << arguments;
    EXPECT_THAT(outcome.err, Not(HasSubstr("qa.doc_stride"))) << "a setting of runs";
    EXPECT_FALSE(std::filesystem::exists(folder.path("lines.jsonl"))) << arguments;
  }
  EXPECT_THAT(folder.run("predict --help").out,
              AllOf(HasSubstr("--null-threshold"), HasSubstr("--doc-stride"),
                    HasSubstr("of a model that answers questions")));
  EXPECT_THAT(folder.run("generate --model out/final --prompt x").err, HasSubstr("plimsoll predict"));
}

}  // namespace
}  // namespace plimsoll::e2e
