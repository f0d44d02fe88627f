// Predictions as lines of JSON, written as they come.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "io/file.h"
#include "io/tree.h"
#include "telemetry/sink.h"

namespace plimsoll::engine {

/// Lines on their way to the sink or to a file that is there whole or not at all.
class PredictionLines {
 public:
  static Result<PredictionLines> open(const std::string& path, telemetry::Sink& sink) {
    PredictionLines lines;
    lines.sink_ = &sink;
    if (path.empty()) return lines;
    PLIMSOLL_ASSIGN(io::AtomicFile file, io::AtomicFile::create(path));
    lines.file_.emplace(std::move(file));
    return lines;
  }
  void add(const io::Tree& line) { text_ += io::to_json(line) + "\n"; }
  Status flush() {
    if (file_)
      PLIMSOLL_TRY(file_->write_at(offset_, std::as_bytes(std::span(text_))));
    else
      PLIMSOLL_TRY(sink_->write(text_));
    offset_ += static_cast<int64_t>(text_.size());
    text_.clear();
    return Ok{};
  }
  Status finish() { return file_ ? file_->commit() : Status(Ok{}); }

 private:
  telemetry::Sink* sink_ = nullptr;
  std::optional<io::AtomicFile> file_;
  std::string text_;
  int64_t offset_ = 0;
};

}  // namespace plimsoll::engine
