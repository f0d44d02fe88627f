#include "io/missing_file.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace plimsoll::io {
namespace {

TEST(MissingFile, TheHintSaysWhereARelativePathBegins) {
  EXPECT_EQ(missing_hint("/data/none.jsonl"), "check the path");
  EXPECT_EQ(missing_hint("none.jsonl"), "check the path; relative paths begin at the working folder, " +
                                            std::filesystem::current_path().string());
}

}  // namespace
}  // namespace plimsoll::io
