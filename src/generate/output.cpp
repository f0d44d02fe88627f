#include "generate/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/process.h"
#include "base/text_layout.h"
#include "base/units.h"
#include "io/tree.h"
#include "planner/programs/generation_programs.h"

namespace plimsoll::generate {
namespace {

io::Tree text_node(std::string_view text) { return io::Tree::of(std::string(text)); }

io::Tree id_list(std::span<const int32_t> ids) {
  std::vector<io::Tree> items;
  for (const int32_t id : ids) items.push_back(io::Tree::of(static_cast<int64_t>(id)));
  return io::Tree::list(std::move(items));
}

void emit(const io::Tree& event, telemetry::Sink& sink) { sink.event(event, io::to_json(event)); }

double rate(int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

int64_t class_bytes(const planner::PlanReport& report, std::string_view name) {
  const auto it = std::find_if(report.classes.begin(), report.classes.end(),
                               [&](const auto& c) { return c.first == name; });
  return it == report.classes.end() ? 0 : it->second;
}

/// The first line of a prompt, cut to what a terminal shows; whole characters.
std::string shown(const Prompt& prompt) {
  constexpr size_t kMost = 60;
  const std::string& text = prompt.title.empty() ? prompt.text : prompt.title;
  if (text.empty()) return fmt::format("{} ids", prompt.ids.size());
  size_t end = std::min(text.find('\n'), text.size());
  const bool cut = end > kMost || end < text.size();
  end = std::min(end, kMost);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + (cut ? "…" : "");
}

/// "stop", "length" or "interrupted", as chat APIs have it, whatever it was that said stop.
std::string_view finish_reason(Finish finish) { return finish == Finish::kEos ? "stop" : name(finish); }

}  // namespace

void tell_plan(const planner::PlanReport& r, telemetry::Sink& sink) {
  if (sink.audience().events) return emit(planner::plan_event(r), sink);
  const auto shown_bytes = [&](std::string_view name) { return to_string(Bytes(class_bytes(r, name))); };
  const std::string line = fmt::format(
      "plan: {} of {}: parameters {}, cache {}, activations {}, host {}, process {}",
      to_string(Bytes(r.process_peak_bytes())), to_string(Bytes(r.budget_bytes)), shown_bytes("parameters"),
      shown_bytes("kv_cache"), shown_bytes("activations"),
      to_string(Bytes(r.host_pinned_bytes + r.host_pageable_bytes)), to_string(Bytes(r.overhead_bytes)));
  sink.message(line);
}

int64_t Output::memory_bytes(int64_t batch_size, int64_t new_tokens) {
  const auto listed = 2 * static_cast<int64_t>(sizeof(io::Tree));  // an id, in either list
  return batch_size * AnswerText::memory_bytes(new_tokens) + new_tokens * listed;
}

Output::Output(const TextCodec& codec, const OutputOptions& options, telemetry::Sink& sink)
    : codec_(codec), options_(options), sink_(sink), audience_(sink.audience()) {}

void Output::write(const std::string& raw) {
  if (raw.empty()) return;
  const std::string& text = audience_.results_on_terminal ? harmless(raw) : raw;
  (void)sink_.write(text);  // that it did not arrive is the sink's to keep
  line_open_ = text.back() != '\n';
}

void Output::title(uint32_t index) const {
  if (!options_.titles) return;
  const std::string line = fmt::format("==> {}: {} <==\n", index + 1, shown(prompt_of(index)));
  sink_.text((index > 0 ? "\n" : "") + (audience_.results_on_terminal ? harmless(line) : line));
}

void Output::begin_batch(std::span<const Prompt> prompts, uint32_t first) {
  prompts_ = prompts;
  first_ = first;
  streaming_ = options_.stream && !audience_.events && prompts.size() == 1;
  begun_seconds_ = now_seconds();
  answers_.clear();
  answers_.reserve(prompts.size());
  for (size_t i = 0; i < prompts.size(); ++i) answers_.push_back({AnswerText(codec_, options_.stops)});
  if (streaming_) title(first);
}

bool Output::token(const Sequence& sequence, int32_t id) {
  Answer& answer = answers_[sequence.index - first_];
  const std::string piece = id >= 0 ? answer.text.push(id) : answer.text.finish();
  if (streaming_) write(piece);
  if (id < 0) answer.seconds = now_seconds() - begun_seconds_;
  return !answer.text.stopped();
}

void Output::report_answer(const Sequence& s) const {
  const Prompt& prompt = prompt_of(s.index);
  const Answer& answer = answers_[s.index - first_];
  const auto new_tokens = static_cast<int64_t>(s.new_ids().size());
  io::Tree line = io::Tree::map(
      {{"event", text_node("generation")},
       {"index", io::Tree::of(static_cast<int64_t>(s.index))},
       {"prompt", codec_.has_text() && !prompt.text.empty() ? text_node(prompt.text)
                                                            : text_node(codec_.decode(prompt.ids))},
       {"prompt_tokens", io::Tree::of(s.prompt_tokens)},
       {"text", text_node(codec_.has_text() ? answer.text.text() : "")},
       {"tokens", id_list(s.new_ids())},
       {"ids", id_list(s.new_ids())},
       {"new_tokens", io::Tree::of(new_tokens)},
       {"finish_reason", text_node(finish_reason(s.finish))},
       {"seconds", io::Tree::of(answer.seconds)},
       {"tokens_per_second", io::Tree::of(rate(new_tokens, answer.seconds))}});
  if (s.finish == Finish::kEos || s.finish == Finish::kStop)
    line.set("stopped_by", text_node(s.finish == Finish::kEos ? "eos" : "text"));
  emit(line, sink_);
}

void Output::end_batch(std::span<const Sequence> sequences) {
  for (const Sequence& s : sequences) {
    if (audience_.events) {
      report_answer(s);
    } else if (!streaming_) {
      title(s.index);
      write(answers_[s.index - first_].text.text());
    }
    if (line_open_) write("\n");
  }
}

void tell_summary(const GenerationSummary& s, telemetry::Sink& sink) {
  const double prefill = rate(s.rates.prefill_tokens, s.rates.prefill_seconds),
               decode = rate(s.rates.new_tokens, s.rates.decode_seconds);
  if (sink.audience().events)
    return emit(io::Tree::map(
                    {{"event", text_node("summary")},
                     {"prompts", io::Tree::of(s.prompts)},
                     {"prompt_tokens", io::Tree::of(s.rates.prompt_tokens)},
                     {"new_tokens", io::Tree::of(s.rates.new_tokens)},
                     {"seconds", io::Tree::of(s.seconds)},
                     {"startup_seconds", io::Tree::of(s.startup_seconds)},
                     {"first_token_seconds", io::Tree::of(s.rates.first_token_seconds)},
                     {"prefill_tokens_per_second", io::Tree::of(prefill)},
                     {"decode_tokens_per_second", io::Tree::of(decode)},
                     {"planned_peak_bytes", io::Tree::of(s.planned_peak_bytes)},
                     {"measured_peak_bytes", io::Tree::of(s.measured_peak_bytes)},
                     {"allocations_after_first_token", io::Tree::of(s.rates.allocations_after_first_token)}}),
                sink);
  const std::string line = fmt::format(
      "{} new tokens in {:.2f} s: prefill {:.0f} tok/s, decode {:.1f} tok/s; first token after {:.2f} s, "
      "start-up {:.2f} s; peak {} of {} planned",
      s.rates.new_tokens, s.seconds, prefill, decode, s.rates.first_token_seconds, s.startup_seconds,
      to_string(Bytes(s.measured_peak_bytes)), to_string(Bytes(s.planned_peak_bytes)));
  sink.message(line);
}

void tell_timings(const runtime::Session& session, telemetry::Sink& sink) {
  for (const passes::ProgramRole program : {passes::ProgramRole::kPrefill, passes::ProgramRole::kDecode}) {
    const int index = session.plan().find_program({program});
    if (index < 0) continue;
    std::map<std::string_view, std::pair<int64_t, double>> by_op;
    double total = 0;
    for (const runtime::TimedOp& timed : session.timed_ops(index)) {
      ++by_op[timed.op->def->name].first;
      by_op[timed.op->def->name].second += timed.seconds;
      total += timed.seconds;
    }
    sink.write_message(fmt::format("{}: {:.3f} ms\n", passes::name(program), 1e3 * total));
    for (const auto& [op, figures] : by_op)
      sink.write_message(
          fmt::format("  {:<20}{:>6} times{:>10.3f} ms\n", op, figures.first, 1e3 * figures.second));
  }
}

}  // namespace plimsoll::generate
