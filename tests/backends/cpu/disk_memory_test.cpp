// A file as memory: nothing of it shows in its folder, its blocks are there from the start, errors name the
// file system.
#include "backends/cpu/disk_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <vector>

#include "io/temporary_folder.h"

namespace plimsoll::cpu {
namespace {

const DiskMemory& disk(const std::unique_ptr<runtime::Memory>& memory) {
  return static_cast<const DiskMemory&>(*memory);
}

TEST(DiskMemory, HoldsWhatWasWrittenAndHasNoName) {
  const io::TemporaryFolder folder;
  auto memory = DiskMemory::create(Bytes(100'000), folder.path());
  ASSERT_TRUE(memory.ok()) << memory.error().message();
  EXPECT_EQ(folder.num_files(), 0U);
  EXPECT_EQ((*memory)->space(), ir::MemorySpace::kDisk);
  EXPECT_EQ((*memory)->size().count, 100'000);
  EXPECT_EQ((*memory)->address(), nullptr);
  EXPECT_TRUE((*memory)->host().empty());
  std::vector<std::byte> to(5000), from(5000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
  ASSERT_TRUE(disk(*memory).write(95'000, from).ok());
  ASSERT_TRUE(disk(*memory).read(95'000, to).ok());
  EXPECT_EQ(to, from);
}

// From each kind of place to each: what lies alike in its page goes as it is, the rest by a detour.
TEST(DiskMemory, MovesAnyBytesOfMemoryToAnyOfTheFile) {
  constexpr int64_t kPage = 4096, kSize = 9 << 20;
  const io::TemporaryFolder folder;
  auto memory = DiskMemory::create(Bytes(kSize), folder.path());
  ASSERT_TRUE(memory.ok());
  std::vector<std::byte> file(kSize), mine(kSize + 2 * kPage);
  ASSERT_TRUE(disk(*memory).write(0, file).ok());
  const auto base = reinterpret_cast<uintptr_t>(mine.data());
  std::byte* pages = mine.data() + (kPage - base % kPage);
  int value = 1;
  for (const int64_t offset : {int64_t{0}, int64_t{100}, kPage, 3 * kPage - 64})
    for (const int64_t lead : {int64_t{0}, int64_t{100}, kPage - 64})
      for (const int64_t size : {int64_t{1}, int64_t{5000}, 4 * kPage, int64_t{(4 << 20) + 8200}}) {
        const std::span<std::byte> part(pages + lead, static_cast<size_t>(size));
        for (std::byte& b : part) b = static_cast<std::byte>(value++ % 251);
        ASSERT_TRUE(disk(*memory).write(offset, part).ok());
        std::ranges::copy(part, file.begin() + offset);
        std::ranges::fill(part, std::byte{0});
        ASSERT_TRUE(disk(*memory).read(offset, part).ok());
        ASSERT_TRUE(
            std::ranges::equal(part, std::span(file).subspan(static_cast<size_t>(offset), part.size())))
            << offset << " " << lead << " " << size;
      }
  std::vector<std::byte> all(kSize);
  ASSERT_TRUE(disk(*memory).read(0, all).ok());
  EXPECT_EQ(all, file);
}

TEST(DiskMemory, AFolderThatIsNotThereIsNamed) {
  const auto memory = DiskMemory::create(Bytes(1), "/no/such/folder");
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kIo);
  EXPECT_NE(memory.error().message().find("/no/such/folder"), std::string::npos);
  EXPECT_FALSE(memory.error().hint.empty());
}

TEST(DiskMemory, ADiskWithoutRoomSaysSoAtOnce) {
  const io::TemporaryFolder folder;
  struct statvfs room {};
  ASSERT_EQ(statvfs(folder.path().c_str(), &room), 0);
  const auto more = static_cast<int64_t>(room.f_blocks * room.f_frsize) + (int64_t{1} << 30);
  const auto memory = DiskMemory::create(Bytes(more), folder.path());
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.error().code, ErrorCode::kIo);
  EXPECT_NE(memory.error().what.find("cannot reserve"), std::string::npos) << memory.error().what;
  EXPECT_NE(memory.error().where.find(" on /"), std::string::npos) << memory.error().where;
}

TEST(DiskMemory, AWriteBeyondTheProcessLimitIsAnErrorAndAnEarlyEndToo) {
  const io::TemporaryFolder folder;
  auto memory = DiskMemory::create(Bytes(4096), folder.path());
  ASSERT_TRUE(memory.ok());
  std::vector<std::byte> bytes(4096);
  const Status beyond = disk(*memory).read(4096, bytes);
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().code, ErrorCode::kIo);
  EXPECT_NE(beyond.error().what.find("ends early"), std::string::npos);

  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{}, small{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  small = {2048, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status cut = disk(*memory).write(0, bytes);  // 2048 bytes come through, then the limit
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, previous);
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().what.find("cannot write 4.00 KiB"), std::string::npos) << cut.error().what;
}

}  // namespace
}  // namespace plimsoll::cpu
