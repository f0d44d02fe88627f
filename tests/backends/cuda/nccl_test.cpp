#include "backends/cuda/nccl.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace plimsoll::cuda {
namespace {

TEST(Nccl, IsFoundWhereTheCardsLibrariesAre) {
  if (std::getenv("PLIMSOLL_FAKE_CARD") == nullptr) GTEST_SKIP() << "another library may be here, or none";
  const auto found = load_nccl();
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ((*found)->version, "2.28.9");
  EXPECT_TRUE((*found)->path.ends_with("fake-card/libnccl.so.2")) << (*found)->path;
}

}  // namespace
}  // namespace plimsoll::cuda
