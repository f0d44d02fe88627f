// A run that takes milliseconds: one layer, a text of a few lines.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/temporary_folder.h"
#include "settings/settings.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "training/trainer.h"

namespace plimsoll::training {

class TinyRun {
 public:
  TinyRun() {
    std::ofstream text(folder_.path("train.txt"));
    for (int i = 0; i < 20; ++i) text << "line " << i * i << " of a text\n";
    std::ofstream(folder_.path("eval.txt")) << "a line that is held out, and another one\n";
  }

  [[nodiscard]] std::string path(const std::string& name) const { return folder_.path(name); }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }

  /// Two steps of four sequences into `out`, without evaluations and without checkpoints but the last one's.
  [[nodiscard]] settings::RunConfig config(std::vector<std::string> overrides = {},
                                           const std::string& out = "out") const {
    const std::string run =
        "model:\n  config: {model_type: llama, vocab_size: 259, hidden_size: 16, intermediate_size: 16, "
        "num_hidden_layers: 1,\n    num_attention_heads: 2, num_key_value_heads: 1, "
        "max_position_embeddings: 32, rms_norm_eps: 1.0e-5}\n"
        "data: {train: " +
        path("train.txt") + ", sequence_length: 16, tokenizer: bytes, cache_dir: " + path("cache") +
        "}\noutput: {dir: " + path(out) +
        "}\ntraining: {global_batch_size: 4, micro_batch_size: 4, max_steps: 2, learning_rate: 1.0e-2}\n"
        "runtime: {threads: 1}\nmemory: {budget: 1GiB}\n";
    auto parsed = settings::parse_run_config(run, "run.yaml", overrides);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message());
    return parsed ? std::move(*parsed) : settings::RunConfig();
  }
  [[nodiscard]] std::string held_out() const { return "data.eval=" + path("eval.txt"); }

 private:
  io::TemporaryFolder folder_;
};

/// A trainer with its device, which outlives it.
struct TinyTrainer {
  explicit TinyTrainer(const settings::RunConfig& run, const TrainerOptions& options = {}) : config(run) {
    auto prepared = strategy::prepare(config, *strategy::make_target(config, 1), {.num_threads = 1});
    if (!prepared) {
      error = prepared.error();
      return;
    }
    auto made = strategy::make_device(config, 1, prepared->report.disk_bytes);
    EXPECT_TRUE(made);
    device = std::move(*made);
    auto created = Trainer::create(config, std::move(*prepared), *device, options);
    if (created)
      trainer = std::move(*created);
    else
      error = created.error();
  }
  Trainer& operator*() const { return *trainer; }
  Trainer* operator->() const { return trainer.get(); }

  settings::RunConfig config;
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<Trainer> trainer;  ///< null where there is an error
  std::optional<Error> error;
};

}  // namespace plimsoll::training
