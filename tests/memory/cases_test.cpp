// Reading cases, and the cases themselves.
#include "memory/cases.h"

#include <gtest/gtest.h>

#include <fstream>

namespace plimsoll::memory {
namespace {

const std::string kCases = std::string(PLIMSOLL_TEST_DIR) + "/memory/cases/";

std::string error_of(const std::string& text) {
  const auto result = parse_case(text, "x.csv");
  return result.ok() ? "read" : result.error().message();
}

TEST(Cases, KnownCasesFit) {
  for (const char* name : {"A", "B", "C", "D", "E"}) {
    const auto report = run_case(kCases + name + ".1048576.csv");
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_LE(report->height, 1'048'576) << name;
    EXPECT_EQ(report->capacity, 1'048'576);
    EXPECT_LT(report->seconds, 10) << name;
  }
}

TEST(Cases, ATrainingTraceReachesItsBound) {
  const auto report = run_case(kCases + "resnet50.csv");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->buffers, 1042);
  EXPECT_EQ(report->height, report->lower_bound);
  EXPECT_TRUE(report->optimal);
}

TEST(Cases, ReadsColumnsInAnyOrder) {
  const auto read = parse_case(
      "\xef\xbb\xbfsize, id ,upper,note,lower,alignment\r\n12,a,5,hi,3,4\r\n\n7,b,9,,0,1", "t.64.csv");
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->buffers.size(), 2u);
  EXPECT_EQ(read->ids[1], "b");
  EXPECT_EQ(read->buffers[0].lower, 3);
  EXPECT_EQ(read->buffers[0].upper, 5);
  EXPECT_EQ(read->buffers[0].size, 12);
  EXPECT_EQ(read->buffers[0].alignment, 4);
  EXPECT_EQ(read->capacity, 64);
}

TEST(Cases, CapacityIsTheNumberInTheName) {
  const std::string text = "id,lower,upper,size\n";
  EXPECT_EQ(parse_case(text, "dir.7/A.1048576.csv")->capacity, 1'048'576);
  EXPECT_EQ(parse_case(text, "A.csv")->capacity, std::nullopt);
  EXPECT_EQ(parse_case(text, "A.12x.csv")->capacity, std::nullopt);
  EXPECT_EQ(parse_case(text, "A.-3.csv")->capacity, std::nullopt);
  EXPECT_EQ(parse_case(text, "A.5.txt")->capacity, std::nullopt);
  EXPECT_EQ(parse_case(text, "A.csv")->buffers.size(), 0u);
}

TEST(Cases, BadInputNamesLineAndColumn) {
  const std::string head = "id,lower,upper,size\n";
  EXPECT_EQ(error_of(""), "empty, a header line was expected: x.csv: line 1");
  EXPECT_EQ(error_of("id,lower,upper\n"), "column 'size' is missing: x.csv: line 1, column size");
  EXPECT_EQ(error_of("id,lower,id,upper,size\n"), "column 'id' appears twice: x.csv: line 1, column id");
  EXPECT_EQ(error_of(head + "0,1,2\n"), "3 cells where the header has 4: x.csv: line 2");
  EXPECT_EQ(error_of(head + "0,1,2,3\n1,,2,3\n"), "'' is not an integer: x.csv: line 3, column lower");
  EXPECT_EQ(error_of(head + "0,1,2,3.5\n"), "'3.5' is not an integer: x.csv: line 2, column size");
  EXPECT_EQ(error_of(head + "0,1,2,-3\n"), "-3 is negative: x.csv: line 2, column size");
  EXPECT_EQ(error_of(head + "0,5,5,3\n"), "lower 5 is not below upper 5: x.csv: line 2, column upper");
  EXPECT_EQ(error_of(head + "0,1,2,9223372036854775808\n"),
            "'9223372036854775808' is out of range: x.csv: line 2, column size");
  EXPECT_EQ(error_of(head + "0,1,2,9223372036854775807\n"),
            "sizes add up to more than 4611686018427387904: x.csv: line 2, column size");
  EXPECT_EQ(error_of(head + "a,1,2,3\n\na,1,2,3\n"), "'a' appears twice: x.csv: line 4, column id");
  EXPECT_EQ(error_of(head + ",1,2,3\n"), "empty: x.csv: line 2, column id");
  EXPECT_EQ(error_of("id,lower,upper,size,alignment\n0,1,2,3,0\n"),
            "0 is not an alignment: x.csv: line 2, column alignment");
  EXPECT_EQ(parse_case("id", "x").error().code, ErrorCode::kBadData);
}

TEST(Cases, UnreadableFileIsAnIoError) {
  const auto missing = read_case(kCases + "absent.csv");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_FALSE(read_case(kCases).ok());  // a directory
}

TEST(Cases, LargeFilesAreFine) {
  std::string text = "id,lower,upper,size\n";
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ",0," + std::to_string(i + 1) + ",64\n";
  const auto read = parse_case(text, "large.csv");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->buffers.back().upper, 200'000);
}

}  // namespace
}  // namespace plimsoll::memory
