// Adapters of TRL, axolotl and torchtune: what is asked for is what the run file says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "imported.h"

namespace plimsoll::importing {
namespace {

TEST(SettleAdapters, TrlsKeys) {
  const auto imported = import_text(
      "max_length: 64\nuse_peft: true\nlora_r: 4\nlora_alpha: 16\nuse_rslora: true\nuse_dora: true\n"
      "lora_modules_to_save: [lm_head]\nlora_target_modules: [all-linear]\n");
  EXPECT_EQ(setting_of(imported, "lora.use_rslora"), "true");
  EXPECT_EQ(setting_of(imported, "lora.use_dora"), "true");
  EXPECT_EQ(setting_of(imported, "lora.modules_to_save"), "[lm_head]");
  EXPECT_EQ(setting_of(imported, "lora.target_modules"), "all-linear");
  for (const char* key : {"use_rslora", "use_dora", "lora_modules_to_save", "lora_target_modules"})
    EXPECT_EQ(fate_of(imported, key), "mapped") << key;
  const auto off = import_text("max_length: 64\nuse_rslora: true\nlora_modules_to_save: [lm_head]\n");
  EXPECT_EQ(fate_of(off, "use_rslora"), "harmless") << "all parameters are trained";
  EXPECT_EQ(setting_of(off, "lora.use_rslora"), "null");
}

/// A list of one is the text in it: PEFT takes that as a regular expression.
TEST(SettleAdapters, TrlsListOfOne) {
  const auto modules = [](const std::string& list) {
    return setting_of(import_text("max_length: 64\nuse_peft: true\nlora_target_modules: " + list + "\n"),
                      "lora.target_modules");
  };
  EXPECT_EQ(modules("['.*_proj$']"), "\".*_proj$\"");
  EXPECT_EQ(modules("[q_proj]"), "[q_proj]");
  EXPECT_EQ(modules("[q_proj, v_proj]"), "[q_proj, v_proj]");
  EXPECT_EQ(modules("'.*_proj$'"), "\".*_proj$\"");
}

TEST(SettleAdapters, AxolotlsKeys) {
  const auto imported = import_text(
      "base_model: x\nadapter: lora\nlora_r: 8\nlora_target_linear: true\npeft_use_rslora: true\n"
      "peft_use_dora: true\nlora_modules_to_save: [embed_tokens, lm_head]\npeft_layers_to_transform: [0, 2]\n"
      "peft_layers_pattern: layers\npeft_init_lora_weights: pissa\n");
  const std::pair<const char*, const char*> rows[] = {{"lora.use_rslora", "true"},
                                                      {"lora.use_dora", "true"},
                                                      {"lora.modules_to_save", "[embed_tokens, lm_head]"},
                                                      {"lora.layers_to_transform", "[\"0\", \"2\"]"},
                                                      {"lora.layers_pattern", "[layers]"},
                                                      {"lora.init_lora_weights", "pissa"}};
  for (const auto& [path, value] : rows) EXPECT_EQ(setting_of(imported, path), value);
  // Of some layers alone they are named: all-linear is of all.
  EXPECT_EQ(setting_of(imported, "lora.target_modules"),
            "[q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]");
  const auto all = import_text("base_model: x\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n");
  EXPECT_EQ(setting_of(all, "lora.target_modules"), "all-linear");
  EXPECT_EQ(fate_of(imported, "lora_target_linear"), "mapped");
}

TEST(SettleAdapters, AxolotlsAllLinearBesideNames) {
  const std::string file = "base_model: x\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n";
  const auto both = import_text(file + "lora_target_modules: [q_proj, v_proj]\n");
  EXPECT_EQ(setting_of(both, "lora.target_modules"), "all-linear");
  EXPECT_EQ(fate_of(both, "lora_target_modules"), "mapped");
  const auto more = import_text(file + "lora_target_modules: [q_proj, lm_head]\n");
  EXPECT_EQ(fate_of(more, "lora_target_modules"), "no equal") << "all-linear has no head";
  const auto off = import_text(
      "base_model: x\nadapter: lora\nlora_r: 8\nlora_target_linear: false\nlora_target_modules: [q_proj]\n");
  EXPECT_EQ(setting_of(off, "lora.target_modules"), "[q_proj]");
}

TEST(SettleAdapters, AxolotlGoesOnWithAnAdapter) {
  const auto imported = import_text("base_model: x\nadapter: lora\nlora_model_dir: ./last\n");
  EXPECT_EQ(setting_of(imported, "lora.adapter"), "./last");
  EXPECT_EQ(setting_of(imported, "lora.r"), "null") << "the adapter has its own";
  EXPECT_EQ(fate_of(imported, "adapter"), "mapped");
}

TEST(SettleAdapters, TorchtunesKeys) {
  const std::string file =
      "model:\n  _component_: torchtune.models.llama3.lora_llama3_8b\n  lora_rank: 8\n  use_dora: true\n"
      "  lora_attn_modules: [q_proj, output_proj]\n  apply_lora_to_output: ";
  const auto imported = import_text(file + "true\n");
  EXPECT_EQ(setting_of(imported, "lora.use_dora"), "true");
  EXPECT_EQ(setting_of(imported, "lora.target_modules"), "[q_proj, o_proj, lm_head]");
  EXPECT_EQ(setting_of(import_text(file + "false\n"), "lora.target_modules"), "[q_proj, o_proj]");
}

}  // namespace
}  // namespace plimsoll::importing
