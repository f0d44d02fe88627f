// timm's config.json files: the architectures that are known, the labels, and what is refused.
#include "models/timm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image_forward.h"
#include "io/label_fields.h"
#include "models/families.h"
#include "models/presets.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

Result<io::ConfigJson> timm_config(const char* text) {
  return from_timm(*io::parse_config_json(text, "config.json"));
}

TEST(Timm, IsTheSameNetworkInTransformersForm) {
  const auto config = timm_config(R"({"architecture": "resnet18", "num_classes": 1000, "num_features": 512,
      "pretrained_cfg": {"input_size": [3, 224, 224]}})");
  ASSERT_TRUE(config) << config.error().message();
  const auto model = make_image_model(*config), preset = make_image_model(*preset_config("resnet-18"));
  ASSERT_TRUE(model);
  EXPECT_EQ(tensor_list(**model), tensor_list(**preset));
  EXPECT_TRUE((*model)->unknown_fields().empty());
  EXPECT_NE(config->fields().find("pretrained_cfg"), nullptr);
  const auto wrapped = timm_config(
      R"({"model_type": "timm_wrapper", "architecture": "convnext_tiny", "num_classes": 2, "label_names": ["a", "b"]})");
  ASSERT_TRUE(wrapped) << wrapped.error().message();
  EXPECT_EQ(io::read_label_fields(*wrapped)->names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*make_image_model(*wrapped))->num_labels(), 2);
}

TEST(Timm, ReadsVisionTransformers) {
  const auto config = timm_config(R"({"architecture": "vit_small_patch16_224", "num_classes": 1000})");
  ASSERT_TRUE(config) << config.error().message();
  const auto model = make_image_model(*config), preset = make_image_model(*preset_config("vit-s-16"));
  ASSERT_TRUE(model);
  EXPECT_EQ(tensor_list(**model), tensor_list(**preset));
  EXPECT_EQ(config->fields().find("layer_norm_eps")->number, 1e-6) << "timm's, which is not transformers'";
  EXPECT_FALSE(timm_config(R"({"architecture": "vit_small_patch16_224", "global_pool": "avg"})"));
  EXPECT_TRUE(timm_config(R"({"architecture": "vit_small_patch16_224", "global_pool": "token"})"));
  for (const char* tensor : {"query", "key", "value"}) {
    const std::string name = "vit.encoder.layer.11.attention.attention." + std::string(tensor) + ".bias";
    EXPECT_EQ((*model)->other_name(name), "blocks.11.attn.qkv.bias");
    EXPECT_EQ((*model)->other_part(name).index, tensor[0] == 'q' ? 0 : tensor[0] == 'k' ? 1 : 2);
    EXPECT_EQ((*model)->other_part(name).count, 3);
  }
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"vit.embeddings.cls_token", "cls_token"},
           {"vit.embeddings.position_embeddings", "pos_embed"},
           {"vit.embeddings.patch_embeddings.projection.weight", "patch_embed.proj.weight"},
           {"vit.encoder.layer.3.layernorm_before.weight", "blocks.3.norm1.weight"},
           {"vit.encoder.layer.3.attention.output.dense.bias", "blocks.3.attn.proj.bias"},
           {"vit.encoder.layer.3.layernorm_after.weight", "blocks.3.norm2.weight"},
           {"vit.encoder.layer.3.intermediate.dense.weight", "blocks.3.mlp.fc1.weight"},
           {"vit.encoder.layer.3.output.dense.weight", "blocks.3.mlp.fc2.weight"},
           {"vit.layernorm.bias", "norm.bias"},
           {"classifier.weight", "head.weight"}}) {
    EXPECT_EQ((*model)->other_name(ours), theirs);
    EXPECT_EQ((*model)->other_part(ours).count, 1);
  }
}

TEST(Timm, ReadsDinov2WithoutItsHead) {
  const auto config = timm_config(R"({"architecture": "vit_giant_patch14_dinov2", "num_classes": 0,
      "global_pool": "token"})");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(*config->model_type(), "dinov2");
  const auto model = make_model(*config);
  ASSERT_TRUE(model) << model.error().message();
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"dinov2.embeddings.position_embeddings", "pos_embed"},
           {"dinov2.encoder.layer.39.attention.attention.key.bias", "blocks.39.attn.qkv.bias"},
           {"dinov2.encoder.layer.0.layer_scale1.lambda1", "blocks.0.ls1.gamma"},
           {"dinov2.encoder.layer.1.mlp.weights_in.weight", "blocks.1.mlp.fc1.weight"},
           {"dinov2.encoder.layer.1.mlp.fc2.weight", "blocks.1.mlp.fc2.weight"},
           {"dinov2.layernorm.weight", "norm.weight"}})
    EXPECT_EQ((*model)->other_name(ours), theirs);
  const auto head = timm_config(R"({"architecture": "vit_small_patch14_dinov2", "num_classes": 10,
      "global_pool": "token"})");
  ASSERT_FALSE(head);
  EXPECT_THAT(head.error().message(), HasSubstr("num_classes is 10, expected 0"));
}

TEST(Timm, KnowsItsArchitectures) {
  const auto architecture = [](const char* text) {
    const auto config = timm_config(text);
    EXPECT_TRUE(config);
    return timm_architecture(*config);
  };
  for (const char* name :
       {"resnet18", "resnet50", "convnext_tiny", "vit_tiny_patch16_384", "vit_base_patch16_224"}) {
    const std::string pool = std::string_view(name).starts_with("vit") ? "token" : "avg";
    const auto found = architecture((R"({"architecture": ")" + std::string(name) +
                                     R"(", "num_classes": 3, "global_pool": ")" + pool + "\"}")
                                        .c_str());
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->architecture, name);
    EXPECT_EQ(found->pool, pool);
  }
  const auto other = architecture(R"({"model_type": "resnet", "embedding_size": 64, "layer_type": "basic",
      "hidden_sizes": [64, 128, 256, 512], "depths": [2, 2, 2, 2], "downsample_in_first_stage": true})");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("downsample_in_first_stage"));
  EXPECT_FALSE(architecture(R"({"model_type": "vit", "hidden_size": 60})"));
  EXPECT_FALSE(architecture(R"({"model_type": "gpt2"})"));
}

TEST(Timm, LeavesOtherConfigsAlone) {
  const auto config = timm_config(R"({"model_type": "vit", "architecture": "mine"})");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->fields().find("architecture")->text, "mine");
}

TEST(Timm, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {R"({"architecture": "resnet18d"})", R"({"architecture": "resnet18", "global_pool": "max"})",
        R"({"architecture": "resnet18", "model_args": {"output_stride": 16}})"}) {
    const auto config = timm_config(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.error().code, ErrorCode::kBadData);
  }
  EXPECT_THAT(timm_config(R"({"architecture": "vgg16"})").error().message(), HasSubstr("resnet18, resnet34"));
}

TEST(Timm, NamesEveryTensorOfTheFile) {
  const auto resnet =
      image_model_of(R"({"model_type": "resnet", "architectures": ["ResNetForImageClassification"],
      "num_labels": 3, "embedding_size": 8, "hidden_sizes": [16, 32], "depths": [1, 1]})");
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"resnet.embedder.embedder.convolution.weight", "conv1.weight"},
           {"resnet.embedder.embedder.normalization.running_mean", "bn1.running_mean"},
           {"resnet.encoder.stages.1.layers.0.layer.2.convolution.weight", "layer2.0.conv3.weight"},
           {"resnet.encoder.stages.0.layers.3.layer.0.normalization.bias", "layer1.3.bn1.bias"},
           {"resnet.encoder.stages.2.layers.0.shortcut.convolution.weight", "layer3.0.downsample.0.weight"},
           {"resnet.encoder.stages.2.layers.0.shortcut.normalization.num_batches_tracked",
            "layer3.0.downsample.1.num_batches_tracked"},
           {"classifier.1.bias", "fc.bias"}})
    EXPECT_EQ(resnet->other_name(ours), theirs);
  const auto convnext =
      image_model_of(R"({"model_type": "convnext", "architectures": ["ConvNextForImageClassification"],
      "num_labels": 3, "num_stages": 2, "hidden_sizes": [8, 16], "depths": [1, 1]})");
  for (const auto& [ours, theirs] : std::initializer_list<std::pair<const char*, const char*>>{
           {"convnext.embeddings.patch_embeddings.weight", "stem.0.weight"},
           {"convnext.embeddings.layernorm.bias", "stem.1.bias"},
           {"convnext.encoder.stages.1.downsampling_layer.0.weight", "stages.1.downsample.0.weight"},
           {"convnext.encoder.stages.1.layers.2.dwconv.bias", "stages.1.blocks.2.conv_dw.bias"},
           {"convnext.encoder.stages.1.layers.2.layernorm.weight", "stages.1.blocks.2.norm.weight"},
           {"convnext.encoder.stages.1.layers.2.pwconv1.weight", "stages.1.blocks.2.mlp.fc1.weight"},
           {"convnext.encoder.stages.1.layers.2.layer_scale_parameter", "stages.1.blocks.2.gamma"},
           {"convnext.layernorm.weight", "head.norm.weight"},
           {"classifier.weight", "head.fc.weight"}})
    EXPECT_EQ(convnext->other_name(ours), theirs);
}

}  // namespace
}  // namespace plimsoll::models
