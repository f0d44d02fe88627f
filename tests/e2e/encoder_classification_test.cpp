// Classification with an encoder: pairs of texts through WordPiece, token types and padding to the model, the
// same bits however it is carried out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

constexpr std::array<const char*, 8> kWords = {"ship", "sea", "sail", "mast", "rope", "port", "wave", "deck"};

std::string tokenizer() {
  std::string vocab = R"("[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4)";
  std::string added;
  int id = 5;
  for (const char* word : kWords) vocab += std::string(", \"") + word + "\": " + std::to_string(id++);
  vocab += ", \"##s\": " + std::to_string(id);
  int special = 0;
  for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})
    added +=
        std::string(added.empty() ? "" : ", ") + "{\"id\": " + std::to_string(special++) +
        ", \"content\": \"" + token +
        R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true})";
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

/// Pairs of texts of one to twelve words each: label 1 where both begin with the same word.
std::string pairs(int count, unsigned seed) {
  const auto draw = [&seed](unsigned end) {
    seed = seed * 1664525U + 1013904223U;
    return (seed >> 8) % end;
  };
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const unsigned first = draw(8);
    const bool same = i % 2 == 1;
    const auto text = [&](unsigned word) {
      std::string words = kWords[word];
      for (unsigned more = draw(12); more > 0; --more) words += std::string(" ") + kWords[draw(8)];
      return words;
    };
    lines += "{\"sentence1\": \"" + text(first) + "\", \"sentence2\": \"" +
             text(same ? first : (first + 1 + draw(7)) % 8) + "\", \"label\": " + (same ? "1" : "0") + "}\n";
  }
  return lines;
}

class EncoderClassification : public testing::Test {
 protected:
  static void write_all(const Folder& folder) {
    folder.write("tokenizer.json", tokenizer());
    folder.write("train.jsonl", pairs(37, 1));
    folder.write("matched.jsonl", pairs(13, 9));
    folder.write("mismatched.jsonl", pairs(7, 5));
    folder.write("run.yaml", R"(task: sequence_classification
model:
  config: {model_type: bert, vocab_size: 14, hidden_size: 48, num_hidden_layers: 2, num_attention_heads: 3,
           intermediate_size: 64, max_position_embeddings: 24, type_vocab_size: 2, pad_token_id: 0,
           hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1}
data: {train: train.jsonl, eval: {matched: matched.jsonl, mismatched: mismatched.jsonl},
       tokenizer: tokenizer.json, sequence_length: 20, buckets: [8, 14]}
training: {global_batch_size: 8, max_steps: 4, learning_rate: 1.0e-3, lr_scheduler: constant}
output: {dir: out}
)");
  }
  static Result trained(const std::string& overrides) {
    const Folder folder;
    write_all(folder);
    return result_of(folder, folder.run("train run.yaml --json " + overrides));
  }
};

TEST_F(EncoderClassification, HasTheSameBitsHoweverItIsCarriedOut) {
  const Result whole = trained("runtime.threads=1");
  EXPECT_THAT(whole.events, HasSubstr("\"f1\": "));
  EXPECT_FALSE(whole.model.empty());
  for (const char* how : {"training.micro_batch_size=1", "training.micro_batch_size=4 runtime.threads=2",
                          "training.micro_batch_size=2 debug.poison=true", "memory.recompute=none",
                          "memory.recompute=full", "debug.plan=separate debug.poison=true"}) {
    const Result other = trained(how);
    EXPECT_EQ(other.events, whole.events) << how;
    EXPECT_TRUE(other.model == whole.model) << how;
  }
}

TEST_F(EncoderClassification, GoesOnFromACheckpoint) {
  const Result whole = trained("");
  const Folder folder;
  write_all(folder);
  const Outcome first = folder.run("train run.yaml training.max_steps=2 output.save_steps=2");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Result rest = result_of(folder, folder.run("train run.yaml output.save_steps=2 --json"));
  EXPECT_TRUE(rest.model == whole.model);
}

/// The answers of `predict`, a line for each example.
std::vector<std::string> answers(const Folder& folder, const std::string& data,
                                 const std::string& more = "") {
  const Outcome outcome = folder.run("predict --model out/final --data " + data + " " + more);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST_F(EncoderClassification, PaddingAndNeighboursDoNotShow) {
  const Folder folder;
  write_all(folder);
  const Outcome trained = folder.run("train run.yaml training.max_steps=2");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string data = pairs(9, 77);
  folder.write("all.jsonl", data);
  const std::vector<std::string> together = answers(folder, "all.jsonl");
  ASSERT_EQ(together.size(), 9U);
  std::istringstream text(data);
  size_t row = 0;
  for (std::string line; std::getline(text, line); ++row) {
    folder.write("one.jsonl", line + "\n");
    EXPECT_EQ(answers(folder, "one.jsonl"), std::vector{together[row]}) << line;
  }
  // Tokens and types as they stand give the same answer; other types give another.
  folder.write("text.jsonl", R"({"text": "ship sails", "text_pair": "wave"})"
                             "\n");
  folder.write(
      "ids.jsonl",
      R"({"input_ids": [2, 5, 7, 13, 3, 11, 3, 0, 0], "token_type_ids": [0, 0, 0, 0, 0, 1, 1, 0, 0]})"
      "\n");
  folder.write("plain.jsonl", R"({"input_ids": [2, 5, 7, 13, 3, 11, 3]})"
                              "\n");
  EXPECT_EQ(answers(folder, "ids.jsonl"), answers(folder, "text.jsonl"));
  EXPECT_NE(answers(folder, "plain.jsonl"), answers(folder, "text.jsonl"));
}

TEST_F(EncoderClassification, PredictCutsAsTrainingDoes) {
  const Folder folder;
  write_all(folder);
  ASSERT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
  folder.write("long.jsonl", R"({"text": "ship sea sail mast rope port", "text_pair": "wave"})"
                             "\n");
  folder.write("short.jsonl", R"({"text": "ship sea sail mast", "text_pair": "wave"})"
                              "\n");
  EXPECT_EQ(answers(folder, "long.jsonl", "--max-length 8"), answers(folder, "short.jsonl"));
}

TEST_F(EncoderClassification, EvaluationsHaveMetricsForEachSet) {
  const Folder folder;
  write_all(folder);
  const Outcome trained = folder.run(
      "train run.yaml --json training.eval_steps=2 output.save_steps=2 load_best_model_at_end=true "
      "training.metric_for_best_model=eval_mismatched_f1");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string last = trained.out.substr(trained.out.rfind("{\"event\": \"eval\""));
  EXPECT_THAT(last, HasSubstr("\"matched\": {"));
  EXPECT_THAT(last, HasSubstr("\"mismatched\": {"));
  const Outcome again =
      folder.run("eval run.yaml model.path=out/final model.config=null data.tokenizer=auto");
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("f1"));
}

TEST_F(EncoderClassification, SaysWhatIsWrong) {
  const Folder folder;
  write_all(folder);
  const Outcome longer = folder.run("plan run.yaml data.sequence_length=25");
  EXPECT_EQ(longer.exit_code, 2);
  EXPECT_THAT(longer.err, HasSubstr("data.sequence_length (25) exceeds the model's 24 positions"));
  folder.write("types.jsonl",
               "{\"input_ids\": [5], \"label\": 0}\n"
               "{\"input_ids\": [5, 6], \"token_type_ids\": [0, 2], \"label\": 1}\n");
  const Outcome types = folder.run("train run.yaml data.train=types.jsonl");
  EXPECT_EQ(types.exit_code, 65);
  EXPECT_THAT(types.err,
              HasSubstr("\"token_type_ids\" holds 2, expected types below 2: types.jsonl: line 2"));
  const Outcome room = folder.run("train run.yaml data.sequence_length=2 data.buckets=null");
  EXPECT_EQ(room.exit_code, 2) << room.err;
  EXPECT_THAT(room.err, HasSubstr("2 tokens are fewer than the 3 special ones of a pair"));
}

}  // namespace
}  // namespace plimsoll::e2e
