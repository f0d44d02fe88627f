// Masked tokens: how many are chosen, which ones never are, what stands in their place, and that a sequence
// is masked alike whoever reads it.
#include "datasets/token_masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "datasets/example_source.h"

namespace plimsoll::datasets {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

/// Ids 0 to 3 are special, the mask token among them, 4 to 63 begin words, 64 to 99 go on with them; 100 and
/// more stand behind the kinds.
constexpr int32_t kMask = 3, kFirstWord = 4, kFirstPart = 64, kKinds = 100;

TokenKinds masking_kinds() {
  std::string kinds(kKinds, TokenKinds::kWordStart);
  std::fill_n(kinds.begin(), kFirstWord, TokenKinds::kSpecial);
  std::fill(kinds.begin() + kFirstPart, kinds.end(), TokenKinds::kContinues);
  return {kMask, kinds};
}

/// What masking makes of one sequence.
struct Masked {
  std::vector<int32_t> before = {}, after = {}, places = {}, targets = {};
  int64_t count = 0;
  [[nodiscard]] std::vector<int32_t> chosen() const { return {places.begin(), places.begin() + count}; }
  bool operator==(const Masked&) const = default;
};

/// Masks `tokens`, of documents that begin at `starts`, with room for `capacity` places; 0: the rules' own.
Masked mask(const MaskingRules& rules, const std::vector<int32_t>& tokens, int64_t index = 0,
            int64_t epoch = 0, const std::vector<int32_t>& starts = {0}, int64_t capacity = 0) {
  Masked m{.before = tokens, .after = tokens};
  std::vector<int32_t> doc_start(tokens.size(), 0);
  for (const int32_t start : starts)
    std::fill(doc_start.begin() + std::min<int64_t>(start, static_cast<int64_t>(tokens.size())),
              doc_start.end(), start);
  const auto length = std::max<int64_t>(static_cast<int64_t>(tokens.size()), 1);
  const auto room = static_cast<size_t>(capacity > 0 ? capacity : mask_capacity(rules, length));
  m.places.assign(room, -7);
  m.targets.assign(room, -7);
  m.count = TokenMasker(rules, masking_kinds())(
      index, epoch, {.tokens = m.after, .doc_start = doc_start, .places = m.places, .targets = m.targets});
  return m;
}

/// What holds of every sequence that has been masked, whatever the rules.
void expect_sound(const Masked& m) {
  const TokenKinds kinds = masking_kinds();
  ASSERT_LE(m.count, static_cast<int64_t>(m.places.size()));
  std::set<int32_t> chosen;
  for (size_t i = 0; i < m.places.size(); ++i) {
    if (i >= static_cast<size_t>(m.count)) {
      EXPECT_EQ(m.places[i], kNoPlace);
      EXPECT_EQ(m.targets[i], kNoTarget);
      continue;
    }
    const int32_t place = m.places[i];
    ASSERT_TRUE(place >= 0 && static_cast<size_t>(place) < m.before.size()) << place;
    EXPECT_TRUE(i == 0 || place > m.places[i - 1]) << "places ascend";
    const int32_t target = m.before[static_cast<size_t>(place)];
    EXPECT_EQ(m.targets[i], target) << "what stood there";
    EXPECT_NE(kinds.of(target), TokenKinds::kSpecial) << target;
    const int32_t now = m.after[static_cast<size_t>(place)];
    EXPECT_TRUE(now == kMask || kinds.of(now) != TokenKinds::kSpecial) << now;
    chosen.insert(place);
  }
  for (size_t i = 0; i < m.before.size(); ++i)
    if (!chosen.contains(static_cast<int32_t>(i))) {
      EXPECT_EQ(m.after[i], m.before[i]) << "nobody chose " << i;
    }
}

/// Tokens of all kinds, some behind the kinds.
std::vector<int32_t> drawn_tokens(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % 110);
  return tokens;
}

/// Words alone, whole.
std::vector<int32_t> drawn_words(int64_t count, unsigned seed) {
  std::vector<int32_t> tokens = drawn_tokens(count, seed);
  for (int32_t& token : tokens) token = kFirstWord + token % (kFirstPart - kFirstWord);
  return tokens;
}

/// Where words begin, by the rule: at tokens that begin one, behind special ones, and where documents begin.
std::vector<size_t> word_of_each(const std::vector<int32_t>& tokens, const std::vector<int32_t>& starts) {
  const TokenKinds kinds = masking_kinds();
  std::vector<size_t> words;
  size_t word = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool goes_on = i > 0 && kinds.of(tokens[i]) == TokenKinds::kContinues &&
                         kinds.of(tokens[i - 1]) != TokenKinds::kSpecial &&
                         std::ranges::find(starts, static_cast<int32_t>(i)) == starts.end();
    words.push_back(goes_on ? word : ++word);
  }
  return words;
}

TEST(TokenMasking, EverySequenceIsSound) {
  for (const bool whole_words : {false, true})
    for (const double p : {0.001, 0.15, 0.5, 0.9})
      for (const double share : {0.0, 0.5, 1.0}) {
        const MaskingRules rules{
            .probability = p, .mask = share, .random = 1 - share, .whole_words = whole_words, .seed = 11};
        for (int64_t length = 1; length < 90; length += 4)
          expect_sound(
              mask(rules, drawn_tokens(length, static_cast<unsigned>(length)), length, 2, {0, 7, 9, 40}));
      }
}

/// Bounds of five standard deviations: one of so many tests in 10^6 seeds would be beyond them, and the seed
/// is fixed.
void expect_share(int64_t count, int64_t of, double share, const char* what) {
  const auto n = static_cast<double>(of);
  EXPECT_NEAR(static_cast<double>(count), n * share, 5 * std::sqrt(n * share * (1 - share)) + 1e-9) << what;
}

TEST(TokenMasking, ChoosesAndReplacesInTheSharesThatTheRulesSay) {
  for (const MaskingRules& rules :
       {MaskingRules{.seed = 1}, MaskingRules{.probability = 0.4, .seed = 2},
        MaskingRules{.mask = 0.3, .random = 0.6, .seed = 3}, MaskingRules{.mask = 0, .random = 1, .seed = 4},
        MaskingRules{.mask = 1, .random = 0, .seed = 5}, MaskingRules{.mask = 0, .random = 0, .seed = 6}}) {
    int64_t tokens = 0, chosen = 0, masked = 0, kept = 0;
    std::vector<int64_t> at(512), drawn(kKinds);
    constexpr int64_t kSequences = 300;
    for (int64_t index = 0; index < kSequences; ++index) {
      // One word of the vocabulary throughout: a token that is drawn is nearly always another.
      const Masked m = mask(rules, std::vector<int32_t>(512, kFirstWord), index);
      tokens += 512;
      chosen += m.count;
      for (const int32_t place : m.chosen()) {
        ++at[static_cast<size_t>(place)];
        const int32_t now = m.after[static_cast<size_t>(place)];
        if (now == kMask)
          ++masked;
        else if (now == kFirstWord)
          ++kept;
        else
          ++drawn[static_cast<size_t>(now)];
      }
    }
    expect_share(chosen, tokens, rules.probability, "chosen");
    expect_share(masked, chosen, rules.mask, "masked");
    // What is drawn is the token itself once in as many draws as there are words.
    constexpr int64_t kWords = kKinds - kFirstWord;
    expect_share(kept, chosen, 1 - rules.mask - rules.random * (kWords - 1) / kWords, "kept");
    for (const int64_t count : at) expect_share(count, kSequences, rules.probability, "at each place");
    EXPECT_THAT(std::vector(drawn.begin(), drawn.begin() + kFirstWord), Each(0)) << "special ones";
    for (int64_t id = kFirstWord + 1; id < kKinds; ++id)
      expect_share(drawn[static_cast<size_t>(id)], chosen, rules.random / kWords, "each word");
  }
}

/// Ordinary tokens in a few places of a large vocabulary, with stretches of special ones between and behind
/// them: each is drawn as often as any other, and nothing else is.
TEST(TokenMasking, DrawsFromAllOfALargeVocabulary) {
  std::string kinds(3000, TokenKinds::kSpecial);
  std::vector<int32_t> ordinary;
  for (const auto& [begin, end] : {std::pair{0, 1}, {250, 262}, {511, 512}, {1290, 1299}, {2040, 2049}})
    for (int32_t id = begin; id < end; ++id) {
      ordinary.push_back(id);
      kinds[static_cast<size_t>(id)] = id % 2 == 0 ? TokenKinds::kWordStart : TokenKinds::kContinues;
    }
  const TokenMasker masker({.probability = 0.9, .mask = 0, .random = 1}, {kMask, kinds});
  std::map<int32_t, int64_t> drawn;
  int64_t chosen = 0;
  for (int64_t index = 0; index < 200; ++index) {
    std::vector<int32_t> tokens(128, 2048), doc_start(128, 0), places(128), targets(128);
    const TokenMasker::Sequence sequence{
        .tokens = tokens, .doc_start = doc_start, .places = places, .targets = targets};
    const int64_t count = masker(index, 0, sequence);
    for (int64_t i = 0; i < count; ++i) ++drawn[tokens[static_cast<size_t>(places[static_cast<size_t>(i)])]];
    chosen += count;
  }
  std::vector<int32_t> ids;
  for (const auto& [id, count] : drawn) {
    ids.push_back(id);
    expect_share(count, chosen, 1.0 / static_cast<double>(ordinary.size()), std::to_string(id).c_str());
  }
  EXPECT_EQ(ids, ordinary);
}

/// A sequence of special tokens, of ids behind the kinds, of none.
TEST(TokenMasking, SpecialTokensAloneMaskNothing) {
  for (const bool whole_words : {false, true}) {
    const MaskingRules rules{.probability = 0.9, .whole_words = whole_words};
    for (const std::vector<int32_t>& tokens :
         {std::vector<int32_t>{0, 1, 2, kMask, 2, 1}, {kKinds, kKinds + 1, 30'000, -1}, {}}) {
      const Masked m = mask(rules, tokens, 5);
      EXPECT_EQ(m.count, 0);
      EXPECT_EQ(m.after, tokens);
      expect_sound(m);
    }
  }
}

/// Nothing may be drawn either: a chosen token that would be random stays as it is.
TEST(TokenMasking, WithoutWordsNothingIsDrawn) {
  const TokenMasker masker({.probability = 0.9, .mask = 0, .random = 1}, {kMask, ""});
  std::vector<int32_t> tokens = {4, 5, 6}, doc_start(3, 0), places(3), targets(3);
  EXPECT_EQ(masker(0, 0, {.tokens = tokens, .doc_start = doc_start, .places = places, .targets = targets}),
            0);
  EXPECT_THAT(tokens, ElementsAre(4, 5, 6));
  EXPECT_THAT(places, Each(kNoPlace));
}

TEST(TokenMasking, IsTheSameForTheSameSequenceAndPassAlone) {
  const std::vector<int32_t> tokens = drawn_tokens(256, 9);
  const MaskingRules rules{.seed = 77};
  const Masked first = mask(rules, tokens, 12, 3);
  EXPECT_EQ(mask(rules, tokens, 12, 3), first);
  MaskingRules other = rules, high = rules, second = rules;
  other.seed = 78;
  second.source = 1;
  high.seed += uint64_t{1} << 40;
  std::set<std::vector<int32_t>> seen = {first.places};
  EXPECT_TRUE(seen.insert(mask(rules, tokens, 12, 4).places).second) << "another epoch";
  EXPECT_TRUE(seen.insert(mask(rules, tokens, 3, 12).places).second) << "both exchanged";
  EXPECT_TRUE(seen.insert(mask(rules, tokens, 13, 3).places).second) << "another sequence";
  EXPECT_TRUE(seen.insert(mask(rules, tokens, 12 + (int64_t{1} << 32), 3).places).second) << "far behind it";
  EXPECT_TRUE(seen.insert(mask(other, tokens, 12, 3).places).second) << "another seed";
  EXPECT_TRUE(seen.insert(mask(high, tokens, 12, 3).places).second) << "a seed of 64 bits";
  EXPECT_TRUE(seen.insert(mask(second, tokens, 12, 3).places).second) << "of another source";
}

/// A sequence that ends sooner is masked alike as far as it goes: buckets of other lengths change nothing.
TEST(TokenMasking, WhatStandsBehindATokenDoesNotMatter) {
  const std::vector<int32_t> tokens = drawn_words(64, 3);
  const MaskingRules rules{.probability = 0.3};
  const Masked whole = mask(rules, tokens, 1, 1, {0}, 64);
  for (const int64_t length : {1, 17, 63}) {
    const Masked part = mask(rules, {tokens.begin(), tokens.begin() + length}, 1, 1, {0}, 64);
    EXPECT_TRUE(std::equal(part.after.begin(), part.after.end(), whole.after.begin())) << length;
  }
}

TEST(TokenMasking, CapacityIsWhatIsExpectedAndFourDeviations) {
  EXPECT_EQ(mask_capacity({}, 512), 112) << "76.8 + 4 * 8.08, in eights";
  EXPECT_EQ(mask_capacity({.whole_words = true}, 512), 128) << "six of them";
  EXPECT_EQ(mask_capacity({.probability = 0.9}, 10), 10) << "never more than the sequence";
  EXPECT_EQ(mask_capacity({.probability = 0.001}, 1), 1) << "never none";
  EXPECT_EQ(mask_capacity({.probability = 0.001}, 4), 4);
  for (int64_t length = 1; length < 2000; length += 13) {
    const int64_t capacity = mask_capacity({}, length);
    EXPECT_TRUE(capacity == length || capacity % 8 == 0) << length;
    EXPECT_GE(capacity, std::min<int64_t>(length, length * 15 / 100)) << length;
  }
}

/// Where a draw chooses more than there is room for, those with the smallest draws are chosen, the same ones
/// as with more room.
TEST(TokenMasking, WhatThereIsNoRoomForIsLeftAsItIs) {
  const MaskingRules rules{.probability = 0.9};
  const std::vector<int32_t> tokens = drawn_words(40, 8);
  const Masked all = mask(rules, tokens, 2, 0, {0}, 40);
  ASSERT_GT(all.count, 30);
  std::vector<int32_t> more = all.chosen();
  for (int64_t room = 39; room >= 1; --room) {
    const Masked m = mask(rules, tokens, 2, 0, {0}, room);
    expect_sound(m);
    EXPECT_EQ(m.count, std::min(room, all.count)) << "all of the room is used";
    EXPECT_TRUE(std::ranges::includes(more, m.chosen())) << room;
    more = m.chosen();
  }
}

/// Words of one to five tokens over documents, with special tokens in between: each is chosen whole or not at
/// all, with room enough and without.
TEST(TokenMasking, WholeWordsAreWhole) {
  const std::vector<int32_t> starts = {0, 5, 6, 31};
  int64_t parts = 0, words_chosen = 0;
  for (int64_t index = 0; index < 200; ++index) {
    std::vector<int32_t> tokens = drawn_tokens(60, static_cast<unsigned>(index));
    for (size_t i = 0; i < tokens.size(); ++i)
      if (i % 3 != 0 && tokens[i] >= kFirstWord) tokens[i] = kFirstPart + tokens[i] % 36;
    const std::vector<size_t> words = word_of_each(tokens, starts);
    for (const int64_t room : {0, 9, 3}) {
      const Masked m =
          mask({.probability = 0.4, .whole_words = true, .seed = 5}, tokens, index, 0, starts, room);
      expect_sound(m);
      std::vector<int32_t> chosen(words.size() + 1), all(words.size() + 1);
      for (size_t i = 0; i < words.size(); ++i)
        if (masking_kinds().of(tokens[i]) != TokenKinds::kSpecial) ++all[words[i]];
      for (const int32_t place : m.chosen()) ++chosen[words[static_cast<size_t>(place)]];
      for (size_t word = 0; word < all.size(); ++word) {
        EXPECT_TRUE(chosen[word] == 0 || chosen[word] == all[word]) << index << ": word " << word;
        words_chosen += chosen[word] > 0 ? 1 : 0;
        parts += chosen[word];
      }
    }
  }
  EXPECT_GT(parts, words_chosen * 3 / 2) << "many words have several tokens";
}

/// By themselves they are as likely as any token, and a word is as likely as one token.
TEST(TokenMasking, AWordIsChosenAsOftenAsAToken) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 60; ++i)
    for (const int32_t token : {10, 70, 71}) tokens.push_back(token);
  for (const bool whole_words : {false, true}) {
    int64_t chosen = 0, together = 0;
    constexpr int64_t kSequences = 200;
    for (int64_t index = 0; index < kSequences; ++index) {
      const Masked m = mask({.whole_words = whole_words}, tokens, index, 0, {0}, 180);
      chosen += m.count;
      const std::vector<int32_t> places = m.chosen();
      for (const int32_t place : places)
        together += place % 3 == 0 && std::ranges::binary_search(places, place + 1) &&
                            std::ranges::binary_search(places, place + 2)
                        ? 1
                        : 0;
    }
    if (whole_words)
      expect_share(together, kSequences * 60, 0.15, "words");
    else
      expect_share(chosen, kSequences * 180, 0.15, "tokens");
    EXPECT_EQ(together * 3 == chosen, whole_words);
  }
}

/// A part that no word stands before begins one: at the start of a sequence, of a document, behind a special
/// token. In one run of parts it goes on.
TEST(TokenMasking, APartWithoutItsWordIsAWord) {
  const std::vector<int32_t> tokens = {70, 71, 0, 72, 73, kKinds, 74, 75, 76};
  const std::vector<std::vector<int32_t>> words = {{0, 1}, {3, 4}, {6}, {7, 8}};
  std::set<std::vector<int32_t>> alone;
  for (int64_t index = 0; index < 300; ++index) {
    const Masked m =
        mask({.probability = 0.2, .whole_words = true}, tokens, index, 0, {0, 7}, 9);  // 7 is a document's
    std::vector<int32_t> left = m.chosen();
    for (const auto& word : words)
      if (std::ranges::includes(left, word)) {
        if (left == word) alone.insert(word);
        std::vector<int32_t> others;
        std::ranges::set_difference(left, word, std::back_inserter(others));
        left = others;
      }
    EXPECT_THAT(left, IsEmpty()) << "half a word at " << index;
  }
  EXPECT_EQ(alone.size(), words.size()) << "each is chosen without the others";
}

/// A word that is longer than all of the room is never chosen; words with smaller draws are.
TEST(TokenMasking, AWordLongerThanTheRoomIsPassedOver) {
  std::vector<int32_t> tokens(20, 70);
  tokens.push_back(5);
  int64_t others = 0;
  for (int64_t index = 0; index < 50; ++index) {
    const Masked m = mask({.probability = 0.9, .whole_words = true}, tokens, index, 0, {0}, 8);
    EXPECT_LE(m.count, 1);
    expect_sound(m);
    others += m.count;
  }
  EXPECT_GT(others, 10);
}

}  // namespace
}  // namespace plimsoll::datasets
