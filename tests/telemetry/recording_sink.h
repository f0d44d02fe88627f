// A sink that keeps what it is told.
#pragma once

#include <string>
#include <vector>

#include "telemetry/sink.h"

namespace plimsoll::telemetry {

struct RecordingSink : Sink {
  explicit RecordingSink(Audience given = {.watches = true}) : who(given) {}
  [[nodiscard]] Audience audience() const override { return who; }
  void event(const io::Tree& event, std::string_view line) override {
    names.push_back(event.find("event")->text);
    lines.emplace_back(line);
  }
  void text(std::string_view text) override { texts += text; }
  Status write(std::string_view bytes) override {
    written += bytes;
    return Ok{};
  }
  void message(std::string_view text) override { messages.emplace_back(text); }
  void progress(const std::vector<StatusPart>& parts) override { shown.push_back(fitted(parts, 0)); }
  void end_progress(bool stays) override { ended.push_back(stays); }

  Audience who;
  std::vector<std::string> names, lines, messages, shown;
  std::vector<bool> ended;
  std::string texts, written;
};

}  // namespace plimsoll::telemetry
