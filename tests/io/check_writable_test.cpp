#include "io/check_writable.h"

#include <gtest/gtest.h>

#include "io/file.h"
#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

TEST(CheckWritable, SaysWhatWritingWouldAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  EXPECT_TRUE(check_writable(path));
  EXPECT_TRUE(check_writable(folder.path("new")));
  EXPECT_EQ(*read_small_file(path, 3), "old");
  EXPECT_EQ(folder.num_files(), 1U);
  const auto missing = check_writable(folder.path("none/a"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message(), write_file_atomically(folder.path("none/a"), "x").error().message());
}

}  // namespace
}  // namespace plimsoll::io
