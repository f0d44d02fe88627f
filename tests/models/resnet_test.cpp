// ResNet: its tensors by the names of files in both kinds of layers, and the fields that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "changed_config.h"
#include "image_forward.h"
#include "models/families.h"

namespace plimsoll::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::unique_ptr<ImageModel> resnet_with(const char* changes) {
  return image_model_of(io::to_json(changed(resnet_family().sample, changes).fields()));
}

std::vector<std::string> resnet_tensors(const ImageModel& model) {
  std::vector<std::string> tensors;
  for (const Parameter& p : model.parameters())
    for (const ParameterView& view : p.views)
      tensors.push_back(view.name + " " + to_string(view.file_shape()));
  return tensors;
}

TEST(ResNet, HasTheTensorsOfFiles) {
  const auto model = resnet_with("{}");
  for (const char* tensor :
       {"resnet.embedder.embedder.convolution.weight [12,3,7,7]",
        "resnet.embedder.embedder.normalization.bias [12]",
        "resnet.encoder.stages.0.layers.0.layer.1.convolution.weight [5,5,3,3]",
        "resnet.encoder.stages.1.layers.0.shortcut.convolution.weight [36,20,1,1]",
        "resnet.encoder.stages.1.layers.1.layer.2.normalization.weight [36]", "classifier.1.weight [5,36]"})
    EXPECT_THAT(resnet_tensors(*model), Contains(tensor));
  std::vector<std::string> buffers;
  for (const Buffer& buffer : model->buffers()) buffers.push_back(buffer.view);
  EXPECT_THAT(buffers, Contains("resnet.embedder.embedder.normalization.running_var"));
  EXPECT_THAT(buffers,
              Contains("resnet.encoder.stages.0.layers.0.shortcut.normalization.num_batches_tracked"));
  EXPECT_THAT(buffers, Not(Contains(HasSubstr("stages.1.layers.1.shortcut"))));
}

TEST(ResNet, BuildsBasicLayersAndBothPlacesOfTheStride) {
  for (const char* change :
       {R"({"layer_type": "basic"})", R"({"downsample_in_bottleneck": true})",
        R"({"downsample_in_first_stage": true})", R"({"layer_type": "basic", "embedding_size": 20})"}) {
    SCOPED_TRACE(change);
    expect_images_agree(*resnet_with(change), 2, 37, 41);
  }
  EXPECT_THAT(resnet_tensors(*resnet_with(R"({"layer_type": "basic", "embedding_size": 20})")),
              Not(Contains(HasSubstr("stages.0.layers.0.shortcut"))));
}

TEST(ResNet, RefusesWhatWouldChangeTheNumbers) {
  for (const char* change : {R"({"layer_type": "wide"})", R"({"hidden_act": "gelu"})", R"({"depths": [1]})",
                             R"({"hidden_sizes": [20, 3]})"})
    EXPECT_FALSE(make_image_model(changed(resnet_family().sample, change))) << change;
}

}  // namespace
}  // namespace plimsoll::models
