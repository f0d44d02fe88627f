// Memory that is there when a run is planned and not when it begins: said before anything is taken, with what
// fits into what is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "program.h"
#include "sanitizer.h"

namespace plimsoll::e2e {
namespace {

using testing::HasSubstr;

TEST(OutOfMemory, AnAddressSpaceThatIsTooSmallEndsInWhatFits) {
  if (kSanitizer) GTEST_SKIP() << "a sanitizer needs the address space";
  Folder folder;
  folder.write("train.txt", some_text(60'000));
  folder.write(
      "run.yaml",
      "model:\n  config: {model_type: llama, vocab_size: 300, hidden_size: 64, intermediate_size: 96, "
      "num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 2, "
      "max_position_embeddings: 64, tie_word_embeddings: true}\n  init: random\n"
      "data: {train: train.txt, sequence_length: 64}\noutput: {dir: out}\n"
      "training: {global_batch_size: 512, micro_batch_size: 512, max_steps: 1}\n"
      "memory: {budget: 1GiB}\nruntime: {threads: 1}\n");
  const Outcome outcome = folder.run("train run.yaml --json", "ulimit -v 220000 && ");
  EXPECT_EQ(outcome.exit_code, 69) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"fits\": false"));
  EXPECT_THAT(outcome.err, HasSubstr("are left now: this process may not reserve more (ulimit -v)"));
  EXPECT_THAT(outcome.err, HasSubstr("free memory, or set memory.budget="));
}

}  // namespace
}  // namespace plimsoll::e2e
