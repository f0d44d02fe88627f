// transformers' classes in a config.json: a language model's made that of a sequence classifier, or its own
// written down.
#pragma once

#include "base/result.h"
#include "io/label_fields.h"

namespace plimsoll::models {

/// `config` with transformers' class for classification of its family ("LlamaForSequenceClassification") and
/// these labels; a classifier's keeps its class. Errors: kBadData for a family that is not known.
Result<io::ConfigJson> as_classifier(const io::ConfigJson& config, const io::Labels& labels);

/// `config` with model_type and architectures as transformers opens it by: what it leaves out is its family's
/// causal language model.
io::ConfigJson with_class(const io::ConfigJson& config);

}  // namespace plimsoll::models
