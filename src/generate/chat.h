// A conversation: turns from standard input, answers to standard output, all of it before the model each
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/stop.h"
#include "generate/chat_format.h"
#include "generate/generator.h"
#include "generate/output.h"
#include "generate/text_codec.h"

namespace plimsoll::generate {

struct ChatOptions {
  GeneratorOptions generator = {};
  OutputOptions output = {};
  int64_t context_tokens = 0;  ///< positions of the session's cache
  Stop stop = {};
  std::function<void()> forget_interrupt = {};  ///< see Request
};

/// One conversation on a session of one row. Lines of standard input are the user's turns; one that ends in a
/// backslash goes on with the next. "/clear" begins anew, "/exit" ends as the end of the input does. Where
/// the conversation outgrows the context, the oldest turns are left out, with a note.
class Chat {
 public:
  /// All outlive it.
  Chat(const TextCodec& codec, const ChatFormat& format, runtime::Session& session,
       const ChatOptions& options, telemetry::Sink& sink);
  /// Host memory that it holds, with what is at work on a turn.
  static int64_t memory_bytes(int64_t context_tokens);

  /// Until the input ends or it is asked to stop; on a terminal, Ctrl-C in an answer ends the answer alone.
  /// Errors: kBadData where the template refuses; kInvalidArgument for a turn beyond the context (on a
  /// terminal a message, and the turn is taken back); kIo.
  Status run();
  [[nodiscard]] const GenerationRates& rates() const { return generator_.rates(); }
  [[nodiscard]] int64_t num_turns() const { return turns_; }

 private:
  Status take_turn(const std::string& line);
  Status fit();
  Status answer(const std::string& line);
  [[nodiscard]] int64_t shared_tokens() const;

  const TextCodec& codec_;
  const ChatFormat& format_;
  ChatOptions options_;
  Generator generator_;
  telemetry::Sink& sink_;
  Output output_;
  io::Tree messages_ = io::Tree::list();
  std::vector<int32_t> ids_;        ///< of the conversation as rendered
  std::vector<int32_t> prefilled_;  ///< what the cache holds, as prefill wrote it
  std::vector<Sequence> sequence_ = std::vector<Sequence>(1);
  int64_t turns_ = 0;
  bool is_terminal_ = false;
};

}  // namespace plimsoll::generate
