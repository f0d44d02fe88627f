// The model of every family of Llama's kind; what differs between them is data in DecoderConfig.
#pragma once

#include <memory>

#include "models/decoder_config.h"
#include "models/language_model.h"

namespace plimsoll::models {

/// The model of a checked config.
std::unique_ptr<LanguageModel> make_decoder(DecoderConfig config);

}  // namespace plimsoll::models
