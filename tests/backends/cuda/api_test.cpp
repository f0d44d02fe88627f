#include "backends/cuda/api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::cuda {
namespace {

using ::testing::ElementsAre;

TEST(ToolkitNames, PutTheDriversMajorVersionFirst) {
  EXPECT_THAT(toolkit_names("libnvrtc.so.", 12080), ElementsAre("libnvrtc.so.12", "libnvrtc.so.13"));
  EXPECT_THAT(toolkit_names("libnvrtc.so.", 13000), ElementsAre("libnvrtc.so.13", "libnvrtc.so.12"));
  EXPECT_THAT(toolkit_names("libcublasLt.so.", 14010), ElementsAre("libcublasLt.so.13", "libcublasLt.so.12"))
      << "a driver runs what is older than it is";
  EXPECT_THAT(toolkit_names("libcublasLt.so.", 0), ElementsAre("libcublasLt.so.13", "libcublasLt.so.12"));
}

TEST(OpenLibrary, GivesNothingWhereThereIsNone) { EXPECT_EQ(open_library({"libnone.so.0"}), nullptr); }

}  // namespace
}  // namespace plimsoll::cuda
