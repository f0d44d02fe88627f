// Masks tokens of sequences for masked language models: which ones are chosen, and what stands in their
// place. Devlin et al. 2018, arXiv:1810.04805, 3.1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plimsoll::datasets {

/// What masking knows of the ids of a vocabulary.
struct TokenKinds {
  static constexpr char kWordStart = 'w';  ///< begins a word
  static constexpr char kContinues = 'c';  ///< continues the word of the token before it
  static constexpr char kSpecial = 's';    ///< never chosen, never drawn: <s>, [PAD], ids without a token
  int32_t mask_token = -1;                 ///< < 0: there is none
  std::string kinds = {};                  ///< by id, one of these each; ids behind it are special
  [[nodiscard]] char of(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < kinds.size() ? kinds[static_cast<size_t>(id)] : kSpecial;
  }
};

/// The value of ops::kNoRow.
inline constexpr int32_t kNoPlace = -1;

struct MaskingRules {
  double probability = 0.15;  ///< that a token is chosen, or a word
  double mask = 0.8;          ///< of the chosen ones, the share that becomes the mask token
  double random = 0.1;        ///< and that becomes a token drawn at random; the rest stays
  bool whole_words = false;   ///< all tokens of a word are chosen together
  uint64_t seed = 0;
  int64_t source = 0;  ///< of several, which one the sequences are of; below 2^16
};

/// Most tokens that are chosen of a sequence of `length`: what is expected and four standard deviations (six
/// of whole words), a multiple of 8. Where a draw chooses more, some of them are left as they are.
int64_t mask_capacity(const MaskingRules& rules, int64_t length);

class TokenMasker {
 public:
  TokenMasker(const MaskingRules& rules, const TokenKinds& kinds);

  /// A sequence's tokens, without padding, where each one's document begins in it, and room for what is
  /// chosen: as many places and tokens as mask_capacity says.
  struct Sequence {
    std::span<int32_t> tokens;
    std::span<const int32_t> doc_start;
    std::span<int32_t> places;   ///< of the chosen ones, ascending; behind them kNoPlace
    std::span<int32_t> targets;  ///< what stood there; behind them kNoTarget
  };
  /// Masks the sequence number `index` in pass number `epoch` over the data; returns how many tokens were
  /// chosen. A pure function of rules, kinds, index, epoch and tokens. Allocates nothing.
  int64_t operator()(int64_t index, int64_t epoch, const Sequence& sequence) const;

 private:
  static constexpr size_t kStep = 256;
  struct Draws;
  /// The ordinary token number `k`, by id.
  [[nodiscard]] int32_t ordinary(uint32_t k) const;
  [[nodiscard]] int32_t replacement(const Draws& draws, int32_t token, size_t place) const;
  MaskingRules rules_;
  TokenKinds kinds_;
  /// By kStep ids: how many of those before them may be drawn; the last is how many there are in all.
  std::vector<uint32_t> before_;
};

}  // namespace plimsoll::datasets
