// A vision transformer in timm's form: names, the joined tensor of query, key and value, the config, and what
// is refused. tests/interop/timm_compare.py opens such folders with timm.
#include "model_tools/export_timm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoints/load_weights.h"
#include "images/processor.h"
#include "io/json.h"
#include "io/label_fields.h"
#include "io/model_weights.h"
#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"
#include "models/model.h"
#include "models/timm.h"

namespace plimsoll::model_tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Codes of bf16 that tell tensors and elements apart.
std::vector<uint16_t> codes_of(const std::string& name, size_t count) {
  std::vector<uint16_t> codes(count);
  const size_t start = std::hash<std::string>()(name);
  for (size_t i = 0; i < count; ++i) codes[i] = static_cast<uint16_t>((start + i) & 0x3fff);
  return codes;
}

class ExportTimm : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_.path("model")); }

  /// vit_tiny_patch16_224 as transformers has it, without this field or with another value of it.
  void write_model(const std::string& field = "", const std::string& value = "") const {
    auto config = models::from_timm(*io::parse_config_json(
        R"({"architecture": "vit_tiny_patch16_224", "num_classes": 2, "label_names": ["a", "b"]})", "x"));
    ASSERT_TRUE(config) << config.error().message();
    if (!field.empty()) config->set(field, *io::parse_json(value));
    folder_.write("model/config.json", io::to_json(config->fields()));
    const auto model = models::make_model(*config);
    ASSERT_TRUE(model) << model.error().message();
    std::vector<io::SafetensorsEntry> entries;
    for (const models::Parameter& p : (*model)->parameters())
      for (const models::ParameterView& view : p.views) {
        const ir::Shape shape = view.file_shape();
        entries.push_back({view.name, "BF16", {shape.dims().begin(), shape.dims().end()}});
      }
    auto writer = io::SafetensorsWriter::create(folder_.path("model/model.safetensors"), entries);
    ASSERT_TRUE(writer);
    for (size_t i = 0; i < entries.size(); ++i) {
      size_t count = 1;
      for (const int64_t extent : entries[i].shape) count *= static_cast<size_t>(extent);
      const std::vector<uint16_t> codes = codes_of(entries[i].name, count);
      ASSERT_TRUE(writer->write(i, std::as_bytes(std::span(codes))));
    }
    ASSERT_TRUE(writer->finish());
  }
  [[nodiscard]] Result<TimmReport> run() const {
    return export_timm({.model = folder_.path("model"), .output = folder_.path("out")});
  }
  [[nodiscard]] std::string refusal() const {
    const auto report = run();
    EXPECT_FALSE(report);
    EXPECT_FALSE(std::filesystem::exists(folder_.path("out")));
    return report ? "" : report.error().message();
  }
  const io::TemporaryFolder folder_;
};

TEST_F(ExportTimm, WritesTimmsNamesAndConfig) {
  write_model();
  images::Processor processor = images::default_processor(224);
  processor.resize = images::Resize::kShortest;
  processor.shortest = 235;
  processor.crop = images::Crop::kCenter;
  folder_.write("model/preprocessor_config.json", images::processor_json(processor));
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->architecture, "vit_tiny_patch16_224");
  EXPECT_THAT(report->notes, ElementsAre());
  const auto config = io::read_config_json(folder_.path("out/config.json"));
  ASSERT_TRUE(config);
  EXPECT_EQ(*config->string("global_pool"), "token");
  EXPECT_EQ(*config->integer("num_classes", {0, 9}), 2);
  const auto transform = images::timm_processor(*config->fields().find("pretrained_cfg"), "x");
  ASSERT_TRUE(transform) << transform.error().message();
  EXPECT_EQ(transform->shortest, 235);
  EXPECT_EQ(transform->interpolation, processor.interpolation);
  const auto back = models::from_timm(*config);
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_THAT(io::read_label_fields(*back)->names, ElementsAre("a", "b"));
  const auto model = models::make_model(*back);
  const auto weights = io::ModelWeights::open(folder_.path("out"));
  ASSERT_TRUE(weights) << weights.error().message();
  EXPECT_EQ(static_cast<int64_t>(weights->names().size()), report->num_tensors);
  EXPECT_FALSE(weights->find("vit.layernorm.bias"));
  const auto match = checkpoints::match_weights(**model, *weights);
  ASSERT_TRUE(match);
  EXPECT_TRUE(match->fits());
  for (const checkpoints::WeightSource& source : match->sources) {
    std::vector<uint16_t> codes(static_cast<size_t>(source.view->file_shape().num_elements()));
    ASSERT_TRUE(source.weight.file->read(*source.weight.tensor, 0, std::as_writable_bytes(std::span(codes))));
    EXPECT_TRUE(codes == codes_of(source.view->name, codes.size())) << source.view->name;
  }
}

TEST_F(ExportTimm, RefusesWhatTimmHasNoFormFor) {
  write_model("qkv_bias", "false");
  EXPECT_THAT(refusal(), HasSubstr("qkv_bias"));
  write_model("num_attention_heads", "6");
  EXPECT_THAT(refusal(), HasSubstr("num_attention_heads"));
  write_model();
  folder_.write("model/preprocessor_config.json", images::processor_json(images::default_processor(160)));
  EXPECT_THAT(refusal(), HasSubstr("160 x 160"));
  images::Processor processor = images::default_processor(224);
  processor.rescale = 1;
  folder_.write("model/preprocessor_config.json", images::processor_json(processor));
  EXPECT_THAT(refusal(), HasSubstr("1/255"));
}

TEST_F(ExportTimm, SaysThatItsNormsDiffer) {
  write_model("layer_norm_eps", "1e-12");
  const auto report = run();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr("epsilon")));
}

}  // namespace
}  // namespace plimsoll::model_tools
