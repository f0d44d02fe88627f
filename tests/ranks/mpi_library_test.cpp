// Libraries of MPI as they are installed: found by their launcher's kind, refused by name.
#include "ranks/mpi_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "sanitizer.h"

namespace plimsoll::ranks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Launch started_by(Launcher launcher) { return {.ranks = 2, .source = "it", .launcher = launcher}; }

/// The libraries allocate what nobody frees, and are not built with a sanitizer's runtime.
class InstalledMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (kSanitizer) GTEST_SKIP() << "libraries without a sanitizer";
  }
};

TEST(MpiLibrary, NamesOfALaunchersKind) {
  EXPECT_THAT(mpi_names(Launcher::kOpenMpi), ElementsAre("libmpi.so.40", "libmpi_abi.so.1"));
  EXPECT_THAT(mpi_names(Launcher::kMpich), ElementsAre("libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"));
  EXPECT_EQ(mpi_names(Launcher::kAnyMpi).size(), 4U);
}

TEST(MpiLibrary, WhatIsNoneIsRefusedByName) {
  const auto missing = find_mpi(started_by(Launcher::kOpenMpi), "libnothing.so.3");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_THAT(missing.error().message(), HasSubstr("libnothing.so.3"));
  const auto other = find_mpi(started_by(Launcher::kOpenMpi), "libz.so.1");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("none of the three binary interfaces of MPI"));
}

TEST(MpiLibrary, SpeaksTheStandardsDialect) {
  const auto fake = find_mpi(started_by(Launcher::kMpich), PLIMSOLL_FAKE_MPI);
  ASSERT_TRUE(fake) << fake.error().message();
  EXPECT_EQ(fake->dialect, MpiDialect::kStandard);
  EXPECT_EQ(fake->version, "Fake MPI 1.0");
  MpiCalls& calls = *fake->calls;
  ASSERT_TRUE(calls.init());
  EXPECT_EQ(calls.rank(), 0);
  EXPECT_EQ(calls.ranks(), 1);
  const std::array<std::byte, 3> sent = {std::byte{1}, std::byte{2}, std::byte{3}};
  std::array<std::byte, 3> received{};
  ASSERT_TRUE(calls.send(sent, 0, 0));
  ASSERT_TRUE(calls.receive(received, 0, 1));
  const auto done = calls.is_done(1);
  ASSERT_TRUE(done && *done);
  EXPECT_EQ(received, sent);
  const Status wrong = calls.send(sent, 7, 0);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(), "MPI_Isend failed: error 5 of the fake: Fake MPI 1.0");
}

TEST(MpiLibrary, WithoutThreadsIsRefused) {
  const auto fake = open_mpi(PLIMSOLL_FAKE_MPI);
  ASSERT_TRUE(fake) << fake.error().message();
  ::setenv("PLIMSOLL_FAKE_MPI_THREADS", "1024", 1);  // MPI_THREAD_FUNNELED
  const Status started = fake->calls->init();
  ::unsetenv("PLIMSOLL_FAKE_MPI_THREADS");
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().what, HasSubstr("MPI_THREAD_SERIALIZED"));
  EXPECT_EQ(started.error().where, "Fake MPI 1.0");
}

TEST_F(InstalledMpi, IsTheLaunchersOwn) {
  const auto open = find_mpi(started_by(Launcher::kOpenMpi), "");
  ASSERT_TRUE(open) << open.error().message();
  EXPECT_EQ(open->dialect, MpiDialect::kOpenMpi);
  EXPECT_THAT(open->version, StartsWith("Open MPI v4.1"));
  EXPECT_THAT(open->path, HasSubstr("libmpi.so.40"));
  const auto mpich = find_mpi(started_by(Launcher::kMpich), "");
  ASSERT_TRUE(mpich) << mpich.error().message();
  EXPECT_EQ(mpich->dialect, MpiDialect::kMpich);
  EXPECT_EQ(mpich->version, "MPICH Version: 4.0.2");
}

TEST_F(InstalledMpi, AnotherKindThanTheLaunchersIsRefused) {
  const auto wrong = find_mpi(started_by(Launcher::kOpenMpi), "libmpich.so.12");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(wrong.error().what,
              HasSubstr("is MPICH Version: 4.0.2, and it of Open MPI started this process"));
  EXPECT_TRUE(find_mpi(started_by(Launcher::kAnyMpi), "libmpich.so.12"));
}

}  // namespace
}  // namespace plimsoll::ranks
