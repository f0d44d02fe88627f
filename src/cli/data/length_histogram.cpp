#include "cli/data/length_histogram.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/numbers.h"
#include "cli/table.h"

namespace plimsoll::cli {
namespace {

constexpr int kExactBits = 16;  // lengths below 2^16 are counted one by one
constexpr int kFineBits = 10;   // above, each power of two in 2^10 parts
constexpr int kMostBits = 62;

int log2_of(int64_t length) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(length))) - 1; }

size_t slot_of(int64_t length) {
  const int bits = log2_of(length);
  if (bits < kExactBits) return static_cast<size_t>(length);
  const auto part = static_cast<uint64_t>(length) >> (bits - kFineBits);  // 2^10 to 2^11 - 1
  return (size_t{1} << kExactBits) + (static_cast<size_t>(bits - kExactBits) << kFineBits) +
         static_cast<size_t>(part - (uint64_t{1} << kFineBits));
}

/// The least length of a slot.
int64_t length_of(size_t slot) {
  if (slot < size_t{1} << kExactBits) return static_cast<int64_t>(slot);
  slot -= size_t{1} << kExactBits;
  const auto bits = static_cast<int>(slot >> kFineBits) + kExactBits;
  const auto part = static_cast<int64_t>(slot & ((size_t{1} << kFineBits) - 1)) + (int64_t{1} << kFineBits);
  return part << (bits - kFineBits);
}

}  // namespace

std::string bar(double share, int columns) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  auto eighths = static_cast<int>(std::lround(share * columns * 8));
  if (share > 0) eighths = std::max(eighths, 1);
  std::string text;
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  return text + kEighths[eighths % 8];
}

LengthHistogram::LengthHistogram()
    : counts_((size_t{1} << kExactBits) + (static_cast<size_t>(kMostBits - kExactBits) << kFineBits)),
      bins_(kMostBits) {
  for (int bit = 0; bit < kMostBits; ++bit)
    bins_[static_cast<size_t>(bit)] = {int64_t{1} << bit, (int64_t{2} << bit) - 1, 0, 0};
}

void LengthHistogram::add(int64_t tokens) {
  PLIMSOLL_CHECK(tokens > 0 && tokens < int64_t{1} << kMostBits, "a document of no length");
  ++counts_[slot_of(tokens)];
  Bin& bin = bins_[static_cast<size_t>(log2_of(tokens))];
  ++bin.documents;
  bin.tokens += tokens;
  shortest_ = documents_ == 0 ? tokens : std::min(shortest_, tokens);
  longest_ = std::max(longest_, tokens);
  ++documents_;
  tokens_ += tokens;
}

double LengthHistogram::mean() const {
  return documents_ == 0 ? 0 : static_cast<double>(tokens_) / static_cast<double>(documents_);
}

int64_t LengthHistogram::percentile(double share) const {
  const auto rank =
      std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(documents_))));
  int64_t below = 0;
  for (size_t slot = 0; slot < counts_.size(); ++slot) {
    below += counts_[slot];
    if (below >= rank) return std::clamp(length_of(slot), shortest_, longest_);
  }
  return 0;
}

std::vector<LengthHistogram::Bin> LengthHistogram::bins() const {
  if (documents_ == 0) return {};
  return {bins_.begin() + log2_of(shortest_), bins_.begin() + log2_of(longest_) + 1};
}

std::string LengthHistogram::summary() const {
  return fmt::format("shortest {}, 10 % {}, median {}, mean {}, 90 % {}, 99 % {}, longest {}",
                     grouped(shortest_), grouped(percentile(0.1)), grouped(percentile(0.5)),
                     grouped(std::llround(mean())), grouped(percentile(0.9)), grouped(percentile(0.99)),
                     grouped(longest_));
}

std::string LengthHistogram::picture(int width) const {
  const std::vector<Bin> shown = bins();
  int64_t most = 1;
  size_t range_width = 0, count_width = 0;
  std::vector<std::string> ranges, counts;
  for (const Bin& bin : shown) {
    most = std::max(most, bin.documents);
    ranges.push_back(bin.least == bin.most ? grouped(bin.least)
                                           : fmt::format("{} to {}", grouped(bin.least), grouped(bin.most)));
    counts.push_back(grouped(bin.documents));
    range_width = std::max(range_width, ranges.back().size());
    count_width = std::max(count_width, counts.back().size());
  }
  const int columns = std::clamp(width - static_cast<int>(range_width + count_width) - 26, 8, 48);
  std::string text;
  for (size_t i = 0; i < shown.size(); ++i) {
    const double share = static_cast<double>(shown[i].documents) / static_cast<double>(most);
    const double tokens = static_cast<double>(shown[i].tokens) / static_cast<double>(tokens_);
    text += fmt::format("  {:>{}}  {:>{}}  {:>5.1f} % of tokens{}{}\n", ranges[i], range_width, counts[i],
                        count_width, 100 * tokens, share > 0 ? "  " : "", bar(share, columns));
  }
  return text;
}

}  // namespace plimsoll::cli
