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

TEST(Table, CountsWithANoun) {
  EXPECT_EQ(counted(1, "tensor"), "1 tensor");
  EXPECT_EQ(counted(2500, "tensor"), "2,500 tensors");
}

}  // namespace
}  // namespace plimsoll::cli
