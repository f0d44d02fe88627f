#include "library/trace_scopes.h"

#include <gtest/gtest.h>

namespace plimsoll::library {
namespace {

void push(TraceScopes& scopes, std::string_view kind, std::string_view argument = {}) {
  ASSERT_TRUE(scopes.push(kind, argument));
}

TEST(TraceScopes, ModulesNameLayersAndListsMakeBlocks) {
  TraceScopes scopes;
  EXPECT_EQ(scopes.layer(), "");
  push(scopes, "module", "decoder");
  EXPECT_EQ(scopes.block(), ir::kNoBlock);
  push(scopes, "module", "decoder.layers.0");  // the whole name
  EXPECT_EQ(scopes.block(), 0);
  push(scopes, "module", "up");  // a part of it
  EXPECT_EQ(scopes.layer(), "decoder.layers.0.up");
  EXPECT_EQ(scopes.block(), 0);
  push(scopes, "module", "parts.3");  // a list within a block
  EXPECT_EQ(scopes.block(), 0);
  ASSERT_TRUE(scopes.pop());
  ASSERT_TRUE(scopes.pop());
  ASSERT_TRUE(scopes.pop());
  push(scopes, "module", "layers.0");  // another list: block 1 and not 0
  EXPECT_EQ(scopes.block(), 1);
  EXPECT_EQ(scopes.layer(), "decoder.layers.0#1");
  ASSERT_TRUE(scopes.pop());
  ASSERT_TRUE(scopes.pop());
  EXPECT_FALSE(scopes.pop());
}

TEST(TraceScopes, CheckpointsAreBlocksOfTheirOwn) {
  TraceScopes scopes;
  push(scopes, "module", "layers.0");
  push(scopes, "checkpoint");
  EXPECT_EQ(scopes.block(), 1);
  EXPECT_EQ(scopes.layer(), "layers.0.checkpoint#1");
  push(scopes, "checkpoint");  // the outer one has it
  EXPECT_EQ(scopes.block(), 1);
  ASSERT_TRUE(scopes.pop());
  ASSERT_TRUE(scopes.pop());
  EXPECT_EQ(scopes.block(), 0);
  EXPECT_EQ(scopes.checkpointed(), std::vector<int32_t>{1});
}

TEST(TraceScopes, AutocastIsAPartOfTheLayer) {
  TraceScopes scopes;
  push(scopes, "autocast", "bfloat16");
  push(scopes, "module", "head");
  EXPECT_EQ(scopes.layer(), "head.autocast:bf16");
  EXPECT_EQ(scopes.precision(), "bf16");
  push(scopes, "autocast", "fp32");
  EXPECT_EQ(scopes.layer(), "head.autocast:fp32");
  EXPECT_EQ(scopes.precision(), "fp32");
}

TEST(TraceScopes, RefusesWhatThereIsNot) {
  TraceScopes scopes;
  EXPECT_FALSE(scopes.push("autocast", "fp8"));
  EXPECT_FALSE(scopes.push("module", ""));
  EXPECT_FALSE(scopes.push("loop", "x"));
  EXPECT_FALSE(scopes.is_open());
}

}  // namespace
}  // namespace plimsoll::library
