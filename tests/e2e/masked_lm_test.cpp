// Masked language modelling with an encoder, from texts through WordPiece to a model that others start from:
// it learns, has the same bits however it is carried out, and says what it cannot do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>

#include "program.h"
#include "tensors.h"

namespace plimsoll::e2e {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

class MaskedLmRun : public testing::Test {
 protected:
  static constexpr std::array<const char*, 8> kCycle = {"ship", "sea",  "sail", "mast",
                                                        "rope", "port", "wave", "deck"};

  /// Five special tokens, eight words, two parts of words.
  static std::string word_pieces() {
    std::string vocab, added;
    int id = 0;
    for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
      const std::string number = std::to_string(id++);
      vocab += std::string(vocab.empty() ? "" : ", ") + "\"" + token + "\": " + number;
      added += std::string(added.empty() ? "" : ", ") + "{\"id\": " + number + ", \"content\": \"" + token +
               R"(", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
                  "special": true})";
    }
    for (const char* word : kCycle) vocab += std::string(", \"") + word + "\": " + std::to_string(id++);
    vocab += ", \"##s\": 13, \"##er\": 14";
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
  /// Texts of three to ten words, each the one that follows the last: every second one with an s.
  static std::string texts(int count, unsigned seed) {
    const auto draw = [&seed](unsigned end) {
      seed = seed * 1664525U + 1013904223U;
      return (seed >> 8) % end;
    };
    std::string lines;
    for (int i = 0; i < count; ++i) {
      unsigned word = draw(8);
      std::string text;
      for (unsigned left = 3 + draw(8); left > 0; --left, ++word)
        text += std::string(text.empty() ? "" : " ") + kCycle[word % 8] + (word % 2 == 1 ? "s" : "");
      lines += "{\"text\": \"" + text + "\"}\n";
    }
    return lines;
  }
  static void write_all(const Folder& folder) {
    folder.write("tokenizer.json", word_pieces());
    folder.write("train.jsonl", texts(80, 1));
    folder.write("eval.jsonl", texts(20, 9));
    folder.write("run.yaml", R"(task: masked_lm
model:
  config: {model_type: bert, vocab_size: 15, hidden_size: 48, num_hidden_layers: 2, num_attention_heads: 3,
           intermediate_size: 64, max_position_embeddings: 24, type_vocab_size: 2, pad_token_id: 0,
           hidden_dropout_prob: 0.1, attention_probs_dropout_prob: 0.1}
data: {train: train.jsonl, eval: eval.jsonl, tokenizer: tokenizer.json, sequence_length: 24}
training: {global_batch_size: 8, max_steps: 4, learning_rate: 1.0e-3, lr_scheduler: constant, eval_steps: 2}
output: {dir: out}
)");
  }
  static Result trained(const std::string& overrides) {
    const Folder folder;
    write_all(folder);
    return result_of(folder, folder.run("train run.yaml --json " + overrides));
  }
  /// The number behind that key, of the first event of that kind, or of the last.
  static double figure(const std::string& events, const std::string& kind, const std::string& key,
                       bool last) {
    const std::string event = "{\"event\": \"" + kind + "\"";
    const size_t line = last ? events.rfind(event) : events.find(event);
    const size_t at = line == std::string::npos ? line : events.find("\"" + key + "\": ", line);
    EXPECT_NE(at, std::string::npos) << kind << " " << key;
    return at == std::string::npos ? NAN : std::strtod(events.c_str() + at + key.size() + 4, nullptr);
  }
  /// An array of ids.
  static std::string ids_file(const std::vector<int32_t>& ids) {
    const std::string header =
        "{'descr': '<i4', 'fortran_order': False, 'shape': (" + std::to_string(ids.size()) + ",), }\n";
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(ids.data()), ids.size() * 4);
    return bytes;
  }
  /// A run that is refused, and with what.
  static void expect_refused(const Folder& folder, const std::string& arguments, int code,
                             const std::string& what, const std::string& hint) {
    const Outcome outcome = folder.run(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(what), HasSubstr(hint))) << arguments;
  }
};

TEST_F(MaskedLmRun, LearnsAndIsWhatOthersStartFrom) {
  const Folder folder;
  write_all(folder);
  const std::string learn =
      "train run.yaml training.max_steps=120 training.learning_rate=3e-3 training.eval_steps=60 ";
  const Outcome run = folder.run(learn + "--json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string events = events_of(run.out);
  EXPECT_NEAR(figure(events, "step", "loss", false), std::log(15), 0.4) << "of random weights";
  const double loss = figure(events, "eval", "loss", true);
  EXPECT_LT(loss, 1.6);
  EXPECT_NEAR(figure(events, "eval", "perplexity", true), std::exp(loss), 1e-6);
  const double targets = figure(events, "eval", "targets", true),
               tokens = figure(events, "eval", "tokens", true);
  EXPECT_EQ(targets, figure(events, "eval", "targets", false)) << "the same ones each time";
  EXPECT_GT(targets, 0.05 * tokens);
  EXPECT_LT(targets, 0.25 * tokens);
  EXPECT_THAT(folder.read("out/final/config.json"), HasSubstr(R"("architectures": ["BertForMaskedLM"])"));
  EXPECT_THAT(folder.read("out/final/README.md"),
              AllOf(HasSubstr("pipeline_tag: fill-mask\n"),
                    HasSubstr("A masked language model of the bert family with "), HasSubstr("perplexity")));
  EXPECT_EQ(folder.read("out/final/tokenizer.json"), folder.read("tokenizer.json"));
  const Tensors saved = read_tensors(folder.read("out/final/model.safetensors"));
  for (const char* name :
       {"cls.predictions.bias", "cls.predictions.transform.dense.weight",
        "cls.predictions.transform.LayerNorm.bias", "bert.embeddings.word_embeddings.weight"})
    EXPECT_THAT(saved, Contains(Key(name)));
  EXPECT_THAT(saved, Not(Contains(Key(HasSubstr("pooler")))));
  // The same masks whatever the seed, by a task that its config.json names.
  const std::string from_final = " model.path=out/final model.config=null data.tokenizer=auto ";
  const Outcome evaluated = folder.run("eval run.yaml task=auto training.seed=7" + from_final);
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const std::string said = evaluated.out + evaluated.err;
  EXPECT_THAT(said, HasSubstr(", perplexity "));
  EXPECT_THAT(said, HasSubstr(" over " + std::to_string(static_cast<int>(targets)) + " masked tokens of " +
                              std::to_string(static_cast<int>(tokens))));
  const size_t at = said.find("loss ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NEAR(std::strtod(said.c_str() + at + 5, nullptr), loss, 1e-5);
  // More training starts where this ended.
  const Outcome more =
      folder.run("train run.yaml --json task=auto output.dir=more training.max_steps=1" + from_final);
  ASSERT_EQ(more.exit_code, 0) << more.err;
  EXPECT_LT(figure(more.out, "step", "loss", false), 2.0);
  // A classifier draws its head, and the pooler that masked language models do not have.
  std::string labelled;
  for (int i = 0; i < 16; ++i)
    labelled +=
        i % 2 == 0 ? "{\"text\": \"ship seas\", \"label\": 0}\n" : "{\"text\": \"rope\", \"label\": 1}\n";
  folder.write("labelled.jsonl", labelled);
  const Outcome classifier = folder.run(
      "train run.yaml task=sequence_classification output.dir=classes training.max_steps=1 "
      "training.learning_rate=0 data.train=labelled.jsonl data.eval=labelled.jsonl" +
      from_final);
  ASSERT_EQ(classifier.exit_code, 0) << classifier.err;
  const Tensors classes = read_tensors(folder.read("classes/final/model.safetensors"));
  EXPECT_THAT(classes, Contains(Key("bert.pooler.dense.weight")));
  EXPECT_THAT(classes, Not(Contains(Key(HasSubstr("cls.")))));
  EXPECT_TRUE(classes.at("bert.embeddings.word_embeddings.weight").bytes ==
              saved.at("bert.embeddings.word_embeddings.weight").bytes);
  // And a masked language model of the classifier again, with a fresh head.
  const Outcome back = folder.run(
      "train run.yaml output.dir=back training.max_steps=1 model.path=classes/final model.config=null "
      "data.tokenizer=auto");
  EXPECT_EQ(back.exit_code, 0) << back.err;
  expect_refused(folder, "plan run.yaml lora.r=2 model.path=classes/final model.config=null", 2,
                 "the model has no head for masked language models, and an adapter does not save one",
                 "train without lora first");
}

TEST_F(MaskedLmRun, HasTheSameBitsHoweverItIsCarriedOut) {
  const Result whole = trained("runtime.threads=1");
  EXPECT_FALSE(whole.model.empty());
  for (const char* how :
       {"training.micro_batch_size=1", "training.micro_batch_size=4 runtime.threads=2 memory.recompute=full",
        "training.micro_batch_size=2 debug.poison=true memory.recompute=none",
        "debug.plan=separate debug.poison=true"}) {
    const Result other = trained(how);
    EXPECT_EQ(other.events, whole.events) << how;
    EXPECT_TRUE(other.model == whole.model) << how;
  }
  // Rows of one text each, of several lengths; whole words.
  const std::string rows = "data.packing=pad data.buckets=[8,14] mlm.whole_word=true ";
  const Result buckets = trained(rows);
  EXPECT_NE(buckets.events, whole.events);
  const Result other = trained(rows + "training.micro_batch_size=2 debug.poison=true");
  EXPECT_EQ(other.events, buckets.events);
  EXPECT_TRUE(other.model == buckets.model);
}

/// Every setting of masking has an effect, and special tokens have theirs.
TEST_F(MaskedLmRun, ItsSettingsChangeWhatIsTrained) {
  const std::string brief = "training.max_steps=1 training.eval_steps=1 ";
  std::vector<std::string> seen = {trained(brief).events};
  for (const char* change : {"mlm.probability=0.3", "mlm.mask=0.5", "mlm.random=0", "mlm.whole_word=true",
                             "mlm.mask_token=1", "data.add_special_tokens=false", "data.packing=stream"}) {
    const std::string events = trained(brief + change).events;
    EXPECT_THAT(seen, Not(Contains(events))) << change;
    seen.push_back(events);
  }
  EXPECT_EQ(trained(brief + "mlm.mask_token=4 data.add_special_tokens=true").events, seen[0])
      << "what auto comes to";
}

TEST_F(MaskedLmRun, GoesOnFromACheckpoint) {
  const Result whole = trained("training.max_steps=8");  // beyond the first epoch
  const Folder folder;
  write_all(folder);
  const Outcome first = folder.run("train run.yaml training.max_steps=5 output.save_steps=5");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Outcome rest = folder.run("train run.yaml training.max_steps=8 output.save_steps=5 --json");
  EXPECT_THAT(rest.err, HasSubstr("resuming after step 5"));
  EXPECT_TRUE(result_of(folder, rest).model == whole.model);
  const Outcome other =
      folder.run("train run.yaml training.max_steps=9 output.save_steps=5 mlm.probability=0.2");
  EXPECT_EQ(other.exit_code, 2) << other.err;
  EXPECT_THAT(other.err, HasSubstr("mlm.probability"));
}

/// Texts without a word of the vocabulary, and data that are ids: a batch without a masked token has no loss,
/// and its step no gradient.
TEST_F(MaskedLmRun, ABatchWithoutMaskedTokensHasNoLoss) {
  const Folder folder;
  write_all(folder);
  std::string unknown;
  for (int i = 0; i < 40; ++i) unknown += "{\"text\": \"foo bar baz\"}\n";
  folder.write("unknown.jsonl", unknown);
  const std::string none = "data.train=unknown.jsonl data.eval=unknown.jsonl training.max_steps=2 --json";
  for (const char* how : {"", "training.micro_batch_size=2 "}) {
    const Outcome run = folder.run("train run.yaml --resume never " + std::string(how) + none);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, Not(HasSubstr("nan")));
    for (const bool last : {false, true}) {
      EXPECT_EQ(figure(run.out, "step", "loss", last), 0);
      EXPECT_EQ(figure(run.out, "step", "grad_norm", last), 0);
    }
    EXPECT_EQ(figure(run.out, "eval", "targets", true), 0);
    EXPECT_EQ(figure(run.out, "eval", "loss", true), 0);
  }
}

TEST_F(MaskedLmRun, TakesIdsAndBytesWhereTheMaskTokenIsNamed) {
  const Folder folder;
  write_all(folder);
  std::vector<int32_t> ids(600);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = 5 + static_cast<int32_t>(i % 8);
  folder.write("ids.npy", ids_file(ids));
  const std::string of_ids =
      "data.train=ids.npy data.eval=ids.npy data.tokenizer=bytes training.max_steps=1 ";
  folder.write("a.txt", some_text(700));
  const std::string of_bytes = "data.train=a.txt data.eval=a.txt data.tokenizer=bytes training.max_steps=1 ";
  for (const std::string& data : {of_ids, of_bytes})
    expect_refused(folder, "train run.yaml model.overrides.vocab_size=259 " + data, 2,
                   "without a tokenizer nothing says which token masks others", "name a tokenizer");
  expect_refused(folder, "train run.yaml mlm.mask_token=15 " + of_ids, 2,
                 "mlm.mask_token is 15, and the model has 15 tokens", "name an id");
  const Outcome by_ids = folder.run("train run.yaml --json --resume never mlm.mask_token=4 " + of_ids);
  EXPECT_EQ(by_ids.exit_code, 0) << by_ids.err;
  const Outcome by_tokenizer =
      folder.run("train run.yaml --json --resume never data.tokenizer=tokenizer.json " +
                 of_ids.substr(0, of_ids.find("data.tokenizer")) + "training.max_steps=1");
  EXPECT_EQ(by_tokenizer.exit_code, 0) << by_tokenizer.err;
  const Outcome by_bytes = folder.run(
      "train run.yaml --resume never mlm.mask_token=256 model.overrides.vocab_size=259 " + of_bytes);
  EXPECT_EQ(by_bytes.exit_code, 0) << by_bytes.err;
}

/// The table of words has no row for it: nothing may be read there, nor learnt.
TEST_F(MaskedLmRun, AMaskTokenBeyondTheModelIsRefused) {
  const Folder folder;
  write_all(folder);
  std::string pieces = word_pieces();
  for (size_t at = 0; (at = pieces.find("[MASK]", at)) != std::string::npos; ++at)
    pieces.replace(at, 6, "[OTHER]");
  const std::string last = "\"##er\": 14";
  pieces.replace(pieces.find(last), last.size(), "\"[MASK]\": 14");
  folder.write("tokenizer.json", pieces);
  folder.write("ids.npy", ids_file(std::vector<int32_t>(600, 5)));
  const Outcome run = folder.run(
      "train run.yaml data.train=ids.npy data.eval=ids.npy model.overrides.vocab_size=14 "
      "training.max_steps=1");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_THAT(run.err, HasSubstr("mask"));
}

TEST_F(MaskedLmRun, SaysWhatIsWrong) {
  const Folder folder;
  write_all(folder);
  expect_refused(folder, "plan run.yaml task=auto", 2, "the model is an encoder of text",
                 "set task=masked_lm or task=sequence_classification");
  expect_refused(
      folder,
      "plan run.yaml \"model.config={model_type: llama, vocab_size: 15, hidden_size: 24, "
      "intermediate_size: 36, num_hidden_layers: 1, num_attention_heads: 2, num_key_value_heads: 1, "
      "max_position_embeddings: 40}\"",
      2, "task is masked_lm, and the model is no encoder of text", "set task=causal_lm");
  expect_refused(folder, "plan run.yaml data.sequence_length=25", 2,
                 "data.sequence_length (25) exceeds the model's 24 positions", "data.sequence_length=24");
  expect_refused(folder, "plan run.yaml mlm.mask=0.95", 2, "mlm.mask and mlm.random are 1.05 together",
                 "at most 1");
  expect_refused(folder, "plan run.yaml data.loss=all", 2, "data.loss is all, which has no effect",
                 "task=causal_lm");
  expect_refused(folder, "plan run.yaml task=sequence_classification mlm.random=0.2", 2,
                 "mlm.random is 0.2, which has no effect with task sequence_classification",
                 "task=masked_lm");
  expect_refused(folder, "train run.yaml data.tokenizer=bytes", 2,
                 "without a tokenizer only .txt files are read", "set data.tokenizer");
  std::string nameless = word_pieces();
  for (size_t at = 0; (at = nameless.find("[MASK]", at)) != std::string::npos; ++at)
    nameless.replace(at, 6, "[HIDE]");
  folder.write("tokenizer.json", nameless);
  expect_refused(folder, "train run.yaml", 65, "nothing says which token masks others", "mlm.mask_token");
  folder.write("tokenizer_config.json", R"({"mask_token": "[HIDE]"})");
  EXPECT_EQ(folder.run("train run.yaml training.max_steps=1").exit_code, 0);
}

}  // namespace
}  // namespace plimsoll::e2e
