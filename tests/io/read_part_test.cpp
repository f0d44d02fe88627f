// Parts of files that are opened for them alone.
#include "io/read_part.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "io/temporary_folder.h"

namespace plimsoll::io {
namespace {

TEST(ReadPart, ReadsWhatIsThereAndSaysHowLongTheFileIs) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "0123456789");
  std::array<char, 4> text = {'a', 'b', 'c', 'd'};
  const auto read = [&](int64_t offset) {
    return read_part(path.c_str(), offset, std::as_writable_bytes(std::span(text)));
  };
  EXPECT_EQ(*read(3), 10);
  EXPECT_EQ(std::string_view(text.data(), text.size()), "3456");
  for (const int64_t beyond : {int64_t{7}, int64_t{-1}, int64_t{1} << 60}) EXPECT_EQ(*read(beyond), 10);
  EXPECT_EQ(std::string_view(text.data(), text.size()), "3456") << "as it was";
}

TEST(ReadPart, SaysWhyItCannotOpen) {
  const TemporaryFolder folder;
  const auto missing = read_part(folder.path("none").c_str(), 0, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kBadData);
  EXPECT_EQ(missing.error().where, folder.path("none"));
  EXPECT_FALSE(read_part(folder.path("").c_str(), 0, {})) << "a folder";
}

}  // namespace
}  // namespace plimsoll::io
