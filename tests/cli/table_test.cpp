#include "cli/table.h"

#include <gtest/gtest.h>

namespace plimsoll::cli {
namespace {

TEST(Table, LinesUp) {
  Table table({{"name"}, {"size", Table::Align::kRight}, {"note"}});
  table.add({"a", "1", "x"});
  table.add({"longer \u00e9", "1,000"});
  EXPECT_EQ(table.text(),
            "name       size  note\n"
            "a             1  x\n"
            "longer \u00e9  1,000\n");
}

TEST(Table, LeavesOutEmptyTitles) {
  Table table({{""}, {""}});
  table.add({"a", "b"});
  EXPECT_EQ(table.text(), "a  b\n");
}

TEST(Table, SpellsOutControlCharacters) {
  Table table({{""}});
  table.add({"\x1b[31mred\n"});
  EXPECT_EQ(table.text(), "\\x1b[31mred\\x0a\n");
}

TEST(Table, GroupsNumbers) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-134515008), "-134,515,008");
  EXPECT_EQ(grouped(-100), "-100");
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(2500, "tensor"), "2,500 tensors");
}

}  // namespace
}  // namespace plimsoll::cli
