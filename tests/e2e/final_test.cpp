// What a run leaves: a model directory with all that it needs to be used, and a card that says what it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "program.h"
#include "tensors.h"

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

/// The tensors of all files that an index names; each must be where it says.
Tensors read_shards(const Folder& folder, const std::string& directory) {
  const auto index = io::parse_json(folder.read(directory + "/model.safetensors.index.json"));
  EXPECT_TRUE(index);
  Tensors all;
  int64_t bytes = 0;
  for (const auto& [name, file] : index->find("weight_map")->members) {
    const Tensors shard = read_tensors(folder.read(directory + "/" + file.text));
    all[name] = shard.at(name);
    bytes += static_cast<int64_t>(all[name].bytes.size());
  }
  EXPECT_EQ(index->find("metadata")->find("total_size")->integer, bytes);
  return all;
}

TEST(Final, IsStoredAsOutputSaysInFilesOfThatSize) {
  const Folder folder;
  folder.write("train.txt", some_text(6000));
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 2, eval_strategy: no}\n"));
  const std::string command = "train run.yaml output.save_steps=2 data.eval=[]";
  ASSERT_EQ(folder.run(command).exit_code, 0);
  const std::string exact = folder.read("out/final/model.safetensors");
  EXPECT_EQ(exact, folder.read("out/checkpoint-2/model.safetensors"))
      << "random weights are kept as they are";

  const std::string in_shards = command + " output.dtype=bf16 output.max_shard_size=30KB";
  const Outcome again = folder.run(in_shards);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(folder.read("out/final/config.json"), HasSubstr("\"dtype\": \"bfloat16\""));
  EXPECT_THAT(folder.read("out/checkpoint-2/config.json"), HasSubstr("\"dtype\": \"float32\""));
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/final/model.safetensors")));
  const Tensors wide = read_tensors(exact), rounded = read_shards(folder, "out/final");
  ASSERT_EQ(wide.size(), rounded.size());
  for (const auto& [name, tensor] : rounded) {
    ASSERT_EQ(tensor.dtype, "BF16");
    for (size_t i = 0; i < tensor.bytes.size() / 2; ++i) {
      uint32_t bits = 0;
      uint16_t brief = 0;
      std::memcpy(&bits, wide.at(name).bytes.data() + 4 * i, 4);
      std::memcpy(&brief, tensor.bytes.data() + 2 * i, 2);
      ASSERT_EQ(brief, (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16) << name << " " << i;
    }
  }
  EXPECT_THAT(folder.run(in_shards).err, HasSubstr("nothing is left to do"));
  EXPECT_EQ(folder.run("generate --model out/final --prompt the --max-new-tokens 2").exit_code, 0);
}

/// auto: the dtype that the model came in; a value that it cannot hold is named, and the run is not lost.
TEST(Final, AutoIsTheDtypeThatTheModelCameIn) {
  const Folder folder;
  folder.write("train.txt", some_text(6000));
  folder.write("run.yaml", run_file("training: {global_batch_size: 2, max_steps: 2, eval_strategy: no}\n"));
  ASSERT_EQ(folder.run("train run.yaml data.eval=[] output.dtype=fp16 output.dir=first").exit_code, 0);
  const std::string tune =
      "train run.yaml data.eval=[] model.config=null model.init=auto model.path=first/final ";
  const Outcome tuned = folder.run(tune);
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_EQ(read_tensors(folder.read("out/final/model.safetensors")).begin()->second.dtype, "F16");
  const std::string flies = tune +
                            "output.dir=far training.optimizer=sgd training.weight_decay=0 "
                            "training.max_grad_norm=0 training.learning_rate=1000000 training.max_steps=1 "
                            "training.lr_scheduler=constant ";
  const Outcome far = folder.run(flies);
  ASSERT_EQ(far.exit_code, 65) << far.err;
  EXPECT_THAT(far.err, HasSubstr("beyond fp16's 65504"));
  const Outcome wide = folder.run(flies + "output.dtype=bf16");
  EXPECT_EQ(wide.exit_code, 0) << wide.err;
  EXPECT_THAT(wide.err, HasSubstr("resuming after step 1"));
}

}  // namespace
}  // namespace plimsoll::e2e
