// The activation between the two maps of an MLP, by its name in a config.json.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "io/model_config.h"
#include "ir/builder.h"
#include "ops/gelu.h"

namespace plimsoll::models {

struct Activation {
  enum class Kind : uint8_t { kGelu, kRelu, kSilu, kTanh };
  Kind kind = Kind::kGelu;
  ops::Gelu gelu = ops::Gelu::kErf;  ///< which form, of kGelu

  bool operator==(const Activation&) const = default;
};

/// The field's activation; `if_missing` is a name. Errors: kBadData listing the names that are known.
Result<Activation> read_activation(const io::ConfigJson& config, std::string_view field,
                                   std::string_view if_missing);

/// Of each element; the same shape and dtype.
[[nodiscard]] ir::ValueId activate(ir::Builder& b, ir::ValueId x, const Activation& activation);

}  // namespace plimsoll::models
