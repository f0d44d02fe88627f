// BatchNorm layers of a model: their parameters and buffers, and where their statistics come from.
#include "models/buffers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model.h"
#include "models/selection.h"

namespace plimsoll::models {
namespace {

class NormedModel final : public Model {
 public:
  NormedModel() {
    add_batch_norm({.name = "a", .channels = 3});
    add_batch_norm({.name = "b", .channels = 4});
  }
};

std::vector<NormStatistics> statistics_of(const Model& model) {
  std::vector<NormStatistics> all;
  for (const BatchNormLayer& layer : model.batch_norms()) all.push_back(layer.statistics);
  return all;
}

TEST(BuffersTest, ALayerHasParametersAndBuffers) {
  const NormedModel model;
  EXPECT_EQ(model.num_parameters(), 14);
  ASSERT_EQ(model.buffers().size(), 6U);
  EXPECT_EQ(model.buffers()[1].view, "a.running_var");
  EXPECT_EQ(model.buffers()[1].init, 1);
  const ir::StateDecl count = state_of(model.buffers()[5]);
  EXPECT_EQ(count.name, "b.num_batches_tracked");
  EXPECT_EQ(count.type.bytes().count, 8) << "the words of an I64";
  EXPECT_EQ(count.state_class, ir::StateClass::kBuffer);
}

/// Keras' rule, and not PyTorch's, where running statistics of frozen norms move on.
TEST(BuffersTest, StatisticsAreFrozenWithTheParameters) {
  using enum NormStatistics;
  NormedModel model;
  model.set_norm_statistics({});
  EXPECT_THAT(statistics_of(model), testing::ElementsAre(kBatch, kBatch));
  ASSERT_TRUE(select(model, {.freeze = {"a.*", "b.weight"}}).ok());
  model.set_norm_statistics({});
  EXPECT_THAT(statistics_of(model), testing::ElementsAre(kFrozen, kBatch)) << "b's bias learns";
  EXPECT_TRUE(model.couples_micro_batch());
  model.set_norm_statistics(kFrozen);
  EXPECT_THAT(statistics_of(model), testing::ElementsAre(kFrozen, kFrozen));
  EXPECT_FALSE(model.couples_micro_batch());
  model.set_norm_statistics(kBatch);
  EXPECT_THAT(statistics_of(model), testing::ElementsAre(kBatch, kBatch));
}

}  // namespace
}  // namespace plimsoll::models
