#include "planner/programs/program_cache.h"

#include <gtest/gtest.h>

namespace plimsoll::planner {
namespace {

BeginningKey key(int64_t micro_batch_size) {
  return {{passes::ProgramRole::kStep}, micro_batch_size, 128, 256};
}

TEST(ProgramCacheTest, KeepsTheLastBeginnings) {
  ProgramCache cache;
  const auto most = static_cast<int64_t>(ProgramCache::kMostBeginnings);
  for (int64_t size = 1; size <= most + 1; ++size) cache.add_beginning({.key = key(size), .graph = {}});
  EXPECT_EQ(cache.num_beginnings(), ProgramCache::kMostBeginnings);
  EXPECT_EQ(cache.find_beginning(key(1)), nullptr) << "the oldest goes";
  ASSERT_NE(cache.find_beginning(key(most + 1)), nullptr);
  EXPECT_EQ(cache.find_beginning(key(most + 1))->key, key(most + 1));
}

TEST(ProgramCacheTest, ABeginningIsFoundByAllThatItDependsOn) {
  ProgramCache cache;
  cache.add_beginning({.key = key(1), .graph = {}});
  BeginningKey other = key(1);
  other.id.bucket = 64;
  EXPECT_EQ(cache.find_beginning(other), nullptr);
  other = key(1);
  other.chunk_tokens = 128;
  EXPECT_EQ(cache.find_beginning(other), nullptr);
}

TEST(ProgramCacheTest, HasTheUpdateOfTheLastGradientsAndOffload) {
  ProgramCache cache;
  const std::vector<GradientStates> gradients = {{"w", {"grad.w"}}};
  passes::OffloadOptions offloaded;
  offloaded.spaces.fill(ir::MemorySpace::kHostPinned);
  const UpdateKey key{.gradients = gradients};
  EXPECT_EQ(cache.find_update(key), nullptr);
  cache.set_update(key, {.id = {passes::ProgramRole::kUpdate}, .graph = {}, .binding = {}});
  EXPECT_NE(cache.find_update(key), nullptr);
  EXPECT_EQ(cache.find_update({}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .offload = offloaded}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .overlaps_ranks = true}), nullptr);
  EXPECT_EQ(cache.find_update({.gradients = gradients, .gathers_late = true}), nullptr);
}

}  // namespace
}  // namespace plimsoll::planner
