// Up to 19 or 20 digits as an integer, then one multiplication or division by a power of ten.
#include "tokenizers/score.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace plimsoll::tokenizers {
namespace {

constexpr int kLargestPower = 308;

/// 10^0 … 10^308, each rounded once.
const std::array<double, kLargestPower + 1>& powers() {
  static const auto table = [] {
    std::array<double, kLargestPower + 1> result{};
    for (int i = 0; i <= kLargestPower; ++i)
      result[static_cast<size_t>(i)] = std::strtod(("1e" + std::to_string(i)).c_str(), nullptr);
    return result;
  }();
  return table;
}

std::optional<double> scaled(uint64_t digits, int64_t exponent) {
  auto value = static_cast<double>(digits);
  while (value != 0 && exponent < -kLargestPower) {
    value /= powers()[kLargestPower];
    exponent += kLargestPower;
  }
  if (value == 0) return value;
  if (exponent > kLargestPower) return std::nullopt;
  const double power = powers()[static_cast<size_t>(std::llabs(exponent))];
  value = exponent >= 0 ? value * power : value / power;
  if (std::isinf(value)) return std::nullopt;
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  std::optional<double> operator()() {
    const bool negative = take('-');
    // A digit that does not fit any more, and those behind it, count as zeros.
    for (; is_digit(); next())
      if (full_ || !append()) ++exponent_, full_ = true;
    if (take('.')) {
      // Behind the point the first that does not fit ends it.
      for (; is_digit() && append(); next()) --exponent_;
      while (is_digit()) next();
    }
    if (take('e') || take('E')) read_exponent();
    const auto value = scaled(digits_, exponent_);
    if (!value || !negative) return value;
    return -*value;
  }

 private:
  [[nodiscard]] bool is_digit() const { return !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; }
  void next() { rest_.remove_prefix(1); }
  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    next();
    return true;
  }
  /// The digit that stands next; false where it does not fit.
  bool append() {
    const auto digit = static_cast<uint64_t>(rest_[0] - '0');
    constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
    if (digits_ > kMost / 10 || (digits_ == kMost / 10 && digit > kMost % 10)) return false;
    digits_ = digits_ * 10 + digit;
    return true;
  }
  void read_exponent() {
    const bool negative = take('-');
    if (!negative) take('+');
    int64_t written = 0;
    constexpr int64_t kMost = int64_t{1} << 40;  // beyond any number's reach
    for (; is_digit(); next())
      if (written < kMost) written = written * 10 + (rest_[0] - '0');
    exponent_ += negative ? -written : written;
  }

  std::string_view rest_;
  uint64_t digits_ = 0;
  int64_t exponent_ = 0;
  bool full_ = false;
};

}  // namespace

std::optional<double> read_score(std::string_view spelling) { return Reader(spelling)(); }

}  // namespace plimsoll::tokenizers
