// Words lie one after the other as symbols and shrink in place. A queue holds the pairs with the words that
// had them when they came up. A pair comes up in one round alone, that which makes the younger of its tokens;
// from then on its count only falls, so an entry whose count is no longer true goes back with the true one,
// and a pair that is too rare at first never counts.
#include "tokenizer_training/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "tokenizers/byte_alphabet.h"
#include "tokenizers/unicode.h"

namespace plimsoll::tokenizer_training {
namespace {

constexpr int64_t kMergesBetweenReports = 64;

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}
int32_t left_of(uint64_t pair) { return static_cast<int32_t>(pair >> 32); }
int32_t right_of(uint64_t pair) { return static_cast<int32_t>(pair & 0xFFFFFFFF); }

/// The count of each pair ever seen, and in this round its list of new positions.
class PairTable {
 public:
  struct Slot {
    uint64_t pair = kFree;
    int64_t count = 0;
    int64_t list = -1;
  };
  PairTable() : slots_(size_t{1} << 16) {}
  Slot& at(uint64_t pair) {
    if (2 * num_pairs_ > slots_.size()) grow();
    Slot& slot = slots_[find(pair)];
    if (slot.pair == kFree) {
      slot.pair = pair;
      ++num_pairs_;
    }
    return slot;
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  [[nodiscard]] size_t find(uint64_t pair) const {
    const size_t mask = slots_.size() - 1;
    size_t at = ((pair ^ pair >> 31) * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (slots_[at].pair != pair && slots_[at].pair != kFree) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.pair != kFree) slots_[find(slot.pair)] = slot;
  }
  std::vector<Slot> slots_;
  size_t num_pairs_ = 0;
};

struct Entry {
  int64_t count;
  uint64_t pair;
  uint64_t begin;  // in positions_
  uint32_t num_words;
};
/// The order of the queue: the larger count first, then the smaller pair.
bool comes_later(const Entry& a, const Entry& b) {
  return a.count != b.count ? a.count < b.count : a.pair > b.pair;
}

class Trainer {
 public:
  Trainer(const WordCounts& words, const BpeTrainerOptions& options) : options_(options) {
    add_alphabet();
    take_words(words);
    count_pairs();
  }

  TrainedBpe run() {
    for (int64_t round = 0; num_tokens() < options_.vocab_size && !queue_.empty();) {
      std::pop_heap(queue_.begin(), queue_.end(), comes_later);
      Entry top = queue_.back();
      queue_.pop_back();
      const int64_t count = pairs_.at(top.pair).count;
      if (top.count != count) {
        top.count = count;
        add_to_queue(top);
        continue;
      }
      merge(top);
      if (++round % kMergesBetweenReports == 0 && options_.progress && !options_.progress(num_tokens())) {
        result_.stopped = true;
        break;
      }
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] int64_t num_tokens() const { return static_cast<int64_t>(result_.tokens.size()); }

  int32_t id_of(const std::string& token) {
    const auto [at, is_new] = ids_.emplace(token, static_cast<int32_t>(result_.tokens.size()));
    if (is_new) result_.tokens.push_back(token);
    return at->second;
  }

  void add_alphabet() {
    for (const std::string& token : options_.special_tokens) id_of(token);
    std::array<unsigned, 256> bytes{};
    for (unsigned i = 0; i < 256; ++i) bytes[i] = i;
    std::sort(bytes.begin(), bytes.end(),
              [](unsigned a, unsigned b) { return tokenizers::kByteChars[a] < tokenizers::kByteChars[b]; });
    for (const unsigned byte : bytes) {
      std::string token;
      tokenizers::append_utf8(tokenizers::kByteChars[byte], token);
      byte_ids_[byte] = id_of(token);
    }
  }

  /// Words of one byte have no pairs and are left out.
  void take_words(const WordCounts& words) {
    size_t num_symbols = 0, num_words = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words.word(i).size() < 2) continue;
      num_symbols += words.word(i).size();
      ++num_words;
    }
    symbols_.reserve(num_symbols);
    words_.reserve(num_words);
    for (size_t i = 0; i < words.size(); ++i) {
      const std::string_view word = words.word(i);
      if (word.size() < 2) continue;
      words_.push_back({symbols_.size(), words.count(i), static_cast<uint32_t>(word.size())});
      for (const char byte : word) symbols_.push_back(byte_ids_[static_cast<unsigned char>(byte)]);
    }
  }

  void count_pairs() {
    for (uint32_t i = 0; i < words_.size(); ++i) {
      const int32_t* const symbol = symbols_.data() + words_[i].begin;
      for (uint32_t k = 0; k + 1 < words_[i].size; ++k)
        change(pair_of(symbol[k], symbol[k + 1]), words_[i].count, i, true);
    }
    queue_lists();
  }

  void change(uint64_t pair, int64_t count, uint32_t word, bool appears) {
    PairTable::Slot& slot = pairs_.at(pair);
    slot.count += count;
    if (!appears) return;
    if (slot.list < 0) {
      slot.list = static_cast<int64_t>(num_lists_);
      if (num_lists_ == lists_.size()) lists_.emplace_back();
      lists_[num_lists_].pair = pair;
      lists_[num_lists_++].words.clear();
    }
    std::vector<uint32_t>& list = lists_[static_cast<size_t>(slot.list)].words;
    if (list.empty() || list.back() != word) list.push_back(word);
  }

  /// The pairs that came up in this round go into the queue.
  void queue_lists() {
    for (size_t i = 0; i < num_lists_; ++i) {
      List& list = lists_[i];
      PairTable::Slot& slot = pairs_.at(list.pair);
      slot.list = -1;
      if (add_to_queue({slot.count, list.pair, positions_.size(), static_cast<uint32_t>(list.words.size())}))
        positions_.insert(positions_.end(), list.words.begin(), list.words.end());
      if (list.words.capacity() > kKeptPositions) list.words = {};
    }
    num_lists_ = 0;
  }

  bool add_to_queue(const Entry& entry) {
    if (entry.count < std::max<int64_t>(options_.min_frequency, 1)) return false;
    queue_.push_back(entry);
    std::push_heap(queue_.begin(), queue_.end(), comes_later);
    return true;
  }

  void merge(const Entry& top) {
    const int32_t left = left_of(top.pair);
    const int32_t right = right_of(top.pair);
    const int32_t merged =
        id_of(result_.tokens[static_cast<size_t>(left)] + result_.tokens[static_cast<size_t>(right)]);
    result_.merges.emplace_back(left, right);
    for (uint64_t i = top.begin; i < top.begin + top.num_words; ++i)
      merge_in_word(positions_[i], left, right, merged);
    queue_lists();
  }

  void merge_in_word(uint32_t index, int32_t left, int32_t right, int32_t merged) {
    Word& word = words_[index];
    int32_t* const symbol = symbols_.data() + word.begin;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < word.size; ++i, ++kept) {
      if (symbol[i] != left || i + 1 == word.size || symbol[i + 1] != right) {
        symbol[kept] = symbol[i];
        continue;
      }
      if (kept > 0) {
        change(pair_of(symbol[kept - 1], left), -word.count, index, false);
        change(pair_of(symbol[kept - 1], merged), word.count, index, true);
      }
      if (i + 2 < word.size) {
        change(pair_of(right, symbol[i + 2]), -word.count, index, false);
        change(pair_of(merged, symbol[i + 2]), word.count, index, true);
      }
      symbol[kept] = merged;
      ++i;
    }
    word.size = kept;
  }

  static constexpr size_t kKeptPositions = 4096;
  struct Word {
    size_t begin;  // in symbols_
    int64_t count;
    uint32_t size;
  };
  struct List {
    uint64_t pair = 0;
    std::vector<uint32_t> words = {};
  };

  const BpeTrainerOptions& options_;
  TrainedBpe result_ = {};
  std::unordered_map<std::string, int32_t> ids_;
  std::array<int32_t, 256> byte_ids_{};
  std::vector<int32_t> symbols_;
  std::vector<Word> words_;
  PairTable pairs_;
  std::vector<List> lists_;  // the first num_lists_ are of this round
  size_t num_lists_ = 0;
  std::vector<uint32_t> positions_;  // of all entries; never shrinks
  std::vector<Entry> queue_;
};

}  // namespace

TrainedBpe train_bpe(const WordCounts& words, const BpeTrainerOptions& options) {
  return Trainer(words, options).run();
}

}  // namespace plimsoll::tokenizer_training
