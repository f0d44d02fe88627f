// Chooses the next token from a row of logits: greedy, or sampled after transformers' filters.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace plimsoll::generate {

struct SamplingOptions {
  double temperature = 0;         ///< 0: the largest logit wins, the first where several are alike
  int64_t top_k = 0;              ///< only the k largest are drawn from, and those like the k-th; 0: all
  double top_p = 1;               ///< only the fewest whose probabilities reach p; 1: all
  double min_p = 0;               ///< only what is at least p times as likely as the likeliest; 0: all
  double repetition_penalty = 1;  ///< logits of tokens that a row has seen: x/penalty, or x*penalty below 0
  uint64_t seed = 42;
};

/// One sampler serves all rows, one after the other. Holds all its memory from the start.
class Sampler {
 public:
  Sampler(const SamplingOptions& options, int64_t vocab_size);
  /// Host memory that a sampler holds.
  static int64_t memory_bytes(int64_t vocab_size);

  /// A token that may be drawn, and its weight relative to the likeliest one's.
  struct Candidate {
    int32_t id = 0;
    float logit = 0;
    double weight = 0;
  };
  /// Temperature, then top-k, top-p, min-p: what may be drawn, by rising id; valid until the next call.
  /// Semantics of transformers' TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper,
  /// MinPLogitsWarper, in their order; logits divided in f32, probabilities in double. `options.temperature`
  /// must be positive.
  std::span<const Candidate> candidates(std::span<const float> logits);

  /// The next token of row `row` at `position`. A draw depends on (seed, row, position) and the logits
  /// alone. Source of the numbers: ops/philox.h. Errors: kBadData where no logit is finite or one is NaN.
  Result<int32_t> next(std::span<const float> logits, uint32_t row, uint32_t position);

 private:
  int32_t draw(std::span<const Candidate> all, uint32_t row, uint32_t position) const;

  SamplingOptions options_;
  std::vector<Candidate> candidates_;
};

/// The tokens that a row has seen, a bit each.
class SeenTokens {
 public:
  explicit SeenTokens(int64_t vocab_size) : words_(static_cast<size_t>((vocab_size + 63) / 64)) {}
  static int64_t memory_bytes(int64_t vocab_size) { return (vocab_size + 63) / 64 * 8; }
  void clear() { words_.assign(words_.size(), 0); }
  void add(int32_t id) { words_[static_cast<size_t>(id) / 64] |= uint64_t{1} << (id % 64); }
  /// Keskar et al. 2019, arXiv:1909.05858, as transformers' RepetitionPenaltyLogitsProcessor: in place.
  void penalise(std::span<float> logits, double penalty) const;

 private:
  std::vector<uint64_t> words_;
};

}  // namespace plimsoll::generate
