// What is read of directories that transformers saved with bitsandbytes, and what is refused.
#include "checkpoints/quantized_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "io/safetensors_bytes.h"
#include "io/temporary_folder.h"
#include "numerics/bitsandbytes.h"
#include "numerics/dynamic_map.h"
#include "numerics/formats.h"

namespace plimsoll::checkpoints {
namespace {

using testing::HasSubstr;

struct Part {
  std::string dtype, shape, bytes;
};
using Parts = std::map<std::string, Part>;

std::string floats(std::span<const float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

/// A matrix [2, 70]: 140 values, three blocks.
Parts nested_parts() {
  const std::string state =
      R"({"quant_type": "nf4", "blocksize": 64, "dtype": "float32", "shape": [2, 70], "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": 0.5})";
  return {{"a.weight", {"U8", "70,1", std::string(70, '\x17')}},
          {"a.weight.absmax", {"U8", "3", std::string("\xff\x00\x7f", 3)}},
          {"a.weight.quant_map", {"F32", "16", floats(numerics::kNf4Values)}},
          {"a.weight.nested_absmax", {"F32", "1", floats(std::vector<float>{0.25F})}},
          {"a.weight.nested_quant_map", {"F32", "256", floats(numerics::signed_dynamic_map().values)}},
          {"a.weight.quant_state.bitsandbytes__nf4", {"U8", std::to_string(state.size()), state}}};
}

Parts row_parts() {
  return {{"b.weight", {"I8", "2,3", std::string(6, '\x05')}},
          {"b.SCB", {"F32", "2", floats(std::vector<float>{1.0F, 2.0F})}},
          {"b.weight_format", {"U8", "", std::string(1, '\0')}}};
}

/// Found in a file of these parts.
class QuantizedFile {
 public:
  explicit QuantizedFile(const Parts& parts) {
    std::string members, payload;
    for (const auto& [name, part] : parts) {
      const std::string begin = std::to_string(payload.size());
      payload += part.bytes;
      members += (members.empty() ? "" : ",") +
                 io::header_entry(name, part.dtype, part.shape, begin + "," + std::to_string(payload.size()));
    }
    folder_.write("model.safetensors", io::safetensors_bytes("{" + members + "}", payload));
    weights_.emplace(io::ModelWeights::open(folder_.path()).value());
  }
  [[nodiscard]] auto found() const { return find_quantized(*weights_); }

 private:
  io::TemporaryFolder folder_;
  std::optional<io::ModelWeights> weights_;
};

TEST(QuantizedTensors, FindsBothKinds) {
  Parts parts = nested_parts();
  parts.merge(row_parts());
  parts["c.weight"] = {"F32", "1", "1234"};
  const QuantizedFile file(parts);
  const auto found = file.found();
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->size(), 2);
  const QuantizedTensor& a = found->at("a.weight");
  EXPECT_EQ(a.format, QuantizedFormat::kNf4);
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 70}));
  EXPECT_TRUE(a.nested);
  EXPECT_EQ(*read_scales(a), (std::vector<float>{0.75F, 0.5F - 0.25F * 0.992968738079071F, 0.5F}));
  const QuantizedTensor& b = found->at("b.weight");
  EXPECT_EQ(b.format, QuantizedFormat::kInt8Rows);
  EXPECT_EQ(*read_scales(b), (std::vector<float>{1.0F, 2.0F}));
}

TEST(QuantizedTensors, RefusesWhatDoesNotFitTogether) {
  const auto state_with = [](const std::string& from, const std::string& to) {
    return [from, to](Parts& p) {
      Part& state = p["a.weight.quant_state.bitsandbytes__nf4"];
      state.bytes.replace(state.bytes.find(from), from.size(), to);
      state.shape = std::to_string(state.bytes.size());
    };
  };
  const std::vector<std::pair<std::function<void(Parts&)>, std::string>> cases = {
      {[](Parts& p) { p.erase("a.weight"); }, "there is no a.weight"},
      {[](Parts& p) { p.erase("a.weight.absmax"); }, "there is no a.weight.absmax"},
      {[](Parts& p) { p.erase("a.weight.quant_map"); }, "there is no a.weight.quant_map"},
      {[](Parts& p) { p.erase("a.weight.nested_absmax"); }, "there is no a.weight.nested_absmax"},
      {[](Parts& p) { p.erase("a.weight.quant_state.bitsandbytes__nf4"); }, "no quant state"},
      {[](Parts& p) {
         p["a.weight.absmax"] = {"U8", "2", "xx"};
       },
       "expected 3 elements of U8"},
      {[](Parts& p) { p["a.weight.quant_map"].bytes[0] = 'x'; }, "for code 0"},
      {[](Parts& p) { p["a.weight.nested_quant_map"].bytes[9] = 'x'; }, "for code 2"},
      {state_with("64", "32"), "blocksize is 32, and only 64"},
      {state_with("256", "128"), "nested_blocksize is 128, and only 256"},
      {state_with("0.5", "1e99"), "nested_offset"},
      {state_with("[2, 70]", "[4611686018427387904, 70]"), "beyond 63 bits"},
      {state_with("[2, 70]", "[2, -70]"), "extent of"},
      {state_with("[2, 70]", "[140]"), "not that of a matrix"},
      {state_with("[2, 70]", "[3, 70]"), "expected 105 elements of U8"},
      {state_with("\"nf4\"", "\"fp4\""), "says quant_type fp4"},
      {state_with("\"nf4\"", "\"af4\""), "quant_type"},
      {state_with("{", "["), ""}};
  for (const auto& [change, message] : cases) {
    Parts parts = nested_parts();
    change(parts);
    const auto found = QuantizedFile(parts).found();
    ASSERT_FALSE(found) << message;
    EXPECT_EQ(found.error().code, ErrorCode::kBadData);
    EXPECT_THAT(found.error().message(), HasSubstr(message));
  }
}

TEST(QuantizedTensors, RefusesRowsThatDoNotFit) {
  const std::vector<std::pair<std::function<void(Parts&)>, std::string>> cases = {
      {[](Parts& p) { p.erase("b.SCB"); }, "no SCB"},
      {[](Parts& p) { p.erase("b.weight"); }, "no such tensor"},
      {[](Parts& p) {
         p["b.SCB"] = {"F32", "1", "1234"};
       },
       "expected 2 elements of F32"},
      {[](Parts& p) {
         p["b.weight"] = {"I8", "6", "123456"};
       },
       "I8 matrix"},
      {[](Parts& p) { p["b.weight_format"].bytes = "\x02"; }, "weight_format is 2"}};
  for (const auto& [change, message] : cases) {
    Parts parts = row_parts();
    change(parts);
    const auto found = QuantizedFile(parts).found();
    ASSERT_FALSE(found) << message;
    EXPECT_THAT(found.error().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace plimsoll::checkpoints
