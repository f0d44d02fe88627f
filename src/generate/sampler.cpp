#include "generate/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/elementwise.h"
#include "ops/philox.h"

namespace plimsoll::generate {
namespace {

using Candidate = Sampler::Candidate;

struct Largest {
  int32_t id = -1;
  bool is_number = true;  ///< none is NaN, one is finite
};

Largest largest_of(std::span<const float> logits) {
  float most = -std::numeric_limits<float>::infinity();
  bool nan = false;
  for (const float x : logits) {
    nan |= x != x;
    most = x > most ? x : most;
  }
  if (nan || !std::isfinite(most)) return {.id = -1, .is_number = false};
  const auto at = std::find(logits.begin(), logits.end(), most);
  return {.id = static_cast<int32_t>(at - logits.begin())};
}

/// The likelier, among equals the later id: transformers takes tokens away in a stable rising order.
bool less_likely(const Candidate& a, const Candidate& b) {
  return a.logit < b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Takes away what is less likely than the k-th; what is like it stays.
void keep_top_k(std::vector<Candidate>& all, int64_t k) {
  if (k <= 0 || k >= static_cast<int64_t>(all.size())) return;
  const auto kth = all.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(all.begin(), kth, all.end(),
                   [](const Candidate& a, const Candidate& b) { return less_likely(b, a); });
  const float least = kth->logit;
  std::erase_if(all, [least](const Candidate& c) { return c.logit < least; });
}

/// Keeps the likeliest, and each next one while those before it do not reach p.
void keep_top_p(std::vector<Candidate>& all, double p) {
  if (p >= 1) return;
  double total = 0;
  for (const Candidate& c : all) total += c.weight;
  // A heap, since few of many are kept as a rule: those taken from it gather at the end.
  std::make_heap(all.begin(), all.end(), less_likely);
  auto end = all.end();
  double before = 0;
  do {
    std::pop_heap(all.begin(), end, less_likely);
    before += (--end)->weight;
  } while (end != all.begin() && before < p * total);
  all.erase(all.begin(), end);
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options, int64_t vocab_size) : options_(options) {
  if (options.temperature > 0) candidates_.reserve(static_cast<size_t>(vocab_size));
}

int64_t Sampler::memory_bytes(int64_t vocab_size) {
  return vocab_size * static_cast<int64_t>(sizeof(Candidate));
}

std::span<const Candidate> Sampler::candidates(std::span<const float> logits) {
  PLIMSOLL_CHECK(options_.temperature > 0);
  const auto temperature = static_cast<float>(options_.temperature);
  float most = -std::numeric_limits<float>::infinity();
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float x = logits[i] / temperature;
    candidates_.push_back({static_cast<int32_t>(i), x, 0});
    most = std::max(most, x);
  }
  keep_top_k(candidates_, options_.top_k);
  for (Candidate& c : candidates_)
    c.weight = std::exp(static_cast<double>(c.logit) - static_cast<double>(most));
  keep_top_p(candidates_, options_.top_p);
  if (options_.min_p > 0)  // the likeliest one's weight is 1
    std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < options_.min_p; });
  if (options_.top_k > 0 || options_.top_p < 1)  // else nothing has moved
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  return candidates_;
}

int32_t Sampler::draw(std::span<const Candidate> all, uint32_t row, uint32_t position) const {
  const ops::RandomStream stream{.seed_low = static_cast<uint32_t>(options_.seed),
                                 .seed_high = static_cast<uint32_t>(options_.seed >> 32),
                                 .sequence = row,
                                 .op_key = static_cast<uint32_t>(ops::random_key("generate", "sample"))};
  const ops::PhiloxCounter words = ops::random_words(stream, position);
  // In (0, 1), with all the bits of a double.
  const double u = (static_cast<double>(words[0]) + ops::uniform(words[1])) * 0x1p-32;
  double total = 0;
  for (const Candidate& c : all) total += c.weight;
  double left = u * total;
  for (const Candidate& c : all)
    if ((left -= c.weight) < 0) return c.id;
  return std::max_element(all.begin(), all.end(), less_likely)->id;  // rounding has eaten the rest
}

Result<int32_t> Sampler::next(std::span<const float> logits, uint32_t row, uint32_t position) {
  const Largest largest = largest_of(logits);
  if (!largest.is_number)
    return Error{ErrorCode::kBadData,
                 "the model's logits are not finite",
                 {},
                 "the weights are broken, or training has diverged: plimsoll inspect shows their ranges"};
  if (options_.temperature <= 0) return largest.id;
  return draw(candidates(logits), row, position);
}

void SeenTokens::penalise(std::span<float> logits, double penalty) const {
  const auto factor = static_cast<float>(penalty);
  for (size_t w = 0; w < words_.size(); ++w)
    for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1) {
      float& x = logits[w * 64 + static_cast<size_t>(std::countr_zero(bits))];
      x = x < 0 ? x * factor : x / factor;
    }
}

}  // namespace plimsoll::generate
