// Chooses the examples of an evaluation that a report shows: the surest mistakes, and the least sure right
// answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tasks/task.h"

namespace plimsoll::training {

/// An example of an evaluation and the model's answer.
struct AnsweredExample {
  size_t part = 0;       ///< of the evaluation's parts
  int64_t position = 0;  ///< in it, as TrainingData::look_up gave it
  tasks::Answer answer;
};

/// Takes examples in the order of the evaluation. Allocates nothing once made.
class ShownExamples {
 public:
  static constexpr size_t kMost = 16;          ///< that are shown
  static constexpr size_t kMostMistakes = 12;  ///< of them, unless there are too few right answers
  ShownExamples();
  void clear();
  void add(const AnsweredExample& example);
  /// Mistakes first, of highest score; then right answers, of lowest. Of equal scores the earlier example.
  [[nodiscard]] std::vector<AnsweredExample> chosen() const;

 private:
  std::vector<AnsweredExample> mistakes_, right_;  ///< each in that order, at most kMost
};

}  // namespace plimsoll::training
