// A classifier's answers for a file of examples or a folder of images: `plimsoll predict`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/best_answers.h"

namespace plimsoll::engine {

/// Writes a JSON line an example, in their order:
///   single_label   {"label": the name of the likeliest, "score": its probability, "logits": […]}
///   multi_label    {"label": [names above 0.5], "score": [all probabilities], "logits": […]}
///   regression     {"label": null, "score": the value (a list of several), "logits": […]}
/// of an image classifier the first with {"image": its path, …} in front.
/// What is not a number is null. Errors: kBadData for a model that is no classifier and for examples, with
/// the place; kDoesNotFit; kIo; kInterrupted.
struct PredictRequest {
  std::string model = {};                  ///< a directory, or a hub id of the local cache
  std::string adapter = {};                ///< LoRA adapter of the model (a PEFT directory); empty: none
  std::vector<std::string> data = {};      ///< JSON lines or images; labels in them are not looked at
  std::string output = {};                 ///< empty: the sink
  std::string text_key = {};               ///< as data.text_key
  std::optional<int64_t> max_length = {};  ///< longer rows are cut; nothing: the model's positions
  int64_t doc_stride = 128;                ///< of questions: as qa.doc_stride
  AnswerRules answers = {};
  int64_t alternatives = 0;  ///< of questions: so many of the best answers are written as well
  int64_t batch_size = 16;   ///< at most so many examples at once
  std::optional<int64_t> threads = {};
  std::string memory_budget = "auto";
};

}  // namespace plimsoll::engine
