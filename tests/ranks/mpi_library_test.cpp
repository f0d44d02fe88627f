// Libraries of MPI as they are installed: found by their launcher's kind, refused by name.
#include "ranks/mpi_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(other.error().message(), HasSubstr("no library of MPI"));
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
