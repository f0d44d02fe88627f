#include "runtime/kernel_table.h"

#include <gtest/gtest.h>

namespace plimsoll::runtime {
namespace {

struct Entry {
  std::string_view op;
  int number = 0;
};

TEST(KernelTable, FindsByNameInWhatWasJoined) {
  constexpr Entry kSome[] = {{"mul", 1}, {"add", 2}}, kOthers[] = {{"cast", 3}};
  const auto all = join_kernels<Entry>({kSome, kOthers});
  const std::span<const Entry> sorted(all);
  ASSERT_NE(find_kernel(sorted, "cast"), nullptr);
  EXPECT_EQ(find_kernel(sorted, "cast")->number, 3);
  EXPECT_EQ(find_kernel(sorted, "add")->number, 2);
  EXPECT_EQ(find_kernel(sorted, "adds"), nullptr);
  EXPECT_EQ(find_kernel(sorted, "zeta"), nullptr);
}

}  // namespace
}  // namespace plimsoll::runtime
