#include "datasets/token_masking.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/units.h"
#include "datasets/example_source.h"
#include "numerics/philox.h"

namespace plimsoll::datasets {
namespace {

constexpr uint32_t kPurpose = 0x6d61736b;  // no other random numbers of a run share its words

/// The draws of a share `p` of all words are below it.
uint64_t threshold(double p) { return static_cast<uint64_t>(std::llround(p * 0x1p32)); }

}  // namespace

/// Random words by (seed, source, sequence, epoch, token).
struct TokenMasker::Draws {
  numerics::PhiloxKey key;
  uint32_t index_low, epoch, index_high;
  [[nodiscard]] numerics::PhiloxCounter of(size_t token) const {
    return numerics::philox({static_cast<uint32_t>(token), index_low, epoch, index_high}, key);
  }
};

int64_t mask_capacity(const MaskingRules& rules, int64_t length) {
  const double n = static_cast<double>(length), p = rules.probability;
  const double most = n * p + (rules.whole_words ? 6 : 4) * std::sqrt(n * p * (1 - p));
  return std::clamp<int64_t>(round_up(static_cast<int64_t>(std::ceil(most)), 8), 1, length);
}

TokenMasker::TokenMasker(const MaskingRules& rules, const TokenKinds& kinds) : rules_(rules), kinds_(kinds) {
  PLIMSOLL_CHECK(kinds.mask_token >= 0, "masking without a mask token");
  uint32_t count = 0;
  for (size_t id = 0; id < kinds.kinds.size(); ++id) {
    if (id % kStep == 0) before_.push_back(count);
    count += kinds.kinds[id] != TokenKinds::kSpecial ? 1 : 0;
  }
  before_.push_back(count);
}

int32_t TokenMasker::ordinary(uint32_t k) const {
  const auto step = std::prev(std::upper_bound(before_.begin(), std::prev(before_.end()), k));
  auto id = static_cast<size_t>(step - before_.begin()) * kStep;
  for (uint32_t at = *step;; ++id) {
    if (kinds_.kinds[id] == TokenKinds::kSpecial) continue;
    if (at++ == k) return static_cast<int32_t>(id);
  }
}

int64_t TokenMasker::operator()(int64_t index, int64_t epoch, const Sequence& s) const {
  const Draws draws{{static_cast<uint32_t>(rules_.seed) ^ kPurpose, static_cast<uint32_t>(rules_.seed >> 32)},
                    static_cast<uint32_t>(index),
                    static_cast<uint32_t>(epoch),
                    static_cast<uint32_t>(index >> 32) ^ static_cast<uint32_t>(rules_.source) << 16};
  // visit(token, draw of the token or of its word) for all that may be chosen.
  const auto for_candidates = [&](auto visit) {
    bool in_word = false;
    uint64_t draw = 0;
    for (size_t i = 0; i < s.tokens.size(); ++i) {
      const char kind = kinds_.of(s.tokens[i]);
      const bool begins = !in_word || kind != TokenKinds::kContinues || !rules_.whole_words ||
                          s.doc_start[i] == static_cast<int32_t>(i);
      in_word = kind != TokenKinds::kSpecial;
      if (!in_word) continue;
      if (begins) draw = draws.of(i)[0];
      visit(i, draw);
    }
  };
  uint64_t limit = threshold(rules_.probability);
  for (;;) {
    size_t chosen = 0;
    uint64_t largest = 0;
    for_candidates([&](size_t, uint64_t draw) {
      if (draw >= limit) return;
      ++chosen;
      largest = std::max(largest, draw);
    });
    if (chosen <= s.places.size()) break;
    limit = largest;  // the last of them stays as it is
  }
  size_t count = 0;
  for_candidates([&](size_t i, uint64_t draw) {
    if (draw >= limit) return;
    s.places[count] = static_cast<int32_t>(i);
    s.targets[count] = s.tokens[i];
    ++count;
  });
  for (size_t n = 0; n < count; ++n) {
    const auto place = static_cast<size_t>(s.places[n]);
    s.tokens[place] = replacement(draws, s.tokens[place], place);
  }
  std::fill(s.places.begin() + static_cast<std::ptrdiff_t>(count), s.places.end(), kNoPlace);
  std::fill(s.targets.begin() + static_cast<std::ptrdiff_t>(count), s.targets.end(), kNoTarget);
  return static_cast<int64_t>(count);
}

int32_t TokenMasker::replacement(const Draws& draws, int32_t token, size_t place) const {
  const numerics::PhiloxCounter words = draws.of(place);
  if (words[1] < threshold(rules_.mask)) return kinds_.mask_token;
  if (words[1] >= threshold(rules_.mask + rules_.random) || before_.back() == 0) return token;
  return ordinary(static_cast<uint32_t>((uint64_t{words[2]} * before_.back()) >> 32));
}

}  // namespace plimsoll::datasets
