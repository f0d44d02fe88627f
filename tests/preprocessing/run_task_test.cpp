// The task of a run, and the settings that it does not read.
#include "preprocessing/run_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "settings/settings.h"

namespace plimsoll::preprocessing {
namespace {

using testing::HasSubstr;

/// What is said of a run of such a model with those settings.
std::string said_of(const std::string& model_type, const std::string& settings) {
  const auto run = settings::parse_run_config(
      "model: {config: {model_type: " + model_type + "}}\n" + settings, "run.yaml");
  if (!run) return run.error().message();
  const auto model = settings::load_model_config(run->model);
  const auto task = task_of(*run, *model);
  return task ? std::string((*task)->name) : task.error().what + " | " + task.error().hint;
}

TEST(RunTask, RefusesSettingsThatItDoesNotRead) {
  struct Row {
    const char *model, *settings, *refused;
  };
  const Row rows[] = {
      {"vit", "data: {tokenizer: bytes}",
       "data.tokenizer is bytes, which has no effect with task image_classification"},
      {"vit", "data: {sequence_length: 64}", "data.sequence_length is 64"},
      {"vit", "data: {packing: pad, buckets: 2}", "data.packing is pad"},
      {"vit", "data: {chat_template: a.jinja}", "data.chat_template is a.jinja"},
      {"gpt2", "data: {images: {size: 64}}", "leave it out: it is for image_classification"},
      {"gpt2", "classification: {num_labels: 3}",
       "leave it out: it is for sequence_classification and image_classification"},
      {"gpt2", "task: sequence_classification\ndata: {loss: all}", "data.loss is all"},
      {"vit", "task: image_classification\ndata: {tokenizer: bytes}", "data.tokenizer is bytes"},
  };
  for (const Row& row : rows)
    EXPECT_THAT(said_of(row.model, row.settings), HasSubstr(row.refused)) << row.settings;
}

TEST(RunTask, TakesWhatItReads) {
  EXPECT_EQ(said_of("vit", "data: {images: {size: 64}, on_error: skip}\ntraining: {label_smoothing: 0.1}"),
            "image_classification");
  EXPECT_EQ(
      said_of("gpt2", "data: {tokenizer: bytes, sequence_length: 64, packing: pad, buckets: 2, loss: all}"),
      "causal_lm");
  EXPECT_EQ(said_of("gpt2",
                    "task: sequence_classification\ndata: {tokenizer: bytes, packing: pad, buckets: 2}\n"
                    "classification: {num_labels: 3}"),
            "sequence_classification");
}

TEST(RunTask, ReadsSettingsThatThereAre) {
  tasks::for_each_task([](const tasks::TaskDef& task) {
    for (const std::string_view name : task.settings)
      EXPECT_TRUE(std::ranges::any_of(settings::settings(), [&](const settings::Setting& setting) {
        return setting.path == name || (name.ends_with('.') && setting.path.starts_with(name));
      })) << name;
  });
}

}  // namespace
}  // namespace plimsoll::preprocessing
