// The text of an answer as it comes, up to the first of the texts that end it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/text_codec.h"

namespace plimsoll::generate {

/// Finds the first of some texts in a text that comes in pieces, wherever the pieces break.
class StopTexts {
 public:
  /// The texts are not empty, and outlive this.
  explicit StopTexts(std::span<const std::string> texts) : texts_(texts) {}

  /// What is certain by now: `piece`, after what was held back, up to the first stop text, or without the
  /// end that may become one. Nothing more comes once one was found.
  std::string push(std::string_view piece);
  /// What was held back, at the end.
  std::string finish();
  [[nodiscard]] bool found() const { return found_; }

 private:
  std::span<const std::string> texts_;
  std::string held_;
  bool found_ = false;
};

/// Ids to text in whole characters, without what a stop text ends. Of ids where the model has no text.
class AnswerText {
 public:
  AnswerText(const TextCodec& codec, std::span<const std::string> stops) : stream_(codec), stops_(stops) {}
  /// Host memory that the text of so many tokens takes, with what is at work on it: twice a long token each.
  static int64_t memory_bytes(int64_t tokens) { return tokens * 32; }

  /// What the id adds to what is certain.
  std::string push(int32_t id) { return take(stops_.push(stream_.push(id))); }
  /// The rest, once no id follows.
  std::string finish();
  /// Whether a stop text came.
  [[nodiscard]] bool stopped() const { return stops_.found(); }
  /// All that was given out.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string take(std::string piece);
  TextCodec::Stream stream_;
  StopTexts stops_;
  std::string text_;
};

}  // namespace plimsoll::generate
