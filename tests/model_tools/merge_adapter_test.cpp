// Adapters merged into a base of a few numbers, by hand; tests/e2e holds merged models against adapters that
// are evaluated with their base.
#include "model_tools/merge_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "io/model_weights.h"
#include "io/safetensors_writer.h"
#include "io/temporary_folder.h"
#include "models/model.h"

namespace plimsoll::model_tools {
namespace {

using testing::HasSubstr;

struct Tensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};
using Tensors = std::map<std::string, Tensor>;

constexpr const char* kQuery = "model.layers.0.self_attn.q_proj";

void write(const std::string& path, const Tensors& tensors) {
  std::vector<io::SafetensorsEntry> entries;
  for (const auto& [name, tensor] : tensors) entries.push_back({name, "F32", tensor.shape});
  auto writer = io::SafetensorsWriter::create(path, entries);
  ASSERT_TRUE(writer) << writer.error().message();
  size_t index = 0;
  for (const auto& [name, tensor] : tensors)
    ASSERT_TRUE(writer->write(index++, std::as_bytes(std::span(tensor.values))));
  ASSERT_TRUE(writer->finish());
}

class Merge : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path("base"));
    const std::string config =
        R"({"model_type": "llama", "vocab_size": 6, "hidden_size": 4, "intermediate_size": 8,
            "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1,
            "max_position_embeddings": 8, "tie_word_embeddings": false})";
    folder_.write("base/config.json", config);
    const auto model = models::make_model(*io::parse_config_json(config, "config.json"));
    ASSERT_TRUE(model);
    Tensors tensors;
    for (const models::Parameter& p : (*model)->parameters())
      for (const models::ParameterView& view : p.views) {
        Tensor& t = tensors[view.name];
        t.shape.assign(view.shape.dims().begin(), view.shape.dims().end());
        for (int64_t i = 0; i < view.shape.num_elements(); ++i)
          t.values.push_back(static_cast<float>(i % 7) - 3);
      }
    base_ = tensors;
    write(folder_.path("base/model.safetensors"), tensors);
  }
  /// A LoRA of rank 1 with alpha 2 on the query: A all `a`, B all `b`.
  std::string adapter(const std::string& name, float a, float b, int64_t columns = 4) const {
    std::filesystem::create_directories(folder_.path(name));
    folder_.write(name + "/adapter_config.json",
                  R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "target_modules": ["q_proj"]})");
    const std::string prefix = std::string("base_model.model.") + kQuery;
    write(folder_.path(name + "/adapter_model.safetensors"),
          {{prefix + ".lora_A.weight", {{1, columns}, std::vector<float>(static_cast<size_t>(columns), a)}},
           {prefix + ".lora_B.weight", {{4, 1}, std::vector<float>(4, b)}}});
    return folder_.path(name);
  }
  [[nodiscard]] MergeRequest request(std::vector<std::pair<std::string, double>> adapters) const {
    return {folder_.path("base"), std::move(adapters), folder_.path("merged"), 2};
  }
  [[nodiscard]] std::vector<float> merged(const std::string& name) const {
    const auto weights = io::ModelWeights::open(folder_.path("merged"));
    EXPECT_TRUE(weights);
    const auto ref = weights->find(name);
    EXPECT_TRUE(ref);
    std::vector<float> values(static_cast<size_t>(ref->tensor->num_elements()));
    EXPECT_TRUE(ref->file->read(*ref->tensor, 0, std::as_writable_bytes(std::span(values))));
    return values;
  }
  const io::TemporaryFolder folder_;
  Tensors base_;
};

TEST_F(Merge, AddsEachAdapterByItsWeightAndCopiesTheRest) {
  const auto report = merge_adapters(request({{adapter("a", 0.5F, 1), 1}, {adapter("b", 1, 1), -0.25}}));
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(report->num_tensors, static_cast<int64_t>(base_.size()));
  EXPECT_EQ(report->num_changed, 1);
  EXPECT_EQ(report->num_proven, 4);
  std::vector<float> expected = base_.at(std::string(kQuery) + ".weight").values;
  for (float& value : expected) value += 2 * 0.5F - 0.25F * 2;  // alpha / r is 2
  EXPECT_EQ(merged(std::string(kQuery) + ".weight"), expected);
  EXPECT_EQ(merged("lm_head.weight"), base_.at("lm_head.weight").values);
}

TEST_F(Merge, AnAdapterOfAnotherBaseIsRefusedAndNothingIsLeft) {
  const auto report = merge_adapters(request({{adapter("wide", 1, 1, 5), 1}}));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kBadData);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("merged")));
}

// What lies beside the weights goes along, or the merge says why not.
TEST_F(Merge, AFileBesideTheBaseThatCannotBeReadEndsTheMerge) {
  const std::string path = folder_.path("base/generation_config.json");
  std::filesystem::create_symlink(path, path);  // to itself: it is there, and no reader gets anywhere
  const auto report = merge_adapters(request({{adapter("a", 1, 1), 1}}));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kIo);
  EXPECT_THAT(report.error().message(), HasSubstr("generation_config.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("merged")));
}

TEST_F(Merge, TheOutputMustBeNew) {
  std::filesystem::create_directories(folder_.path("merged/theirs"));
  for (const std::string& output : {folder_.path("merged"), folder_.path("base")}) {
    MergeRequest into = request({{adapter("a", 1, 1), 1}});
    into.output = output;
    const auto report = merge_adapters(into);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::kInvalidArgument) << output;
  }
}

TEST_F(Merge, ABaseThatTrainingWouldNotLoadIsNotMergedInto) {
  Tensors fewer = base_;
  fewer.erase("lm_head.weight");
  write(folder_.path("base/model.safetensors"), fewer);
  const auto report = merge_adapters(request({{adapter("a", 1, 1), 1}}));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kBadData);
  EXPECT_THAT(report.error().message(), HasSubstr("lm_head.weight"));
}

}  // namespace
}  // namespace plimsoll::model_tools
