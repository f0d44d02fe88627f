// Files: reads by position, bounded reads, writes that are whole or not there.
#include "io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "temporary_folder.h"

namespace plimsoll::io {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReadFile, ReadsByPosition) {
  const TemporaryFolder folder;
  const auto file = ReadFile::open(folder.write("a", "0123456789"));
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size_bytes(), 10);
  std::array<std::byte, 3> bytes = {};
  ASSERT_TRUE(file->read_at(4, bytes));
  EXPECT_EQ(bytes[0], std::byte{'4'});
  const auto beyond = file->read_at(8, bytes);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, ErrorCode::kBadData);
}

TEST(ReadFile, OfBytesReadsAsAFileOfThemDoes) {
  const std::string text = "0123456789";
  ReadFile first = ReadFile::of_bytes("a", std::as_bytes(std::span(text)));
  const ReadFile file = std::move(first);
  EXPECT_EQ(file.path(), "a");
  EXPECT_EQ(file.size_bytes(), 10);
  std::array<std::byte, 3> bytes = {};
  ASSERT_TRUE(file.read_at(7, bytes));
  EXPECT_EQ(bytes[2], std::byte{'9'});
  for (const int64_t beyond : {8, 10, 99}) {
    const auto cut = file.read_at(beyond, bytes);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, ErrorCode::kBadData);
  }
  EXPECT_FALSE(ReadFile::of_bytes("b", {}).read_at(0, bytes));
}

TEST(ReadFile, WhatIsKeptIsReadFromMemory) {
  const TemporaryFolder folder;
  auto opened = ReadFile::open(folder.write("a", "0123456789"));
  ASSERT_TRUE(opened);
  int64_t room = 12;
  ASSERT_TRUE(keep_within(*opened, room));
  EXPECT_EQ(room, 2);
  const ReadFile file = std::move(*opened);
  folder.write("a", "abc");
  std::array<std::byte, 3> bytes = {};
  ASSERT_TRUE(file.read_at(7, bytes));
  EXPECT_EQ(bytes[2], std::byte{'9'});
  EXPECT_FALSE(file.read_at(8, bytes));
  auto larger = ReadFile::open(folder.path("a"));
  ASSERT_TRUE(larger);
  ASSERT_TRUE(keep_within(*larger, room)) << "there is no room for it, which is no error";
  EXPECT_EQ(room, 2);
  folder.write("a", "a");
  EXPECT_FALSE(larger->keep_in_memory()) << "it was cut";
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(ReadFile::open(folder.path("none")).error().code, ErrorCode::kBadData);
  EXPECT_EQ(ReadFile::open(folder.path("none"), ErrorCode::kInvalidArgument).error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(ReadFile::open(folder.path()).error().what, HasSubstr("folder"));
  ASSERT_EQ(::mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ReadFile::open(folder.path("pipe")).error().what, HasSubstr("regular"));  // and does not hang
}

TEST(PathExists, TellsNoFromUnknown) {
  const TemporaryFolder folder;
  const std::string path = folder.path("a");
  EXPECT_FALSE(*path_exists(path));
  EXPECT_FALSE(*path_exists(path + "/below"));
  ASSERT_TRUE(write_file_atomically(path, "x"));
  EXPECT_TRUE(*path_exists(path));
  EXPECT_TRUE(*path_exists(folder.path()));
  EXPECT_FALSE(*path_exists(path + "/below")) << "a file has none";
  EXPECT_FALSE(*path_exists(folder.path(std::string(5000, 'n'))));
  ASSERT_EQ(::symlink("round", folder.path("round").c_str()), 0);
  const auto unknown = path_exists(folder.path("round"));  // a circle; as ESTALE or EIO would be
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kIo);
  EXPECT_TRUE(is_file(path));
  EXPECT_FALSE(is_file(folder.path()));
  EXPECT_FALSE(is_file(folder.path("none")));
  EXPECT_TRUE(is_file(folder.path("round"))) << "opening it says why it cannot be read";
  EXPECT_EQ(ReadFile::open(folder.path("round")).error().code, ErrorCode::kIo);
}

TEST(ReadSmallFile, KeepsItsBound) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "12345");
  EXPECT_EQ(*read_small_file(path, 5), "12345");
  EXPECT_EQ(read_small_file(path, 4).error().code, ErrorCode::kBadData);
}

TEST(AtomicFile, ReplacesOnCommitAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  {
    auto file = AtomicFile::create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->write_at(0, std::as_bytes(std::span("new", 3))));
    EXPECT_EQ(read_all(path), "old");
  }
  EXPECT_EQ(read_all(path), "old");
  EXPECT_EQ(folder.num_files(), 1U);
  ASSERT_TRUE(write_file_atomically(path, "new"));
  EXPECT_EQ(read_all(path), "new");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(AtomicFile, LeavesNothingWhenTheDiskRefuses) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "old");
  // A limit on file sizes stands for a full disk: the write fails half-way.
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto status = write_file_atomically(path, std::string(5000, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_EQ(read_all(path), "old");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(AtomicFile, LeavesNothingWhenTheProcessIsKilled) {
  const TemporaryFolder folder;
  const int probe = ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system knows no nameless files";
  ::close(probe);
  const std::string path = folder.path("a");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto file = AtomicFile::create(path);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST(AtomicFile, NamesAFolderThatIsMissing) {
  const TemporaryFolder folder;
  const auto status = write_file_atomically(folder.path("none/a"), "x");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_THAT(status.error().message(), HasSubstr("none/a"));
}

TEST(AtomicFile, ReplacesFilesAlone) {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_directory(folder.path("folder"));
  for (const std::string& path : {pipe, folder.path("folder"), std::string("/dev/null")}) {
    const auto file = AtomicFile::create(path);
    ASSERT_FALSE(file) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kIo);
    EXPECT_EQ(file.error().where, path);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(CreateWritableDirectory, MakesParentsAndRefusesFiles) {
  const TemporaryFolder folder;
  EXPECT_TRUE(create_writable_directory(folder.path("a/b/c")));
  EXPECT_TRUE(create_writable_directory(folder.path("a/b/c")));
  folder.write("file", "");
  const auto status = create_writable_directory(folder.path("file/x"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_FALSE(create_writable_directory(folder.path("file")));
}

TEST(ExpandGlob, SortsItsMatches) {
  const TemporaryFolder folder;
  const std::string b = folder.write("b.txt", "");
  const std::string a = folder.write("a.txt", "");
  const std::string odd = folder.write("odd[1].txt", "");
  EXPECT_THAT(*expand_glob(folder.path("?.txt")), ElementsAre(a, b));
  EXPECT_THAT(*expand_glob(odd), ElementsAre(odd));
  EXPECT_THAT(*expand_glob("no/such/file"), ElementsAre("no/such/file"));
  EXPECT_EQ(expand_glob(folder.path("*.npy")).error().code, ErrorCode::kBadData);
}

}  // namespace
}  // namespace plimsoll::io
