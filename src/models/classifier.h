// A language model's config.json made that of a sequence classifier.
#pragma once

#include "base/result.h"
#include "io/label_fields.h"

namespace plimsoll::models {

/// `config` with transformers' class for classification of its family ("LlamaForSequenceClassification") and
/// these labels; a classifier's keeps its class. Errors: kBadData for a family that is not known.
Result<ConfigJson> as_classifier(const ConfigJson& config, const Labels& labels);

}  // namespace plimsoll::models
