// A run file that is put together line by line.
#include "analysis/run_draft.h"

#include <gtest/gtest.h>

namespace plimsoll::analysis {
namespace {

TEST(RunDraft, WritesSectionsInTheOrderOfTheirFirstLines) {
  RunDraft draft;
  draft.add("model.path", "m", "where");
  draft.add("task", "causal_lm", "");
  draft.add("training.max_steps", "3", "");
  draft.add("model.init", "random", "");
  draft.add("training.state.weights", "bf16", "");
  EXPECT_EQ(draft.yaml(),
            "model:\n  path: m                          # where\n  init: random\n"
            "task: causal_lm\ntraining.state.weights: bf16\ntraining:\n  max_steps: 3\n");
}

TEST(RunDraft, ChangesAndRemoves) {
  RunDraft draft;
  draft.add("lora.r", "16", "");
  draft.add("lora.lora_alpha", "32", "");
  draft.change("lora.r", "4", "");
  draft.change("training.seed", "7", "");
  EXPECT_EQ(draft.yaml(), "lora:\n  r: 4\n  lora_alpha: 32\ntraining:\n  seed: 7\n");
  draft.remove("lora");
  draft.remove("training.seed");
  EXPECT_EQ(draft.yaml(), "");
}

}  // namespace
}  // namespace plimsoll::analysis
