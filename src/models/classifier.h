// transformers' classes in a config.json: a model's made that of a classifier, or its own written down.
#pragma once

#include "base/result.h"
#include "io/label_fields.h"

namespace plimsoll::models {

/// `config` with transformers' class for classification of its family ("LlamaForSequenceClassification") and
/// these labels; a classifier's keeps its class. Errors: kBadData for a family that is not known, or that of
/// image models.
Result<io::ConfigJson> as_classifier(const io::ConfigJson& config, const io::Labels& labels);

/// The same of an encoder of text with transformers' class for masked language models ("BertForMaskedLM").
/// Errors: kBadData for any other.
Result<io::ConfigJson> as_masked_lm(const io::ConfigJson& config, const io::Labels& labels);

/// The same with transformers' class for answers from a text ("BertForQuestionAnswering").
Result<io::ConfigJson> as_question_answering(const io::ConfigJson& config, const io::Labels& labels);

/// The same of an image family ("ViTForImageClassification"). Errors: kBadData for any other.
Result<io::ConfigJson> as_image_classifier(const io::ConfigJson& config, const io::Labels& labels);

/// Whether its model_type is that of a family of image models, with a head or without.
bool is_image_model(const io::ConfigJson& config);

/// Whether it is that of a family of encoders of text, with whichever head.
bool is_encoder(const io::ConfigJson& config);

/// `config` with model_type and architectures as transformers opens it by: what it leaves out is its family's
/// causal language model, its encoder without a head, or its classifier of images.
io::ConfigJson with_class(const io::ConfigJson& config);

}  // namespace plimsoll::models
