// The names by which tensors are found: transformers', a bare model's, timm's and torchvision's.
#include "checkpoints/weight_names.h"

#include <gtest/gtest.h>

#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"

namespace plimsoll::checkpoints {
namespace {

/// Whether a file with a tensor of that name holds ResNet's tensor `asked`.
bool is_found(const char* stored, const char* asked) {
  const io::TemporaryFolder folder;
  auto writer = io::SafetensorsWriter::create(folder.path("model.safetensors"), {{stored, "F32", {1}}});
  EXPECT_TRUE(writer);
  const float value = 1;
  EXPECT_TRUE(writer->write(0, std::as_bytes(std::span(&value, 1))));
  EXPECT_TRUE(writer->finish());
  const auto weights = io::ModelWeights::open(folder.path());
  EXPECT_TRUE(weights);
  const auto model = models::make_model(
      *io::parse_config_json(R"({"architectures": ["ResNetForImageClassification"], "model_type": "resnet",
      "embedding_size": 8, "hidden_sizes": [16], "depths": [1]})",
                             "config.json"));
  EXPECT_TRUE(model);
  return find_weight(*weights, asked, **model).has_value();
}

TEST(WeightNames, AreTransformersOrTimms) {
  constexpr const char* kAsked = "resnet.embedder.embedder.normalization.running_mean";
  EXPECT_TRUE(is_found(kAsked, kAsked));
  EXPECT_TRUE(is_found("embedder.embedder.normalization.running_mean", kAsked));
  EXPECT_TRUE(is_found("bn1.running_mean", kAsked));
  EXPECT_TRUE(is_found("timm_model.bn1.running_mean", kAsked));
  EXPECT_FALSE(is_found("bn2.running_mean", kAsked));
  EXPECT_TRUE(is_found("fc.weight", "classifier.1.weight"));
}

}  // namespace
}  // namespace plimsoll::checkpoints
