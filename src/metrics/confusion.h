// The confusion matrix of an evaluation with the names of its classes, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::metrics {

/// Examples by class and predicted class.
struct Confusion {
  std::vector<std::string> names;  ///< of the classes
  std::vector<uint32_t> counts;    ///< [class, predicted class]; empty: there is none

  struct Pair {
    size_t label = 0, predicted = 0;
    uint32_t count = 0;
  };
  [[nodiscard]] bool empty() const { return counts.empty(); }
  [[nodiscard]] uint32_t at(size_t label, size_t predicted) const {
    return counts[label * names.size() + predicted];
  }
  /// Of the pairs of two classes that occur the `most` with the largest counts; of equal ones the first.
  [[nodiscard]] std::vector<Pair> most_confused(size_t most) const;
  /// The matrix as a table with a line for each class, where there are few classes; else a line for each of
  /// the most confused pairs. Empty without a matrix, and where nothing was confused.
  [[nodiscard]] std::string text() const;
};

}  // namespace plimsoll::metrics
