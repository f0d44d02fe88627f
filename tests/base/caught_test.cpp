// What is thrown becomes an error with the code that its kind has.
#include "base/caught.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace plimsoll {
namespace {

template <typename Thrown>
Error error_of(const Thrown& thrown) {
  const Status status = caught([&]() -> Status { throw thrown; });
  EXPECT_FALSE(status);
  return status.error();
}

TEST(Caught, GivesEachKindItsCode) {
  EXPECT_EQ(error_of(std::bad_alloc()).code, ErrorCode::kIo);
  EXPECT_NE(error_of(std::bad_alloc()).what.find("memory"), std::string::npos);
  const std::error_code code = std::make_error_code(std::errc::io_error);
  EXPECT_EQ(error_of(std::system_error(code)).code, ErrorCode::kIo);
  const Error of_file = error_of(std::filesystem::filesystem_error("status", "/a/b", code));
  EXPECT_EQ(of_file.code, ErrorCode::kIo);
  EXPECT_EQ(of_file.where, "/a/b");
  EXPECT_EQ(of_file.what.find("thread"), std::string::npos) << "a file is no thread";
  EXPECT_EQ(error_of(std::out_of_range("stod")).code, ErrorCode::kBadData);
  EXPECT_EQ(error_of(7).code, ErrorCode::kBadData);
}

TEST(Caught, PassesResultsOn) {
  EXPECT_EQ(*caught([]() -> Result<int> { return 3; }), 3);
  EXPECT_EQ(caught([]() -> Result<int> { return Error{ErrorCode::kDiverged, "no"}; }).error().what, "no");
}

}  // namespace
}  // namespace plimsoll
