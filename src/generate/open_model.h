// Opens a model directory for generation: the model, how it samples and ends, its text, its template,
// its weights' files.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "generate/chat_format.h"
#include "generate/request.h"
#include "generate/text_codec.h"
#include "io/model_weights.h"
#include "models/language_model.h"

namespace plimsoll::generate {

struct OpenModel {
  std::string folder;   ///< of the base, where there is an adapter
  std::string adapter;  ///< its folder; empty: none
  std::unique_ptr<models::LanguageModel> model;
  Resolved resolved;
  TextCodec codec;
  ChatFormat format;
  io::ModelWeights weights;  ///< none read yet
};

/// Of request.model, in request.dtype; with notes on what of its files is not used. Errors: kInvalidArgument
/// for flags, and for what the model has not (a template, a text); kBadData for its files.
Result<OpenModel> open_model(const Request& request);

}  // namespace plimsoll::generate
