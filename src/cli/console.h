// Reports on stdout and stderr, the command line's.
#pragma once

#include "cli/terminal.h"
#include "telemetry/sink.h"

namespace plimsoll::cli {

/// With `json` an object a line on stdout and lines for people on stderr where that is a terminal and stdout
/// is none; else results for people on stdout and messages on stderr.
class Console : public telemetry::Sink {
 public:
  explicit Console(bool json);

  [[nodiscard]] telemetry::Audience audience() const override { return audience_; }
  void event(const io::Tree& event, std::string_view line) override;
  void text(std::string_view text) override;
  Status write(std::string_view bytes) override;
  void message(std::string_view text) override;
  void write_message(std::string_view bytes) override;
  void progress(const std::vector<StatusPart>& parts) override;
  void end_progress(bool stays) override;

 private:
  StatusLine line_;
  telemetry::Audience audience_;
};

}  // namespace plimsoll::cli
