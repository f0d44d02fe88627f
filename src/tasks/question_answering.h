// The rows of windows of questions, for whoever fills them without a source of the task.
#pragma once

#include <cstdint>
#include <span>

#include "tasks/task.h"

namespace plimsoll::tasks {

/// What is added to the logits of a token that is padding: nothing begins or ends there.
inline constexpr float kNowhere = -1e30F;

/// Inputs: "tokens" i32[batch, length], "doc_start" alike (0, of padding its own place), "padding" f32[batch,
/// length] (0, of padding kNowhere), "spans" i32[batch, 2] (the first and the last token of the answer), for
/// models with several types "token_types". Logits f32[batch, 2, length]: begins, ends.
struct WindowRow {
  std::span<int32_t> tokens = {}, doc_start = {};
  std::span<float> padding = {};
  std::span<int32_t> spans = {};
  std::span<int32_t> types = {};  ///< empty where the model has none

  static WindowRow of(datasets::ExampleRow row, bool has_types);
  /// Sets doc_start and padding of a window of so many tokens.
  void set_length(int64_t count) const;
};

}  // namespace plimsoll::tasks
