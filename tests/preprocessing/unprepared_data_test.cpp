#include "preprocessing/unprepared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::preprocessing {
namespace {

using testing::ElementsAre;

TEST(UnpreparedData, NamesTheFilesAsTheyLieThere) {
  const io::TemporaryFolder folder;
  folder.write("a.bin", "1");
  folder.write("b.bin", "2");
  folder.write("c.dat", "3");
  settings::RunConfig run;
  run.data.train = {folder.path("*.bin"), folder.path("c.dat")};
  run.data.eval.files = {folder.path("c.dat")};
  const auto joined = unprepared_data(run, /*train=*/true);
  ASSERT_TRUE(joined) << joined.error().message();
  ASSERT_EQ(joined->train.size(), 1U);
  EXPECT_THAT(joined->train[0].paths,
              ElementsAre(folder.path("a.bin"), folder.path("b.bin"), folder.path("c.dat")));
  ASSERT_EQ(joined->eval.size(), 1U);
  EXPECT_THAT(joined->eval[0].paths, ElementsAre(folder.path("c.dat")));
  run.data.weights = {3, 1};
  const auto mixed = unprepared_data(run, /*train=*/true);
  ASSERT_EQ(mixed->train.size(), 2U);
  EXPECT_EQ(mixed->train[0].weight, 3);
  EXPECT_TRUE(unprepared_data(run, /*train=*/false)->train.empty());
}

TEST(UnpreparedData, RefusesWhatItCannotDo) {
  settings::RunConfig run;
  run.data.train = {"/no/such/*.bin"};
  EXPECT_EQ(unprepared_data(run, /*train=*/true).error().code, ErrorCode::kBadData);
  run.data.eval_fraction = 0.1;
  EXPECT_EQ(unprepared_data(run, /*train=*/true).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plimsoll::preprocessing
