// A line of JSON as an example with a label:
//
//   {"text": …, "text_pair"?: …, "label": …}       a text, or two, for a tokenizer
//   {"sentence1": …, "sentence2": …, "label": …}   the same under the names of public data sets
//   (kPairColumns),
//                                                  where a line has those of one
//   {"input_ids": […], "label": …}                 tokens without those that "attention_mask" hides; where
//                                                  these stand, texts beside them are not read;
//                                                  "token_type_ids" beside them, for models that have types
//
// "labels" is "label" too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "corpora/example.h"
#include "corpora/labelled/raw_label.h"

namespace plimsoll::corpora {

/// Columns that stand for "text" and "text_pair".
inline constexpr std::string_view kPairColumns[] = {"sentence1",  "sentence2", "premise",
                                                    "hypothesis", "question1", "question2",
                                                    "question",   "answer",    "sentence"};

struct LabelledExample {
  bool has_ids = false;   ///< else `text`
  bool has_pair = false;  ///< `text_pair` too
  std::string text = {}, text_pair = {};
  std::vector<int32_t> ids = {};
  std::vector<int32_t> types = {};  ///< the types of `ids`; empty: all 0
  RawLabel label = {};
  std::string file = {};
  int64_t line = 0;
};

struct LabelledFormat {
  std::string text_key = {};  ///< the member that holds the text; empty: "text"
  bool with_label = true;     ///< a line needs one; else none is looked at
  int64_t vocab_size = 0;     ///< input_ids are below it; 0: any
  /// token_type_ids are below it; 0: the model has none, and they are not looked at.
  int64_t num_token_types = 0;
};

/// `file` and `line` of `example` are set already and named in errors; the rest is overwritten.
std::optional<BadExample> parse_labelled_example(std::string_view json, const LabelledFormat& format,
                                                 LabelledExample& example);

}  // namespace plimsoll::corpora
