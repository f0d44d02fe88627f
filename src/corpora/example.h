// One example of a data set: a text, a prompt with its completion, a
// conversation, or tokens. How it becomes tokens is example_encoder.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::corpora {

enum class ExampleKind : uint8_t { kText, kCompletion, kMessages, kTokens };

/// One example. Strings are UTF-8 as far as the file was; what is not counts as U+FFFD when it is encoded.
struct Example {
  ExampleKind kind = ExampleKind::kText;
  std::string text = {};        ///< kText: the document or a piece of it; kCompletion: the prompt
  std::string completion = {};  ///< kCompletion
  /// kMessages: a JSON object with "messages" and what else a chat template sees of the line ("tools",
  /// "documents", "chat_template_kwargs"), valid UTF-8.
  std::string record = {};
  /// kMessages from a prompt and a completion that are lists: the same with the prompt's messages alone.
  std::string prompt_record = {};
  std::vector<int32_t> ids = {};      ///< kTokens, from 0 on
  std::vector<uint8_t> in_loss = {};  ///< kTokens: 1 an id that counts as a target; empty: all do
  /// kTokens: where each document of a row that is packed already ends in ids; empty: the row is one.
  std::vector<size_t> ends = {};
  /// kTokens: a text or a conversation beside the ids is not read.
  bool has_text_beside = false;
  /// No tokens, and yet "labels" or masks of some beside them, which are not read.
  bool has_idle_labels = false;
  /// kCompletion of two texts: a "system" beside them is not read.
  bool has_idle_system = false;
  bool first = true;       ///< kText: the document starts here
  bool continues = false;  ///< kText: the next example is the same document's next piece
  std::string file = {};
  int64_t line = 0;  ///< where it starts, from 1; 0 for a text file
};

/// Where an example stands, for messages: "file: line 7", or the file alone where `line` is 0.
std::string place_of(const std::string& file, int64_t line);

/// Why an example cannot be used: `reason` is one of few short texts, for counting.
struct BadExample {
  std::string_view reason;
  Error error;
};

/// What to do about an example that cannot be used.
enum class OnError : uint8_t { kFail, kSkip };

/// What was passed over, by reason ("not JSON", "line too long", …).
struct SkipCounts {
  std::map<std::string, int64_t, std::less<>> by_reason = {};
  void add(std::string_view reason, int64_t count = 1);
  void add(const SkipCounts& other);
  [[nodiscard]] int64_t total() const;
};

}  // namespace plimsoll::corpora
