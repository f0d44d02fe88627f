// The interface that a run, an evaluation or a generation reports to. The command line's sink writes to
// stdout and stderr; a library's caller gets objects, or nothing.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/text_layout.h"
#include "io/tree.h"

namespace plimsoll::telemetry {

/// Who reads what a sink is given; what nobody reads is not made.
struct Audience {
  bool events = false;    ///< objects are the result, and text for people comes beside it at most
  bool watches = false;   ///< somebody looks on while it runs
  bool dialogue = false;  ///< a person answers
  bool results_on_terminal = false;
  bool rewrites_progress = false;  ///< `progress` replaces what it showed before
};

/// Receives reports in the order in which things happen. Every function does nothing by default; `message`
/// and `progress` are called from any thread.
class Sink {
 public:
  virtual ~Sink() = default;
  [[nodiscard]] virtual Audience audience() const { return {}; }
  /// Of results, where the audience takes events; `line`: the same as JSON, without a line's end.
  virtual void event(const io::Tree& /*event*/, std::string_view /*line*/) {}
  /// A result for people, in lines.
  virtual void text(std::string_view /*text*/) {}
  /// A result's bytes as they are. Errors: kIo.
  virtual Status write(std::string_view /*bytes*/) { return Ok{}; }
  /// A message for people, as lines of its own.
  virtual void message(std::string_view /*text*/) {}
  /// Bytes beside the result as they are: a prompt of a dialogue, a table.
  virtual void write_message(std::string_view /*bytes*/) {}
  /// How far something has come.
  virtual void progress(const std::vector<StatusPart>& /*parts*/) {}
  /// What was shown last stays, or is taken away.
  virtual void end_progress(bool /*stays*/) {}
};

}  // namespace plimsoll::telemetry
