#include "settings/quantization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace plimsoll::settings {
namespace {

using testing::HasSubstr;

RunConfig quantized(bool four, bool eight) {
  RunConfig config;
  config.model.path = "model";
  config.lora.enabled = true;
  config.quantization = {.enabled = true, .load_in_4bit = four, .load_in_8bit = eight};
  return config;
}

TEST(Quantization, SaysWhatWeightsAreKeptIn) {
  EXPECT_FALSE(quantize_spec({}));
  EXPECT_FALSE(quantize_spec(quantized(false, false).quantization));
  EXPECT_EQ(quantize_spec(quantized(false, true).quantization)->dtype, ir::DType::kI8Rows);
  QuantizationSettings s = quantized(true, false).quantization;
  EXPECT_EQ(quantize_spec(s)->dtype, ir::DType::kNf4);
  s.bnb_4bit_use_double_quant = true;
  EXPECT_EQ(quantize_spec(s)->dtype, ir::DType::kNf4Double);
  s.bnb_4bit_quant_type = "fp4";
  EXPECT_EQ(quantize_spec(s)->dtype, ir::DType::kFp4Double);
  s.bnb_4bit_use_double_quant = false;
  EXPECT_EQ(quantize_spec(s)->dtype, ir::DType::kFp4);
}

TEST(Quantization, WhatProductsAreComputedInIsThePrecision) {
  RunConfig config = quantized(true, false);
  for (const auto& [word, precision, agrees] : {std::tuple{"auto", Precision::kBf16, true},
                                                {"float32", Precision::kFp32, true},
                                                {"float32", Precision::kBf16, false},
                                                {"bfloat16", Precision::kBf16, true},
                                                {"bfloat16", Precision::kFp32, false},
                                                {"float16", Precision::kFp16, true}}) {
    config.quantization.bnb_4bit_compute_dtype = word;
    config.training.precision = precision;
    EXPECT_EQ(check_quantization(config).ok(), agrees) << word;
  }
}

TEST(Quantization, NeedsWeightsAndAdapters) {
  const auto refusal = [](const RunConfig& config, RunUse use) {
    const Status status = check_quantized_use(config, use);
    return status ? std::string() : status.error().what;
  };
  RunConfig config = quantized(true, false);
  EXPECT_EQ(refusal(config, RunUse::kTraining), "");
  config.lora.enabled = false;
  EXPECT_THAT(refusal(config, RunUse::kTraining), HasSubstr("without lora"));
  EXPECT_EQ(refusal(config, RunUse::kEvaluation), "");
  EXPECT_EQ(refusal(config, RunUse::kPlan), "");
  config.model.init = FirstWeights::kRandom;
  EXPECT_THAT(refusal(config, RunUse::kEvaluation), HasSubstr("drawn at random"));
}

}  // namespace
}  // namespace plimsoll::settings
