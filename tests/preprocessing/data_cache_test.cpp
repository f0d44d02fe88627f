// The cache folder: what is removed where it is too large, and what never is. Other processes are children.
#include "preprocessing/data_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <utility>

#include "io/temporary_folder.h"

namespace plimsoll::preprocessing {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Entries a to d of 100 bytes each, a used last.
class DataCache : public testing::Test {
 protected:
  void SetUp() override {
    int64_t age = 0;
    for (const std::string& name : {kA, kB, kC, kD}) {
      folder_.write(name, std::string(100, 'x'));
      age_file(name, age += 100);
    }
  }
  void age_file(const std::string& name, int64_t seconds) const {
    using std::filesystem::last_write_time;
    last_write_time(folder_.path(name),
                    std::filesystem::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
  [[nodiscard]] std::vector<CacheEntry> entries() const {
    auto listed = list_data_cache(folder_.path());
    EXPECT_TRUE(listed) << listed.error().message();
    return listed ? std::move(listed).value() : std::vector<CacheEntry>();
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const CacheEntry& entry : entries()) names.push_back(entry.name);
    return names;
  }
  CacheTrim trim(int64_t limit) const {
    auto trimmed = trim_data_cache(folder_.path(), limit);
    EXPECT_TRUE(trimmed) << trimmed.error().message();
    return trimmed ? *trimmed : CacheTrim{};
  }
  const std::string kA = "tokens-00000000000000aa.shard", kB = "00000000000000bb.pack",
                    kC = "tokens-00000000000000cc.shard", kD = "00000000000000dd.pack";
  const io::TemporaryFolder folder_;
};

/// A process that does something in the folder and lives until it is let go, or killed.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void()>& work) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    process_ = ::fork();
    if (process_ == 0) {
      work();
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1) << "it failed";
    ::close(ready[0]);
  }
  ~OtherProcess() { kill(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
};

TEST_F(DataCache, ListsTheMostRecentlyUsedFirst) {
  EXPECT_THAT(names(), ElementsAre(kA, kB, kC, kD));
  const std::vector<CacheEntry> listed = entries();
  EXPECT_EQ(listed.front().bytes, 100);
  EXPECT_FALSE(listed.front().in_use);
  EXPECT_GT(listed.front().used_at, listed.back().used_at);
}

TEST_F(DataCache, OfAFolderThatIsNotThereIsEmpty) {
  const auto entries = list_data_cache(folder_.path("none"));
  ASSERT_TRUE(entries) << entries.error().message();
  EXPECT_THAT(*entries, IsEmpty());
  const auto trimmed = trim_data_cache(folder_.path("none"), 0);
  ASSERT_TRUE(trimmed) << trimmed.error().message();
  EXPECT_FALSE(std::filesystem::exists(folder_.path("none")));
}

TEST_F(DataCache, RemovesTheLeastRecentlyUsedDownToTheLimit) {
  EXPECT_EQ(trim(400).removed_files, 0);
  const CacheTrim trimmed = trim(299);
  EXPECT_EQ(trimmed.removed_files, 2);
  EXPECT_EQ(trimmed.removed_bytes, 200);
  EXPECT_EQ(trimmed.left_files, 2);
  EXPECT_EQ(trimmed.left_bytes, 200);
  EXPECT_THAT(names(), ElementsAre(kA, kB));
  trim(0);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DataCache, LeavesFilesOfOtherNamesAlone) {
  for (const char* name : {"mine.shard", "tokens-mine.shard", "notes.txt", "x.pack"})
    folder_.write(name, "mine");
  std::filesystem::create_directory(folder_.path("00000000000000ee.pack"));
  trim(0);
  for (const char* name : {"mine.shard", "tokens-mine.shard", "notes.txt", "x.pack", "00000000000000ee.pack"})
    EXPECT_TRUE(std::filesystem::exists(folder_.path(name))) << name;
}

/// A shard of examples and its labels, of which one alone is of no use.
class DataCacheOfExamples : public DataCache {
 protected:
  void SetUp() override {
    DataCache::SetUp();
    folder_.write(kShard, std::string(100, 's'));
    folder_.write(kLabels, std::string(10, 'l'));
    age_file(kShard, 1000);
    age_file(kLabels, 900);
  }
  const std::string kShard = "examples-00000000000000ee.shard", kLabels = "examples-00000000000000ee.labels";
};

TEST_F(DataCacheOfExamples, ShardAndLabelsGoTogether) {
  EXPECT_EQ(names().size(), 6U);
  const CacheTrim trimmed = trim(490);
  EXPECT_EQ(trimmed.removed_files, 2);
  EXPECT_EQ(trimmed.removed_bytes, 110);
  EXPECT_EQ(trimmed.left_files, 4);
  EXPECT_EQ(trimmed.left_bytes, 400);
  EXPECT_THAT(names(), ElementsAre(kA, kB, kC, kD));
}

TEST_F(DataCacheOfExamples, TokenTypesGoWithThem) {
  const std::string kTypes = "examples-00000000000000ee.types";
  folder_.write(kTypes, std::string(20, 't'));
  age_file(kTypes, 800);
  EXPECT_EQ(names().size(), 7U);
  EXPECT_EQ(trim(490).removed_files, 3);
  EXPECT_THAT(names(), ElementsAre(kA, kB, kC, kD));
  for (const std::string& name : {kShard, kLabels, kTypes}) folder_.write(name, "x");
  for (const std::string& used : {kTypes, kShard, kLabels}) {
    OtherProcess other([&] {
      const auto lease = CacheLease::take(folder_.path());
      if (!lease || !lease->use(folder_.path(used))) ::_exit(1);
    });
    trim(0);
    EXPECT_THAT(names(), testing::UnorderedElementsAre(kShard, kLabels, kTypes)) << used;
    other.kill();
  }
}

TEST_F(DataCacheOfExamples, OneAloneGoesToo) {
  for (const std::string& name : {kShard, kLabels}) {
    std::filesystem::remove(folder_.path(name));
    EXPECT_EQ(trim(0).removed_files, name == kShard ? 5 : 1);
    EXPECT_THAT(names(), IsEmpty());
    folder_.write(kShard, "again");
  }
}

TEST_F(DataCacheOfExamples, WhereOneIsInUseBothStay) {
  OtherProcess other([&] {
    const auto lease = CacheLease::take(folder_.path());
    if (!lease || !lease->use(folder_.path(kLabels))) ::_exit(1);
  });
  trim(0);
  EXPECT_THAT(names(), testing::UnorderedElementsAre(kShard, kLabels));
  other.kill();
  trim(0);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DataCacheOfExamples, OtherNamesAndUnfinishedLabels) {
  for (const char* name : {"examples-mine.labels", "examples-.labels", "tokens-00000000000000aa.labels",
                           "00000000000000aa.labels"})
    folder_.write(name, "mine");
  folder_.write(kLabels + ".tmp-123-0", "half");
  trim(0);
  EXPECT_FALSE(std::filesystem::exists(folder_.path(kLabels + ".tmp-123-0")));
  EXPECT_EQ(folder_.num_files(), 4U + 1) << "the four, and the lock";
}

TEST_F(DataCache, WhatAnotherProcessUsesStaysUntilItEnds) {
  OtherProcess other([&] {
    const auto lease = CacheLease::take(folder_.path());
    if (!lease || !lease->use(folder_.path(kD)) || !lease->use(folder_.path(kC))) ::_exit(1);
    age_file(kD, 1000);
    age_file(kC, 1000);
  });
  EXPECT_EQ(trim(0).left_files, 2);
  EXPECT_THAT(names(), testing::UnorderedElementsAre(kC, kD));
  for (const CacheEntry& entry : entries()) EXPECT_TRUE(entry.in_use) << entry.name;
  other.kill();
  EXPECT_EQ(trim(100).left_files, 1);
  trim(0);
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_EQ(folder_.num_files(), 1U) << "the killed one's file of names is gone, the lock is left";
}

TEST_F(DataCache, NothingIsRemovedWhileSomebodyMakesDataReady) {
  OtherProcess other([&] {
    static auto lease = CacheLease::take(folder_.path());  // for as long as it lives
    if (!lease) ::_exit(1);
  });
  EXPECT_TRUE(trim(0).is_busy);
  EXPECT_EQ(trim(0).left_files, 4);
  other.kill();
  EXPECT_FALSE(trim(0).is_busy);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DataCache, AForkedProcessNamesWhatItsParentUses) {
  OtherProcess other([&] {
    const auto lease = CacheLease::take(folder_.path());
    const pid_t child = lease ? ::fork() : -1;
    if (child == 0) ::_exit(lease->use(folder_.path(kB)) ? 0 : 1);
    int status = 1;
    if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0) ::_exit(1);
  });
  trim(0);
  EXPECT_THAT(names(), ElementsAre(kB));
}

TEST_F(DataCache, AUseMakesAnEntryTheMostRecent) {
  OtherProcess other([&] {
    const auto lease = CacheLease::take(folder_.path());
    if (!lease || !lease->use(folder_.path(kD))) ::_exit(1);
  });
  EXPECT_EQ(names().front(), kD);
}

TEST_F(DataCache, OfOtherFoldersNothingIsNoted) {
  const io::TemporaryFolder offloaded;
  offloaded.write(kA, "another");
  OtherProcess other([&] {
    const auto lease = CacheLease::take(folder_.path());
    if (!lease || !lease->use(offloaded.path(kA)) || !lease->use("")) ::_exit(1);
  });
  trim(0);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(DataCache, WhatKilledWritersLeftIsRemoved) {
  folder_.write(kA + ".tmp-123-0", "half");
  folder_.write("mine.tmp-123-0", "mine");
  trim(1000);
  EXPECT_FALSE(std::filesystem::exists(folder_.path(kA + ".tmp-123-0")));
  EXPECT_TRUE(std::filesystem::exists(folder_.path("mine.tmp-123-0")));
  EXPECT_EQ(names().size(), 4U);
}

TEST_F(DataCache, AGivenUpLeaseLeavesNothing) {
  std::filesystem::create_directory(folder_.path("new"));
  auto lease = CacheLease::take(folder_.path("new"));
  ASSERT_TRUE(lease) << lease.error().message();
  std::move(*lease).give_up();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path("new")));
  auto full = CacheLease::take(folder_.path());
  ASSERT_TRUE(full) << full.error().message();
  std::move(*full).give_up();
  EXPECT_EQ(names().size(), 4U);
}

/// Two that remove and one that comes and goes: what is in use is there at the end, and nobody fails.
TEST_F(DataCache, SurvivesManyAtOnce) {
  OtherProcess user([&] {
    const auto lease = CacheLease::take(folder_.path());
    if (!lease || !lease->use(folder_.path(kD))) ::_exit(1);
  });
  std::vector<pid_t> others;
  for (int i = 0; i < 3; ++i) {
    const pid_t process = ::fork();
    if (process == 0) {
      for (int k = 0; k < 30; ++k) {
        if (i == 2 ? !CacheLease::take(folder_.path()) : !trim_data_cache(folder_.path(), 0)) ::_exit(1);
      }
      ::_exit(0);
    }
    others.push_back(process);
  }
  for (const pid_t process : others) {
    int status = 1;
    ::waitpid(process, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_FALSE(trim(0).is_busy);
  EXPECT_THAT(names(), ElementsAre(kD));
}

}  // namespace
}  // namespace plimsoll::preprocessing
