// Statistics of rounding errors: range, zeros, clipping, error.
#pragma once

#include <cstdint>
#include <span>

namespace plimsoll::cli {

/// Counts and sums over numbers and what became of them; parts add up. Range is of the finite numbers; error
/// is over those that are finite before and after.
struct RoundingError {
  int64_t elements = 0;
  int64_t nan = 0, infinite = 0;              ///< before
  int64_t lost = 0;                           ///< finite before, infinite or NaN after
  int64_t zeros_before = 0;                   ///< of either sign
  int64_t new_zeros = 0;                      ///< not 0 before, 0 after
  int64_t clipped = 0;                        ///< beyond the largest code; counted by who rounds
  double min = 0, max = 0;                    ///< both 0 where nothing is finite
  double squares = 0, error_squares = 0;      ///< of numbers, of differences
  double relative_sum = 0, relative_max = 0;  ///< |difference / number| of numbers other than 0
  int64_t relative_count = 0;

  void add(std::span<const float> before, std::span<const float> after);
  void add(const RoundingError& other);
  [[nodiscard]] int64_t finite() const { return elements - nan - infinite; }
  /// Norm of the differences by norm of the numbers; 0 where the latter is 0.
  [[nodiscard]] double relative_error() const;
  [[nodiscard]] double mean_relative() const;
  /// Signal to noise, 10 log10(squares / error_squares); infinite where nothing differs.
  [[nodiscard]] double snr_db() const;
};

}  // namespace plimsoll::cli
