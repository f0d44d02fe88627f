// What a run leaves: a model directory with all that it needs to be used, and a card that says what it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "program.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

/// A run from model.config, a tokenizer and a template that lie elsewhere.
TEST(Final, HoldsTheTokenizerAndTheTemplateThatTheRunUsed) {
  const Folder folder;
  std::string chats;
  for (int i = 0; i < 40; ++i)
    chats += R"({"messages": [{"role": "user", "content": ")" + some_text(20 + i) +
             R"("}, {"role": "assistant", "content": ")" + some_text(30 + i % 7) + "\"}]}\n";
  folder.write("chats.jsonl", chats);
  folder.write("book.txt", some_text(9000));
  folder.write("chat.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}");
  const Outcome made = folder.run(
      "data tokenizer --input book.txt --vocab-size 290 --special-token '<|endoftext|>' --special-token "
      "'<|im_end|>' --output tok");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  folder.write(
      "run.yaml",
      "model:\n  config: {model_type: qwen2, vocab_size: 300, hidden_size: 32, intermediate_size: 40, "
      "num_hidden_layers: 1,\n    num_attention_heads: 2, num_key_value_heads: 1, "
      "max_position_embeddings: 128, rms_norm_eps: 1.0e-5}\n"
      "data: {train: chats.jsonl, eval: book.txt, sequence_length: 64, tokenizer: tok, chat_template: "
      "chat.jinja}\n"
      "training: {global_batch_size: 4, max_steps: 2}\noutput: {dir: out, save_steps: 2}\n");
  const Outcome run = folder.run("train run.yaml");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const std::string at : {"out/final/", "out/checkpoint-2/"}) {
    EXPECT_EQ(folder.read(at + "tokenizer.json"), folder.read("tok/tokenizer.json"));
    EXPECT_THAT(folder.read(at + "tokenizer_config.json"), HasSubstr("<|im_end|>{% endfor %}"));
    EXPECT_EQ(folder.read(at + "chat_template.jinja"), folder.read("chat.jinja"));
    EXPECT_THAT(folder.read(at + "special_tokens_map.json"), HasSubstr("\"eos_token\": \"<|endoftext|>\""));
    EXPECT_THAT(folder.read(at + "generation_config.json"), HasSubstr("\"eos_token_id\": [0, 1]"));
    EXPECT_THAT(folder.read(at + "config.json"), HasSubstr("\"architectures\": [\"Qwen2ForCausalLM\"]"));
  }
  const Outcome text = folder.run("generate --model out/final --prompt 'the ship' --max-new-tokens 4");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  const Outcome done = folder.run("train run.yaml");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("nothing is left to do"));
}

TEST(Final, HasACardOfWhatWasTrained) {
  const Folder folder;
  folder.write("train.txt", some_text(20'000));
  folder.write("eval.txt", some_text(700));
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 3}\n"));
  const Outcome run = folder.run("train run.yaml output.dir=runs/one/ --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const std::string card = folder.read("runs/one/final/README.md");
  for (const char* part :
       {"---\nlibrary_name: transformers\n", "# one\n", "`train.txt`", "`eval.txt`", "| steps | 3 of 2",
        "| training loss | ", "| evaluation | loss ", "| plan | peak ", "  max_steps: 3\n"})
    EXPECT_THAT(card, HasSubstr(part));
  EXPECT_THAT(folder.read("runs/one/final/config.json"), HasSubstr("[\"LlamaForCausalLM\"]"));
  ASSERT_EQ(
      folder.run("train run.yaml output.dir=runs/one/ --resume never training.micro_batch_size=1").exit_code,
      0);
  const std::string again = folder.read("runs/one/final/README.md");
  EXPECT_EQ(card.substr(0, card.find("| plan")), again.substr(0, again.find("| plan"))) << "figures repeat";
}

}  // namespace
}  // namespace plimsoll::e2e
