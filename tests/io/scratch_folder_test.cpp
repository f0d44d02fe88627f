// A folder for files that nobody keeps.
#include "io/scratch_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/file.h"

namespace plimsoll::io {
namespace {

TEST(ScratchFolder, GoesWithAllThatIsInItOnce) {
  std::string path;
  {
    auto made = ScratchFolder::create("test");
    ASSERT_TRUE(made) << made.error().message();
    const ScratchFolder folder = std::move(*made);
    path = folder.path();
    EXPECT_THAT(path, testing::HasSubstr("/plimsoll-test-"));
    ASSERT_TRUE(write_file_atomically(path + "/file", "text"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace plimsoll::io
