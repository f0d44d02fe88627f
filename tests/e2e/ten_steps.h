// A run of ten steps that saves every three, for tests that stop it, damage what it left, or let it go on.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "program.h"

namespace plimsoll::e2e {

inline constexpr const char* kLlama =
    "{model_type: llama, vocab_size: 259, hidden_size: 24, intermediate_size: 36, num_hidden_layers: 2, "
    "num_attention_heads: 2, num_key_value_heads: 1, head_dim: 12, max_position_embeddings: 400, "
    "rms_norm_eps: "
    "1.0e-5, tie_word_embeddings: true, attention_bias: true}";
inline constexpr const char* kGpt2 =
    "{model_type: gpt2, vocab_size: 259, n_embd: 24, n_layer: 2, n_head: 2, n_positions: 400, resid_pdrop: "
    "0, "
    "embd_pdrop: 0, attn_pdrop: 0}";

/// Ten steps of four sequences over less than an epoch's worth, saved every three.
inline std::string run_text(const std::string& model = kLlama) {
  return "model: {config: " + model +
         ", init: random}\ndata: {train: train.txt, eval: eval.txt, sequence_length: 270}\n"
         "output: {dir: out, save_steps: 3}\n"
         "training: {global_batch_size: 4, max_steps: 10, learning_rate: 1.0e-3, lr_scheduler: linear, "
         "warmup_steps: 2, eval_steps: 4}\n";
}

inline void prepare_ten_steps(const Folder& folder, const std::string& model = kLlama) {
  folder.write("train.txt", some_text(8'000));
  folder.write("eval.txt", some_text(900));
  folder.write("run.yaml", run_text(model));
}

/// What each step and evaluation said, without its times, by "event step".
inline std::map<std::string, std::string> events_by_step(const Outcome& outcome) {
  std::map<std::string, std::string> result;
  for (size_t begin = 0, end; (end = outcome.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = outcome.out.substr(begin, end - begin);
    if (line.starts_with("{\"event\": \"step\"") || line.starts_with("{\"event\": \"eval\""))
      result[line.substr(0, line.find(", \"loss\""))] = line.substr(0, line.find(", \"step_seconds\""));
  }
  return result;
}

struct Reference {
  std::map<std::string, std::string> said;
  std::string model;
};

inline Reference undisturbed(const std::string& model = kLlama, const std::string& overrides = "") {
  const Folder folder;
  prepare_ten_steps(folder, model);
  const Outcome outcome =
      folder.run("train run.yaml --json runtime.threads=1 output.save_steps=0 " + overrides);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path("out/checkpoint-10")));
  return {events_by_step(outcome), folder.read("out/final/model.safetensors")};
}

inline const Reference& reference() {
  static const Reference result = undisturbed();
  return result;
}

}  // namespace plimsoll::e2e
