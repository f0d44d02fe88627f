#include "cli/profile/profile_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiling/profile_testing.h"

namespace plimsoll::cli {
namespace {

using profiling::ProfileBy;
using testing::HasSubstr;

const std::string kOp = "attention_packed_grad_of_a_long_name";
const std::string kLayer = "model.layers.12.self_attn";

profiling::Profile with_long_names() {
  profiling::Profile profile = profiling::profile_testing::two_steps();
  profile.facts[0].op = kOp, profile.facts[0].layer = kLayer;
  profile.facts[0].dims = "[[4, 512, 288], [1536, 288]]";
  return profile;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
    all.push_back(text.substr(begin, text.find('\n', begin) - begin));
  return all;
}

TEST(ProfileTable, FitsTheTerminalAndShowsNamesWholeWhereThereIsRoom) {
  for (const ProfileBy by : {ProfileBy::kOp, ProfileBy::kLayer, ProfileBy::kShape, ProfileBy::kOpAndLayer})
    for (const int columns : {0, 40, 80, 90, 100, 120, 200}) {
      const std::string table = profile_table(with_long_names(), by, columns);
      for (const std::string& line : lines(table)) EXPECT_LE(line.size(), std::max(80, columns)) << table;
      const std::vector<std::string> rows = lines(table);
      EXPECT_EQ(rows[0].size(), rows[1].size()) << table;  // each number below its heading
    }
  const std::string narrow = profile_table(with_long_names(), ProfileBy::kOpAndLayer, 80);
  EXPECT_THAT(narrow, HasSubstr("~_of_a_long_name"));
  EXPECT_THAT(narrow, HasSubstr("~rs.12.self_attn"));
  const std::string wide = profile_table(with_long_names(), ProfileBy::kOpAndLayer, 200);
  EXPECT_THAT(wide, HasSubstr(kOp + " " + kLayer + " "));
  EXPECT_LT(lines(wide)[1].size(), 120U) << "no wider than it has use for";
}

}  // namespace
}  // namespace plimsoll::cli
