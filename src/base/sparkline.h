// A course of numbers as a few characters, for terminals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// At most `columns` characters of eight heights (U+2581 to U+2588), the lowest value the lowest; where there
/// are more values each character is the mean of its share. What is not finite is left out; all equal: all
/// low. Empty where nothing is left.
std::string sparkline(std::span<const double> values, size_t columns);
/// Whether a terminal can be trusted with those characters: its locale is of UTF-8 (LC_ALL, LC_CTYPE, LANG:
/// the first that is set), and it is not dumb.
bool shows_sparklines();

/// A course of any length in memory that is taken once: means of equal shares.
class Course {
 public:
  Course() { means_.reserve(kMost); }
  /// Allocates nothing. What is not finite is passed over.
  void add(double value);
  [[nodiscard]] const std::vector<double>& means() const { return means_; }

 private:
  static constexpr size_t kMost = 128;
  std::vector<double> means_;
  int64_t each_ = 1;  ///< values in a mean
  int64_t open_ = 0;  ///< values in the one that grows
  double sum_ = 0;
};

}  // namespace plimsoll
