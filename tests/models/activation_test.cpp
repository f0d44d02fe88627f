// Activations by their names in a config.json.
#include "models/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::models {
namespace {

Result<Activation> read(const std::string& json) {
  return read_activation(*io::parse_config_json(json, "config.json"), "hidden_act", "gelu");
}

TEST(Activation, HasTransformersNames) {
  using enum Activation::Kind;
  EXPECT_EQ(*read("{}"), (Activation{kGelu, ops::Gelu::kErf}));
  EXPECT_EQ(*read(R"({"hidden_act": "gelu_new"})"), (Activation{kGelu, ops::Gelu::kTanh}));
  EXPECT_EQ(*read(R"({"hidden_act": "relu"})"), Activation{kRelu});
  EXPECT_EQ(*read(R"({"hidden_act": "silu"})"), Activation{kSilu});
  EXPECT_EQ(*read(R"({"hidden_act": "swish"})"), Activation{kSilu});
  EXPECT_EQ(*read(R"({"hidden_act": "tanh"})"), Activation{kTanh});
}

TEST(Activation, RefusesOthersByName) {
  const auto other = read(R"({"hidden_act": "mish"})");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), testing::HasSubstr("hidden_act is \"mish\""));
  EXPECT_THAT(other.error().message(), testing::HasSubstr("quick_gelu, relu, silu"));
}

}  // namespace
}  // namespace plimsoll::models
