#include "preprocessing/run_hints.h"

#include <gtest/gtest.h>

#include "corpora/reasons.h"

namespace plimsoll::preprocessing {
namespace {

TEST(RunHints, NameSettingsInTheFormThatARunTakes) {
  const auto hint = [](const std::string& text) {
    return in_words_of_runs({ErrorCode::kBadData, "x", "y", text}).hint;
  };
  EXPECT_EQ(hint(corpora::kSkipHint), "correct it, or skip such examples and count them: data.on_error=skip");
  EXPECT_EQ(hint("set eos_token in tokenizer_config.json, or name it: --eos-token"),
            "set eos_token in tokenizer_config.json");
  EXPECT_EQ(hint("read docs/data.md"), "read docs/data.md");
}

}  // namespace
}  // namespace plimsoll::preprocessing
