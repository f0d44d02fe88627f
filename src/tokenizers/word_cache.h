// Words met before and their ids: a table of cache lines in pairs. A word of up to 31 bytes is compared
// whole, the older of a pair is replaced, so the memory is bounded and a hostile text can only make it
// useless.
#pragma once

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::tokenizers {

class WordCache {
 public:
  static constexpr size_t kMaxBytes = 31;
  static constexpr uint32_t kMaxIds = 7;

  /// The word's bytes, zeros, and in the last byte its length; never all zero.
  struct Key {
    uint64_t words[4];
    bool operator==(const Key& other) const {
      return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1]) | (words[2] ^ other.words[2]) |
              (words[3] ^ other.words[3])) == 0;
    }
  };
  struct alignas(64) Entry {
    Key key;
    uint32_t num_ids;
    int32_t ids[kMaxIds];
  };

  WordCache() : entries_(std::make_unique<Entry[]>(kFewEntries)) {}
  /// For whoever encodes much: four times the memory; what was in it is forgotten.
  void widen() {
    if (pair_mask_ == kManyEntries / 2 - 1) return;
    entries_ = std::make_unique<Entry[]>(kManyEntries);
    pair_mask_ = kManyEntries / 2 - 1;
  }

  /// Writes the key of a word of 1 to 31 bytes and returns its hash. `readable_end`: the end of the memory
  /// that the word lies in. In the second space the same bytes are another word. Works on four registers: a
  /// key that is stored in pieces and read back whole costs more than all the rest.
  static uint64_t make_key(std::string_view word, const char* readable_end, bool second_space, Key& key) {
    char copy[sizeof key];
    const char* from = word.data();
    if (static_cast<size_t>(readable_end - from) < sizeof key) {
      std::memset(copy, 0, sizeof copy);
      std::memcpy(copy, from, word.size());
      from = copy;
    }
    const char* const mask = kMask + sizeof key - word.size();
    const uint64_t a = load(from) & load(mask);
    const uint64_t b = load(from + 8) & load(mask + 8);
    const uint64_t c = load(from + 16) & load(mask + 16);
    const uint64_t d = (load(from + 24) & load(mask + 24)) |
                       static_cast<uint64_t>(word.size() | (second_space ? 0x80u : 0u)) << 56;
    key.words[0] = a;
    key.words[1] = b;
    key.words[2] = c;
    key.words[3] = d;
    return fold(a ^ 0xA0761D6478BD642Fu, b ^ 0xE7037ED1A0B428DBu) ^
           fold(c ^ 0x8EBC6AF09C88C6E3u, d ^ 0x589965CC75374CC3u);
  }
  /// The bytes of the word whose key it is.
  static std::string_view word_of(const Key& key) {
    return {reinterpret_cast<const char*>(key.words), (key.words[3] >> 56) & kMaxBytes};
  }
  static bool in_second_space(const Key& key) { return key.words[3] >> 63 != 0; }
  void prefetch(uint64_t hash) const { __builtin_prefetch(pair_of(hash)); }
  /// Where the word is, or null.
  [[nodiscard]] const Entry* find(const Key& key, uint64_t hash) const {
    const Entry* const pair = pair_of(hash);
    if (pair[0].key == key) return &pair[0];
    if (pair[1].key == key) return &pair[1];
    return nullptr;
  }
  void insert(const Key& key, uint64_t hash, const std::vector<int32_t>& ids) {
    Entry* const pair = pair_of(hash);
    pair[1] = pair[0];
    pair[0].key = key;
    pair[0].num_ids = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), pair[0].ids);
  }

 private:
  static constexpr size_t kFewEntries = size_t{1} << 15;   // 2 MiB
  static constexpr size_t kManyEntries = size_t{1} << 17;  // a sixth faster over many megabytes of code
  static constexpr char kMask[64] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                     -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  Entry* pair_of(uint64_t hash) const { return &entries_[2 * (hash & pair_mask_)]; }
  static uint64_t load(const char* from) {
    uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
  }
  static uint64_t fold(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  std::unique_ptr<Entry[]> entries_;
  size_t pair_mask_ = kFewEntries / 2 - 1;
};

/// The same for words of up to 255 bytes and any number of ids: a run of indentation, a word in a script of
/// three bytes a letter. Direct-mapped; some 10 MiB at the very most.
class LongWordCache {
 public:
  static constexpr size_t kMaxBytes = 255;
  struct Entry {
    std::string word = {};
    std::vector<int32_t> ids = {};
  };
  LongWordCache() : entries_(kEntries) {}
  /// Where the word is, or will be; its `word` tells.
  Entry& entry(std::string_view word) {
    return entries_[XXH3_64bits(word.data(), word.size()) & (kEntries - 1)];
  }

 private:
  static constexpr size_t kEntries = size_t{1} << 13;
  std::vector<Entry> entries_;
};

}  // namespace plimsoll::tokenizers
