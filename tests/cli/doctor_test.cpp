#include <gmock/gmock.h>

#include "base/machine_memory.h"
#include "run_plimsoll.h"

namespace plimsoll::cli {
namespace {

TEST(DoctorTest, SaysWhichLimitRules) {
  const MachineMemory memory = read_machine_memory();
  const Outcome text = run_plimsoll({"doctor"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, testing::HasSubstr("memory limit"));
  EXPECT_THAT(text.out, testing::HasSubstr(memory.limited_by.empty() ? "none" : memory.limited_by));

  const Outcome json = run_plimsoll({"doctor", "--json"});
  EXPECT_EQ(json.code, 0) << json.err;
  const auto lines = objects(json.out);
  ASSERT_EQ(lines.size(), 1U);
  const io::Tree* said = lines[0].find("memory");
  ASSERT_NE(said, nullptr);
  EXPECT_EQ(said->find("total_bytes")->integer, memory.physical_bytes);
  EXPECT_EQ(said->find("limit_bytes")->integer, memory.limit_bytes);
  EXPECT_GT(said->find("available_bytes")->integer, 0);
  EXPECT_EQ(said->find("limited_by")->is_null(), memory.limited_by.empty());
  EXPECT_EQ(said->find("limited_by")->text, memory.limited_by);
}

TEST(DoctorTest, ListsLibrariesOfMpiAndNccl) {
  const Outcome text = run_plimsoll({"doctor"});
  EXPECT_THAT(text.out, testing::HasSubstr("launcher"));
  EXPECT_THAT(text.out, testing::HasSubstr("none started this process"));
  const auto lines = objects(run_plimsoll({"doctor", "--json"}).out);
  ASSERT_EQ(lines.size(), 1U);
  const io::Tree* ranks = lines[0].find("ranks");
  ASSERT_NE(ranks, nullptr);
  EXPECT_TRUE(ranks->find("launcher")->is_null());
  ASSERT_NE(ranks->find("mpi"), nullptr);
  for (const io::Tree& library : ranks->find("mpi")->items) {
    EXPECT_THAT(library.find("library")->text, testing::HasSubstr("libmpi"));
    EXPECT_THAT(text.out, testing::HasSubstr(library.find("version")->text));
  }
  const io::Tree* nccl = ranks->find("nccl");
  ASSERT_NE(nccl, nullptr);
  EXPECT_THAT(text.out, testing::HasSubstr(nccl->is_null() ? "through their hosts without it"
                                                           : nccl->find("library")->text));
}

}  // namespace
}  // namespace plimsoll::cli
