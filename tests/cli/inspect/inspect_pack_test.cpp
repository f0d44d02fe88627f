// A run's pack index, whole and damaged, as inspect shows it.
#include "cli/inspect/inspect_pack.h"

#include <gmock/gmock.h>

#include <fstream>

#include "cli/run_plimsoll.h"
#include "datasets/packing.h"
#include "datasets/shard_documents.h"
#include "io/temporary_folder.h"

namespace plimsoll::cli {
namespace {

TEST(InspectPackTest, ShowsWhatTheIndexHoldsAndFindsDamage) {
  const io::TemporaryFolder folder;
  datasets::write_shard(folder.path("a"), datasets::random_documents(200, 30, 300, 1), {300, 9, true});
  auto shard = datasets::Shard::open(folder.path("a"));
  ASSERT_TRUE(shard);
  const std::string path = folder.path("0.pack");
  const auto report = datasets::PackIndex::build({&*shard, 1}, {.sequence_length = 32}, path);
  ASSERT_TRUE(report) << report.error().message();
  const Outcome text = run_plimsoll({"inspect", path});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, testing::HasSubstr("pack index"));
  const auto lines = objects(run_plimsoll({"inspect", path, "--json"}).out);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].find("sequences")->integer, report->num_sequences);
  EXPECT_EQ(lines[0].find("tokens")->integer, report->num_tokens);
  EXPECT_EQ(lines[0].find("no_target_documents")->integer, report->no_target_documents);

  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(300);
  file.put('\x55');
  file.close();
  const Outcome damaged = run_plimsoll({"inspect", path});
  EXPECT_EQ(damaged.code, 65);
  EXPECT_THAT(damaged.err, testing::HasSubstr("of its segments does not match its checksum"));
}

}  // namespace
}  // namespace plimsoll::cli
