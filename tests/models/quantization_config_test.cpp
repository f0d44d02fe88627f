// What config.json says of weights in few bits, and what is refused by name.
#include "models/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/model.h"

namespace plimsoll::models {
namespace {

using testing::HasSubstr;

auto read_fields(const std::string& fields) {
  return read_quantization_config(
      io::parse_config_json(R"({"quantization_config": )" + fields + "}", "config.json").value());
}

TEST(QuantizationConfig, SaysWhatTheFilesHave) {
  ASSERT_TRUE(read_fields("null"));
  EXPECT_FALSE(read_fields("null")->has_value());
  const auto dtype = [](const std::string& fields) { return read_fields(fields)->value().dtype; };
  EXPECT_EQ(dtype(R"({"load_in_4bit": true})"), ir::DType::kFp4);  // transformers' default
  EXPECT_EQ(dtype(R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})"), ir::DType::kNf4);
  EXPECT_EQ(
      dtype(R"({"load_in_4bit": true, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": true})"),
      ir::DType::kNf4Double);
  EXPECT_EQ(dtype(R"({"load_in_8bit": true, "quant_method": "bitsandbytes"})"), ir::DType::kI8Rows);
  const auto spec = read_fields(R"({"load_in_8bit": true, "llm_int8_skip_modules": ["lm_head", "q_proj"]})");
  EXPECT_THAT((*spec)->skip_modules, testing::ElementsAre("lm_head", "q_proj"));
  EXPECT_TRUE((*spec)->stored);
}

TEST(QuantizationConfig, OthersAreRefusedByName) {
  for (const char* method : {"gptq", "awq", "hqq", "fp8"}) {
    const auto refused = read_fields(std::string(R"({"quant_method": ")") + method + "\"}");
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message(), HasSubstr(method));
    EXPECT_THAT(refused.error().hint, HasSubstr("original model"));
  }
  for (const auto& [fields, message] : std::vector<std::pair<const char*, const char*>>{
           {R"({"quant_method": "bitsandbytes"})", "one of load_in_4bit and load_in_8bit"},
           {R"({"load_in_4bit": true, "load_in_8bit": true})", "one of load_in_4bit and load_in_8bit"},
           {R"({"load_in_4bit": true, "bnb_4bit_quant_type": "af4"})", "bnb_4bit_quant_type is \"af4\""},
           {R"({"load_in_4bit": true, "bnb_4bit_quant_storage": "float16"})", "bnb_4bit_quant_storage"},
           {R"({"load_in_4bit": true, "llm_int8_skip_modules": "lm_head"})", "llm_int8_skip_modules"},
           {R"({"load_in_4bit": true, "llm_int8_skip_modules": [3]})", "llm_int8_skip_modules"},
           {"[]", "quantization_config"}}) {
    const auto refused = read_fields(fields);
    ASSERT_FALSE(refused) << fields;
    EXPECT_EQ(refused.error().code, ErrorCode::kBadData);
    EXPECT_THAT(refused.error().message(), HasSubstr(message));
  }
}

TEST(QuantizationConfig, NoModelIsMadeOfAnotherMethod) {
  const auto model = make_model(
      io::parse_config_json(R"({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}})",
                            "config.json")
          .value());
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message(), HasSubstr("gptq"));
}

}  // namespace
}  // namespace plimsoll::models
