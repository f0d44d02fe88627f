#include "io/new_folder.h"

#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::io {
namespace {

TEST(NewFolder, WhatWasMadeForNothingGoesAgain) {
  const TemporaryFolder folder;
  {
    const NewFolder made(folder.path("a/b/c"));
    std::filesystem::create_directories(folder.path("a/b/c"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
}

TEST(NewFolder, WhatHoldsSomethingOrWasThereStays) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a"));
  {
    const NewFolder made(folder.path("a/b/c"));
    std::filesystem::create_directories(folder.path("a/b/c"));
    folder.write("a/b/file", "text");
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path("a/b/c")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("a/b/file")));
  { const NewFolder empty(folder.path("a")); }
  EXPECT_TRUE(std::filesystem::exists(folder.path("a")));
}

}  // namespace
}  // namespace plimsoll::io
