// The fields of ModernBERT's config.json, as transformers 4 and 5 write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/activation.h"
#include "models/rope_config.h"

namespace plimsoll::models {

struct ModernBertConfig {
  enum class Head : uint8_t { kNone, kMasked, kClassifier, kSpans };

  int64_t vocab_size = 0, hidden = 0, num_layers = 0, heads = 0, inner = 0, positions = 0;
  /// A layer: i sees j where |i - j| is below it; 0: all, such layers rotate by `rope`.
  std::vector<int64_t> windows = {};
  RopeConfig rope = {}, sliding_rope = {};  ///< of layers that see all, and of those that slide
  std::optional<int64_t> pad_token = {};    ///< whose embedding learns nothing
  Activation activation = {}, head_activation = {};
  double eps = 1e-5;
  bool norm_bias = false, attention_bias = false, mlp_bias = false;
  double embedding_dropout = 0, attention_dropout = 0, mlp_dropout = 0, head_dropout = 0;
  double initializer_range = 0.02;
  double initializer_cutoff = 2;  ///< weights are drawn within so many deviations
  Head head = Head::kNone;
  bool decoder_bias = true, head_bias = false;
  bool pools_mean = false;  ///< the classifier reads the mean over all tokens, else the first
  int64_t num_labels = 0;
  std::vector<std::string> unknown_fields = {};
};

/// Errors: kBadData naming the field.
Result<ModernBertConfig> read_modernbert(const io::ConfigJson& config);

}  // namespace plimsoll::models
