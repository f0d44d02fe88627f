// The rotary settings of a config.json, in both spellings, as the numbers that the table of angles is made
// of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_config.h"

namespace plimsoll::models {

/// Rotary position embedding: base, the scaling of its frequencies, and the factor of cosines and sines.
struct RopeConfig {
  enum class Kind { kDefault, kLinear, kDynamic, kLlama3, kYarn };
  Kind kind = Kind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                              ///< all but kDefault
  double low_freq_factor = 1.0;                     ///< kLlama3
  double high_freq_factor = 4.0;                    ///< kLlama3
  int64_t original_max_position_embeddings = 8192;  ///< kLlama3, kYarn; kDynamic: the model's positions
  double beta_fast = 32.0;                          ///< kYarn
  double beta_slow = 1.0;                           ///< kYarn
  bool truncate = true;                             ///< kYarn: the ramp begins and ends at whole dimensions
  double attention_factor = 1.0;                    ///< cosines and sines are multiplied with it; kYarn

  /// The head_dim/2 inverse frequencies, computed in fp32 step by step as transformers does, because the
  /// tables are compared with its. kDynamic: those up to original_max_position_embeddings; a longer sequence
  /// would have others, and is refused where sequences are checked against the model's positions.
  /// Sources: Peng et al. 2023, arXiv:2309.00071 (yarn); Llama 3.1's model card (llama3).
  [[nodiscard]] std::vector<float> inverse_frequencies(int64_t head_dim) const;
};

/// max_position_embeddings and other counts of positions.
inline constexpr io::IntegerRange kPositionsRange = {1, int64_t{1} << 28};

/// A config's rotary settings, and the fields among them that mean nothing here.
struct ParsedRope {
  RopeConfig rope;
  std::vector<std::string> unknown_fields;  ///< "rope_scaling.<field>"
};

/// `rope_theta` + `rope_scaling` (transformers 4) or `rope_parameters` (5); `otherwise` is the base where
/// none is given. Errors: kBadData for a type that is not supported, by its name, for spellings that
/// contradict, ranges.
Result<ParsedRope> parse_rope(const io::ConfigJson& config, int64_t max_position_embeddings,
                              double otherwise = 10000.0);

}  // namespace plimsoll::models
