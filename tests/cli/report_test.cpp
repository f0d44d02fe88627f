#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "io/file.h"
#include "run_plimsoll.h"

namespace plimsoll::cli {
namespace {

using testing::HasSubstr;

/// A folder with these events, and nothing else.
std::string folder_with(const std::string& name, const std::string& events) {
  std::string folder = testing::TempDir() + "report_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_TRUE(io::write_file_atomically(folder + "/events.jsonl", events));
  return folder;
}

constexpr const char* kStep = "{\"event\": \"step\", \"step\": 1, \"loss\": 2.125}\n{\"event\": \"st";

TEST(ReportCommand, WritesAPage) {
  const std::string folder = folder_with("good", kStep), page = folder + "/page.html";
  const Outcome outcome = run_plimsoll({"report", folder, folder, "--output", page});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const auto text = io::read_small_file(page, 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_THAT(*text, HasSubstr("2.125 at step 1"));
  EXPECT_THAT(*text, HasSubstr("there is no run.yaml"));
}

TEST(ReportCommand, RefusesWhatIsNoRun) {
  const std::string bad = folder_with("bad", "hello\n");
  for (const std::string& folder : {bad, testing::TempDir() + "report_missing"}) {
    const Outcome outcome = run_plimsoll({"report", folder, "--output", bad + "/page.html"});
    EXPECT_EQ(outcome.code, 65);
    EXPECT_THAT(outcome.err, HasSubstr("output.dir"));
    EXPECT_FALSE(io::is_file(bad + "/page.html"));
  }
}

TEST(ReportCommand, SaysWhereItCannotWrite) {
  const std::string folder = folder_with("unwritten", kStep);
  EXPECT_EQ(run_plimsoll({"report", folder, "--output", folder + "/none/page.html"}).code, 74);
  EXPECT_EQ(run_plimsoll({"report", folder, "--output", folder}).code, 74);
}

}  // namespace
}  // namespace plimsoll::cli
