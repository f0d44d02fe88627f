// The comparison of two plans, from reports made by hand.
#include "planner/report/report_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace plimsoll::planner {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanDiff example() {
  PlanDiff diff{"a.yaml", "b.yaml", {}, {}, {{"training.optimizer", "adamw", "sgd"}}};
  diff.a.model = diff.b.model = "m";
  diff.a.classes = {{"parameters", 4'000'000}, {"optimizer_state", 8'000'000}, {"outputs", 0}};
  diff.b.classes = {{"parameters", 4'000'000}, {"optimizer_state", 2'000'000}, {"outputs", 0}};
  diff.a.persistent_bytes = 12'000'000, diff.b.persistent_bytes = 6'000'000;
  diff.a.phases = {{"step", 12'000'000, 500, 20}, {"save", 12'000'000, 0, 20}};
  diff.b.phases = {{"step", 6'000'000, 500, 20}, {"update", 6'000'000, 0, 20}};
  diff.a.seconds_estimated = 2, diff.b.seconds_estimated = 1.5;
  diff.a.overhead_bytes = diff.b.overhead_bytes = 1000;
  diff.b.fits = false;
  return diff;
}

/// The words of the table's line that begins with `name`.
std::vector<std::string> line(const std::string& table, const std::string& name) {
  std::istringstream lines(table);
  for (std::string each; std::getline(lines, each);) {
    std::istringstream text(each);
    std::vector<std::string> words;
    for (std::string word; text >> word;) words.push_back(word);
    if (!words.empty() && words[0] == name) return words;
  }
  return {};
}
using Words = std::vector<std::string>;

TEST(ReportDiffTest, TheTableSaysBytesAndShares) {
  const std::string table = plan_diff_table(example());
  EXPECT_EQ(line(table, "training.optimizer"), (Words{"training.optimizer", "adamw", "sgd"}));
  EXPECT_EQ(line(table, "parameters"), (Words{"parameters", "4,000,000", "4,000,000", "="}));
  EXPECT_EQ(line(table, "optimizer_state"),
            (Words{"optimizer_state", "8,000,000", "2,000,000", "-6,000,000", "-75.0", "%"}));
  EXPECT_EQ(line(table, "step"), (Words{"step", "12,001,520", "6,001,520", "-6,000,000", "-50.0", "%"}));
  EXPECT_EQ(line(table, "save"), (Words{"save", "12,001,020", "-", "-"}));
  EXPECT_EQ(line(table, "update"), (Words{"update", "-", "6,001,020", "-"}));
  EXPECT_EQ(line(table, "seconds_estimated"), (Words{"seconds_estimated", "2", "1.5", "-0.5", "-25.0", "%"}));
  EXPECT_EQ(line(table, "fits"), (Words{"fits", "yes", "no"}));
  EXPECT_THAT(table, Not(HasSubstr("outputs")));
}

TEST(ReportDiffTest, TheTableIsAlignedAndNarrow) {
  std::istringstream lines(plan_diff_table(example()));
  size_t end = 0;
  for (std::string each; std::getline(lines, each);) {
    EXPECT_LE(each.size(), 100U) << each;
    EXPECT_FALSE(each.ends_with(' ')) << each;
    if (!each.starts_with("  ") || each.find(',') == std::string::npos) continue;
    const size_t b = each.find_last_of("=-");  // the column B - A ends where its dashes and equals signs do
    if (b + 1 != each.size()) continue;
    EXPECT_TRUE(end == 0 || end == b) << each;
    end = b;
  }
  EXPECT_GT(end, 0U);
}

TEST(ReportDiffTest, TheEventHoldsBothPlansAndEveryDifference) {
  const io::Tree event = plan_diff_event(example());
  EXPECT_EQ(event.find("event")->text, "plan_diff");
  EXPECT_EQ(event.find("a")->find("run")->text, "a.yaml");
  EXPECT_EQ(event.find("a")->find("event"), nullptr);
  EXPECT_EQ(event.find("b")->find("device")->find("persistent_bytes")->integer, 6'000'000);
  EXPECT_EQ(event.find("settings")->items.at(0).find("b")->text, "sgd");
  const auto& rows = event.find("differences")->items;
  const auto named = [&](std::string_view section, std::string_view name) -> const io::Tree& {
    return *std::find_if(rows.begin(), rows.end(), [&](const io::Tree& row) {
      return row.find("section")->text == section && row.find("name")->text == name;
    });
  };
  EXPECT_EQ(named("peaks", "process peak").find("difference")->integer, -6'000'000);
  EXPECT_EQ(named("classes", "optimizer_state").find("percent")->number, -75);
  EXPECT_TRUE(named("classes", "outputs").find("percent")->is_null());
  EXPECT_TRUE(named("phases", "save").find("b")->is_null());
  EXPECT_TRUE(named("phases", "save").find("difference")->is_null());
}

TEST(ReportDiffTest, NothingDiffers) {
  PlanDiff diff = example();
  diff.b = diff.a;
  diff.settings.clear();
  const std::string table = plan_diff_table(diff);
  EXPECT_THAT(table, HasSubstr("No setting differs"));
  EXPECT_THAT(table, Not(HasSubstr("%")));
}

}  // namespace
}  // namespace plimsoll::planner
