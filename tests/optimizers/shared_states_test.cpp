// Which states ranks share, and who owns them.
#include "optimizers/shared_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::optimizers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Groups = std::vector<std::vector<size_t>>;

constexpr ir::DType kF32 = ir::DType::kF32, kBf16 = ir::DType::kBf16;
const ir::Shape kLarge{300, 100}, kOther{200, 100}, kSmall{100};

RuledUpdate matrix(const std::string& name, const ir::Shape& shape = kLarge) {
  return {{.parameter = name, .gradient = {}, .is_hidden = true}, {kF32, shape}};
}

TEST(SharedStates, EachRankHasAPieceOfWhatIsUpdatedByElements) {
  const OptimizerOptions options{.state = {.masters = true}, .ranks = 2};
  const std::vector<RuledUpdate> all = {matrix("w"), matrix("v", kSmall)};
  const std::vector<SharedState> shared = shared_states(options, all);
  ASSERT_EQ(shared.size(), 3U) << "a master and two moments";
  EXPECT_EQ(shared[0].name, "master.w");
  EXPECT_EQ(shared[2].type, (ir::TensorType{kF32, kLarge}));
  EXPECT_EQ(shared[2].owner, -1);
  EXPECT_THAT(shared_states({}, all), IsEmpty()) << "one rank";
  EXPECT_TRUE(has_pieces({.name = "adamw_8bit", .ranks = 2}, kLarge, all[0].update)) << "whole blocks";
}

TEST(SharedStates, TensorsOfOneFormHaveAnOwnerEach) {
  const OptimizerOptions options{.name = "muon", .state = {.masters = true}, .ranks = 2};
  const std::vector<RuledUpdate> all = {matrix("a"), matrix("b"),         matrix("other", kOther),
                                        matrix("c"), matrix("v", kSmall), matrix("d")};
  EXPECT_EQ(owner_groups(options, all), (Groups{{0, 1}, {3, 5}})) << "one of a form stays whole";
  EXPECT_FALSE(has_pieces(options, kLarge, all[0].update));
  const std::vector<SharedState> shared = shared_states(options, all);
  ASSERT_EQ(shared.size(), 8U);
  EXPECT_EQ(shared[3].name, "muon.momentum.b");
  EXPECT_EQ(shared[3].kept, "muon.momentum.a");
  EXPECT_EQ(shared[3].owner, 1);
}

TEST(SharedStates, ParametersAndAveragesAreWhereTheirStatesAre) {
  OptimizerOptions options{.name = "muon", .averages = true, .ranks = 2, .shares_parameters = true};
  const std::vector<RuledUpdate> all = {matrix("a"), matrix("b"), matrix("v", kSmall)};
  const std::vector<SharedState> owned = shared_states(options, all);
  ASSERT_EQ(owned.size(), 6U) << "of two matrices the parameter, its average and momentum";
  EXPECT_EQ(owned[3].name, "b");
  EXPECT_EQ(owned[3].kept, "a");
  EXPECT_EQ(kept_type(owned[3], 2), owned[3].type);
  EXPECT_EQ(owned[4].kept, "ema.a");
  options.name = "adamw";
  const std::vector<SharedState> cut = shared_states(options, all);
  EXPECT_EQ(cut[0].name, "a");
  EXPECT_EQ(kept_type(cut[0], 2), (ir::TensorType{kF32, {16'384}}));
}

/// Another group's row, other parts or another dtype are another form.
TEST(SharedStates, AFormIsAllThatTheUpdateSees) {
  const OptimizerOptions options{.name = "adafactor", .ranks = 3};
  std::vector<RuledUpdate> all = {matrix("a"), matrix("b"), matrix("c"), matrix("d"), matrix("e")};
  EXPECT_EQ(owner_groups(options, all), (Groups{{0, 1, 2}, {3, 4}}));
  all[1].update.row = 1;
  all[2].update.parts = {200, 100};
  all[3].parameter.dtype = kBf16;
  EXPECT_EQ(owner_groups(options, all), (Groups{{0, 4}}));
}

}  // namespace
}  // namespace plimsoll::optimizers
