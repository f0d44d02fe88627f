#include "models/quantization_config.h"

#include <fmt/format.h>

namespace plimsoll::models {
namespace {

constexpr const char* kTakeOriginal = "take the original model, or plimsoll quantize of it";

Result<ir::DType> four_bit_type(const io::ConfigJson& fields) {
  PLIMSOLL_ASSIGN(const std::string type, fields.string("bnb_4bit_quant_type", "fp4"));
  if (type != "nf4" && type != "fp4") return fields.error("bnb_4bit_quant_type", "nf4 or fp4");
  PLIMSOLL_ASSIGN(const bool twice, fields.boolean("bnb_4bit_use_double_quant", false));
  PLIMSOLL_ASSIGN(const std::string storage, fields.string("bnb_4bit_quant_storage", "uint8"));
  if (storage != "uint8") return fields.error("bnb_4bit_quant_storage", "uint8", kTakeOriginal);
  if (type == "nf4") return twice ? ir::DType::kNf4Double : ir::DType::kNf4;
  return twice ? ir::DType::kFp4Double : ir::DType::kFp4;
}

Result<std::vector<std::string>> skip_modules(const io::ConfigJson& fields) {
  std::vector<std::string> names;
  if (!fields.has("llm_int8_skip_modules")) return names;
  const io::Tree& list = *fields.fields().find("llm_int8_skip_modules");
  if (list.kind != io::Tree::Kind::kList)
    return fields.error("llm_int8_skip_modules", "a list of module names");
  for (const io::Tree& item : list.items) {
    if (item.kind != io::Tree::Kind::kString)
      return fields.error("llm_int8_skip_modules", "a list of module names");
    names.push_back(item.text);
  }
  return names;
}

}  // namespace

Result<std::optional<QuantizeSpec>> read_quantization_config(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(const std::optional<io::ConfigJson> fields, config.object("quantization_config"));
  if (!fields) return std::optional<QuantizeSpec>();
  // Before transformers 4.30 the method was not named; only bitsandbytes was there.
  PLIMSOLL_ASSIGN(const std::string method, fields->string("quant_method", "bitsandbytes"));
  if (method != "bitsandbytes")
    return Error{
        ErrorCode::kBadData,
        fmt::format("the model is quantized by {}, and only bitsandbytes is supported", method.substr(0, 80)),
        config.source(), kTakeOriginal};
  PLIMSOLL_ASSIGN(const bool in_4bit, fields->boolean("load_in_4bit", false));
  PLIMSOLL_ASSIGN(const bool in_8bit, fields->boolean("load_in_8bit", false));
  if (in_4bit == in_8bit)
    return Error{ErrorCode::kBadData, "quantization_config needs one of load_in_4bit and load_in_8bit",
                 config.source(), "save it again with transformers and bitsandbytes, or plimsoll quantize"};
  QuantizeSpec spec{.dtype = ir::DType::kI8Rows, .stored = true};
  if (in_4bit) {
    PLIMSOLL_ASSIGN(spec.dtype, four_bit_type(*fields));
  }
  PLIMSOLL_ASSIGN(spec.skip_modules, skip_modules(*fields));
  return std::optional(std::move(spec));
}

std::string_view quantized_name(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kNf4:
      return "nf4";
    case ir::DType::kNf4Double:
      return "nf4 with double quantization";
    case ir::DType::kFp4:
      return "fp4";
    case ir::DType::kFp4Double:
      return "fp4 with double quantization";
    case ir::DType::kI8Rows:
      return "int8 by rows";
    default:
      return ir::name(dtype);
  }
}

}  // namespace plimsoll::models
