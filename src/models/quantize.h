// Quantized frozen weights: the linear layers that are quantized, and the reasons against it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "models/model.h"

namespace plimsoll::models {

/// transformers' BitsAndBytesConfig, as far as it says what is stored.
struct QuantizeSpec {
  ir::DType dtype = ir::DType::kNf4;  ///< a block type
  bool learns = true;                 ///< the model is trained, and what of it learns is left as it is
  std::vector<std::string> skip_modules = {};  ///< llm_int8_skip_modules: names, or what they end with
  bool stored = false;  ///< the model's files have the maps so: their codes are taken as they are
};

/// Keeps the frozen linear maps of the model's blocks in the spec's type; tables, heads, norms, biases and
/// what is trained stay as they are, as in transformers. Of a stored spec, every map that is not skipped, and
/// as [out, in]: GPT-2's too, whose files had them turned. Behind Model::keep_in. Errors: kInvalidArgument
/// naming the setting: a module to skip that there is none of (stored: no error), no map to quantise, a stack
/// of maps that is not skipped, a map that learns and is stored so, adapters that are made of weights which
/// the files have in few bits alone (PiSSA, OLoRA; LoftQ of more than one iteration), a LoftQ of other bits.
Status quantize(Model& model, const QuantizeSpec& spec);

/// Of a model that stays whole. Errors: kInvalidArgument for adapters that LoftQ began.
Status check_whole(const Model& model);

}  // namespace plimsoll::models
