// The one way in which a model multiplies with weights: what adapters and quantised weights will change, they
// change here.
#pragma once

#include <optional>
#include <string>

#include "models/model.h"

namespace plimsoll::models {

/// A linear map by the names of its storages: y = x W^T + b with W [out, in], or x W + b with W [in, out]
/// where `transposed`. A storage may hold several of the checkpoint's tensors side by side, its views.
struct LinearSpec {
  std::string weight;
  std::string bias = {};  ///< empty: none
  bool transposed = false;
  std::string adapted = {};  ///< what adapters name it by; empty: as the weight
};

/// x [..., in] -> [..., out], out being the rows of all views together, with what the model's adapters add.
/// Dtypes: as ops::linear. `noise`: what dropout before an adapter draws from, i32[4]; absent: there is none.
[[nodiscard]] ir::ValueId linear(ir::Builder& b, const Model& model, const LinearSpec& spec, ir::ValueId x,
                                 ir::ValueId noise = {});

/// Rows of the table by ids, as ops::embedding, with what the model's adapters add.
[[nodiscard]] ir::ValueId embed(ir::Builder& b, const Model& model, const std::string& table, ir::ValueId ids,
                                std::optional<int64_t> padding = {});

}  // namespace plimsoll::models
