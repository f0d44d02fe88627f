// The floats that a run keeps its state in, by the names that they have in the run file and in config.json.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/check.h"
#include "ir/dtype.h"
#include "numerics/formats.h"
#include "settings/choice.h"

namespace plimsoll::settings {

struct StateFormat {
  StateWord setting;        ///< in the run file: "fp16"
  std::string_view config;  ///< in config.json: "float16"
  ir::DType dtype;
  numerics::Format encoding;
};
inline constexpr std::array<StateFormat, 3> kStateFormats = {
    {{StateWord::kFp32, "float32", ir::DType::kF32, numerics::Format::kFp32},
     {StateWord::kBf16, "bfloat16", ir::DType::kBf16, numerics::Format::kBf16},
     {StateWord::kFp16, "float16", ir::DType::kF16, numerics::Format::kFp16}}};

/// The one with that setting or dtype; there must be one.
inline const StateFormat& state_format(StateWord setting) {
  return kStateFormats[static_cast<size_t>(setting)];
}
inline const StateFormat& state_format(ir::DType dtype) {
  for (const StateFormat& format : kStateFormats)
    if (format.dtype == dtype) return format;
  PLIMSOLL_CHECK(false, std::string(ir::name(dtype)));
  return kStateFormats[0];
}

}  // namespace plimsoll::settings
