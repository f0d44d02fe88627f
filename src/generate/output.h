// What a generation tells while it goes: text as it comes, or one JSON object a line with --json; figures for
// people on stderr.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generate/generator.h"
#include "generate/prompts.h"
#include "generate/text_codec.h"
#include "planner/report.h"

namespace plimsoll::generate {

struct GenerationSummary {
  int64_t prompts = 0;
  GenerationRates rates = {};
  double seconds = 0;          ///< of prefill and decoding
  double startup_seconds = 0;  ///< from the start of the process to the first prefill
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
};

/// With one prompt its text streams to stdout alone. With several each stands under a line that names it; one
/// at a time streams too, those of a batch come when the batch is done, in order.
class Output {
 public:
  struct Options {
    bool json = false;
    bool stream = true;
  };
  Output(const TextCodec& codec, const std::vector<Prompt>& prompts, Options options);

  void plan(const planner::PlanReport& report) const;
  /// A batch of `size` prompts begins.
  void begin_batch(size_t size);
  /// As Generator::OnToken.
  void token(const Sequence& sequence, int32_t id);
  /// A batch has come to its end; the texts that have not been streamed follow.
  void end_batch(std::span<const Sequence> sequences);
  void summary(const GenerationSummary& summary) const;

 private:
  void header(size_t index) const;
  void print_json(const Sequence& sequence) const;
  void print_text(const Sequence& sequence);
  void write(const std::string& text);

  const TextCodec& codec_;
  const std::vector<Prompt>& prompts_;
  Options options_;
  bool streaming_ = false;  ///< this batch
  bool line_open_ = false;
  std::optional<TextCodec::Stream> stream_;
};

}  // namespace plimsoll::generate
