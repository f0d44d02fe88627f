// Folders that are whole or not there, what is cleared away, space and locks.
#include "io/atomic_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

using testing::HasSubstr;

void add(const AtomicDirectory& directory, const std::string& name, std::string_view content) {
  auto file = directory.create_file(name);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->write_at(0, std::as_bytes(std::span(content))));
  ASSERT_TRUE(file->close());
}

TEST(AtomicDirectoryTest, IsThereOnceItIsPublished) {
  const TemporaryFolder folder;
  auto directory = AtomicDirectory::create(folder.path("a"));
  ASSERT_TRUE(directory);
  add(*directory, "x", "new");
  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  ASSERT_TRUE(directory->publish());
  EXPECT_EQ(read_all(folder.path("a/x")), "new");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(AtomicDirectoryTest, ReplacesAWholeFolder) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a"));
  folder.write("a/old", "old");
  auto directory = AtomicDirectory::create(folder.path("a/"));
  ASSERT_TRUE(directory);
  add(*directory, "x", "new");
  EXPECT_TRUE(std::filesystem::exists(folder.path("a/old")));
  ASSERT_TRUE(directory->publish());
  EXPECT_TRUE(std::filesystem::exists(folder.path("a/x")));
  EXPECT_FALSE(std::filesystem::exists(folder.path("a/old")));
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(AtomicDirectoryTest, LeavesNothingWhenItIsGivenUp) {
  const TemporaryFolder folder;
  {
    auto directory = AtomicDirectory::create(folder.path("a"));
    ASSERT_TRUE(directory);
    add(*directory, "x", "half");
  }
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST(AtomicDirectoryTest, BeginsEmptyAfterAKilledProcess) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path(".a.tmp"));
  folder.write(".a.tmp/half", "half");
  auto directory = AtomicDirectory::create(folder.path("a"));
  ASSERT_TRUE(directory);
  ASSERT_TRUE(directory->publish());
  EXPECT_FALSE(std::filesystem::exists(folder.path("a/half")));
}

TEST(AtomicDirectoryTest, RefusesWhatIsNoFolder) {
  const TemporaryFolder folder;
  EXPECT_EQ(AtomicDirectory::create(folder.write("a", "a file")).error().code, ErrorCode::kIo);
  EXPECT_EQ(AtomicDirectory::create(folder.path("none/a")).error().code, ErrorCode::kIo);
}

TEST(RetireDirectory, TakesNameAndContentAway) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a/b"));
  folder.write("a/b/c", "x");
  std::vector<std::string> hidden;
  ASSERT_TRUE(hide_directories({folder.path("a"), folder.path("none")}, hidden));
  EXPECT_FALSE(std::filesystem::exists(folder.path("a")));
  EXPECT_EQ(folder.num_files(), 1U);
  remove_hidden(hidden);
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST(RetireDirectory, GivesNamesBack) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a"));
  folder.write("a/c", "x");
  std::vector<std::string> hidden;
  ASSERT_TRUE(hide_directories({folder.path("a")}, hidden));
  show_hidden(hidden);
  EXPECT_EQ(read_all(folder.path("a/c")), "x");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(CleanDirectory, KnowsWhatItsOwnLeave) {
  const TemporaryFolder folder;
  for (const char* name : {".a-1.tmp", ".a-2.old", ".a-3.previous", ".a-4.previous", "a-4", ".b.tmp", ".tmp"})
    std::filesystem::create_directories(folder.path(name));
  ASSERT_TRUE(clean_directory(folder.path(), [](std::string_view name) { return name.starts_with("a-"); }));
  EXPECT_FALSE(std::filesystem::exists(folder.path(".a-1.tmp")));
  EXPECT_FALSE(std::filesystem::exists(folder.path(".a-2.old")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("a-3")));  // it was being replaced: it stays
  EXPECT_FALSE(std::filesystem::exists(folder.path(".a-4.previous")));
  EXPECT_TRUE(std::filesystem::exists(folder.path("a-4")));
  EXPECT_TRUE(std::filesystem::exists(folder.path(".b.tmp")));  // somebody else's
  EXPECT_TRUE(std::filesystem::exists(folder.path(".tmp")));
}

TEST(CleanDirectory, GivesNamesBackWhereWhatReplacesThemWasNotPublished) {
  const auto is_ours = [](std::string_view name) { return name.starts_with("a-"); };
  for (const bool none_left : {false, true})
    for (const bool unpublished : {false, true}) {
      const TemporaryFolder folder;
      for (const char* name : {".a-1.old", ".a-2.old"})
        std::filesystem::create_directories(folder.path(name));
      if (unpublished) std::filesystem::create_directories(folder.path(".a-3.tmp"));
      ASSERT_TRUE(clean_directory(folder.path(), is_ours, none_left));
      const bool back = none_left && unpublished;
      EXPECT_EQ(std::filesystem::exists(folder.path("a-1")), back);
      EXPECT_EQ(std::filesystem::exists(folder.path("a-2")), back);
      EXPECT_EQ(folder.num_files(), back ? 2U : 0U);
    }
}

TEST(FreeSpace, IsComparedWithWhatIsNeeded) {
  const TemporaryFolder folder;
  EXPECT_TRUE(check_free_space(folder.path(), 1));
  const auto little = check_free_space(folder.path(), int64_t{1} << 60);
  ASSERT_FALSE(little);
  EXPECT_EQ(little.error().code, ErrorCode::kIo);
  EXPECT_THAT(little.error().what, HasSubstr(std::to_string(int64_t{1} << 60)));
}

TEST(DirectoryLockTest, IsHeldByOneProcess) {
  const TemporaryFolder folder;
  {
    const auto lock = DirectoryLock::take(folder.path());
    ASSERT_TRUE(lock);
    const auto second = DirectoryLock::take(folder.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kIo);
    EXPECT_THAT(second.error().what, HasSubstr(std::to_string(::getpid())));
  }
  EXPECT_TRUE(DirectoryLock::take(folder.path()));
}

}  // namespace
}  // namespace plimsoll::io
