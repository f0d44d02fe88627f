// Reports generated text and events to a sink: text as it comes, or an event for each; figures for people.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "generate/answer_text.h"
#include "generate/generator.h"
#include "generate/prompts.h"
#include "generate/text_codec.h"
#include "planner/report/report.h"
#include "telemetry/sink.h"

namespace plimsoll::generate {

struct GenerationSummary {
  int64_t prompts = 0;
  GenerationRates rates = {};
  double seconds = 0;          ///< of prefill and decoding
  double startup_seconds = 0;  ///< from the start of the process to the first prefill
  int64_t planned_peak_bytes = 0, measured_peak_bytes = 0;
};

struct OutputOptions {
  bool stream = true;
  bool titles = false;                      ///< a line above each text that names its prompt
  std::span<const std::string> stops = {};  ///< texts that end an answer
};

/// The plan as a message, or as an event.
void tell_plan(const planner::PlanReport& report, telemetry::Sink& sink);
/// The same of the figures.
void tell_summary(const GenerationSummary& summary, telemetry::Sink& sink);

/// Seconds by op of the last run of each program, beside the results, where the session was timed.
void tell_timings(const runtime::Session& session, telemetry::Sink& sink);

/// The texts of a batch. One text streams alone; with several each stands under a line that names
/// it; one at a time streams too, those of a batch come when the batch is done, in order.
class Output {
 public:
  /// The codec, the stop texts and the sink outlive it.
  Output(const TextCodec& codec, const OutputOptions& options, telemetry::Sink& sink);

  /// Host memory that texts of so many tokens take, and one result's event.
  static int64_t memory_bytes(int64_t batch_size, int64_t new_tokens);
  /// A batch of sequences, consecutive from the index `first` on, begins; the prompts outlive it.
  void begin_batch(std::span<const Prompt> prompts, uint32_t first);
  /// As Generator::OnToken.
  bool token(const Sequence& sequence, int32_t id);
  /// A batch has come to its end; the texts that have not been streamed follow.
  void end_batch(std::span<const Sequence> sequences);
  /// The text of the batch's first sequence so far.
  [[nodiscard]] const std::string& text() const { return answers_.front().text.text(); }

 private:
  struct Answer {
    AnswerText text;
    double seconds = 0;  ///< from the batch's beginning to the answer's end
  };
  void title(uint32_t index) const;
  void report_answer(const Sequence& sequence) const;
  void write(const std::string& text);
  [[nodiscard]] const Prompt& prompt_of(uint32_t index) const { return prompts_[index - first_]; }

  const TextCodec& codec_;
  OutputOptions options_;
  telemetry::Sink& sink_;
  telemetry::Audience audience_;  ///< on a terminal controls of a text are spelled out
  std::span<const Prompt> prompts_;
  uint32_t first_ = 0;
  std::vector<Answer> answers_;
  double begun_seconds_ = 0;
  bool streaming_ = false;  ///< this batch
  bool line_open_ = false;
};

}  // namespace plimsoll::generate
