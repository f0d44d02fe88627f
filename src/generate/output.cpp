#include "generate/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/terminal.h"
#include "base/units.h"
#include "io/tree.h"

namespace plimsoll::generate {
namespace {

Tree text_node(std::string_view text) { return Tree::of(std::string(text)); }

Tree id_list(std::span<const int32_t> ids) {
  std::vector<Tree> items;
  for (const int32_t id : ids) items.push_back(Tree::of(static_cast<int64_t>(id)));
  return Tree::list(std::move(items));
}

void print_line(const Tree& event) {
  const std::string line = to_json(event) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fflush(stdout);
}

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
  if (prompt.text.empty()) return fmt::format("{} ids", prompt.ids.size());
  size_t end = std::min(prompt.text.find('\n'), prompt.text.size());
  const bool cut = end > kMost || end < prompt.text.size();
  end = std::min(end, kMost);
  while (end > 0 && end < prompt.text.size() && (static_cast<unsigned char>(prompt.text[end]) & 0xC0) == 0x80)
    --end;
  return prompt.text.substr(0, end) + (cut ? "…" : "");
}

}  // namespace

Output::Output(const TextCodec& codec, const std::vector<Prompt>& prompts, Options options)
    : codec_(codec), prompts_(prompts), options_(options) {}

void Output::plan(const planner::PlanReport& r) const {
  if (options_.json) return print_line(planner::plan_event(r));
  const auto shown_bytes = [&](std::string_view name) { return to_string(Bytes(class_bytes(r, name))); };
  const std::string line = fmt::format(
      "plan: {} of {}: parameters {}, cache {}, activations {}, host {}, process {}",
      to_string(Bytes(r.process_peak_bytes())), to_string(Bytes(r.budget_bytes)), shown_bytes("parameters"),
      shown_bytes("kv_cache"), shown_bytes("activations"),
      to_string(Bytes(r.host_pinned_bytes + r.host_pageable_bytes)), to_string(Bytes(r.overhead_bytes)));
  print_message(line);
}

void Output::write(const std::string& text) {
  if (text.empty()) return;
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  line_open_ = text.back() != '\n';
}

void Output::header(size_t index) const {
  if (prompts_.size() == 1) return;
  fmt::print("{}==> {}: {} <==\n", index > 0 ? "\n" : "", index + 1, shown(prompts_[index]));
}

void Output::begin_batch(size_t size) {
  streaming_ = options_.stream && !options_.json && size == 1;
  stream_.reset();
}

void Output::token(const Sequence& sequence, int32_t id) {
  if (!streaming_) return;
  if (!stream_) {
    header(sequence.index);
    stream_.emplace(codec_);
  }
  write(id >= 0 ? stream_->push(id) : stream_->finish());
}

void Output::print_text(const Sequence& sequence) {
  header(sequence.index);
  TextCodec::Stream stream(codec_);
  std::string text;
  for (const int32_t id : sequence.new_ids()) text += stream.push(id);
  write(text + stream.finish());
}

void Output::print_json(const Sequence& s) const {
  const Prompt& prompt = prompts_[s.index];
  print_line(
      Tree::map({{"event", text_node("generation")},
                 {"index", Tree::of(static_cast<int64_t>(s.index))},
                 {"prompt", codec_.has_text() && !prompt.text.empty() ? text_node(prompt.text)
                                                                      : text_node(codec_.decode(prompt.ids))},
                 {"prompt_tokens", Tree::of(s.prompt_tokens)},
                 {"ids", id_list(s.new_ids())},
                 {"text", text_node(codec_.decode(s.new_ids()))},
                 {"new_tokens", Tree::of(static_cast<int64_t>(s.new_ids().size()))},
                 {"finish_reason", text_node(name(s.finish))}}));
}

void Output::end_batch(std::span<const Sequence> sequences) {
  for (const Sequence& s : sequences) {
    if (options_.json)
      print_json(s);
    else if (!streaming_)
      print_text(s);
    if (line_open_) write("\n");
  }
}

void Output::summary(const GenerationSummary& s) const {
  const double prefill = rate(s.rates.prefill_tokens, s.rates.prefill_seconds),
               decode = rate(s.rates.new_tokens, s.rates.decode_seconds);
  if (options_.json)
    return print_line(
        Tree::map({{"event", text_node("summary")},
                   {"prompts", Tree::of(s.prompts)},
                   {"prompt_tokens", Tree::of(s.rates.prompt_tokens)},
                   {"new_tokens", Tree::of(s.rates.new_tokens)},
                   {"seconds", Tree::of(s.seconds)},
                   {"startup_seconds", Tree::of(s.startup_seconds)},
                   {"first_token_seconds", Tree::of(s.rates.first_token_seconds)},
                   {"prefill_tokens_per_second", Tree::of(prefill)},
                   {"decode_tokens_per_second", Tree::of(decode)},
                   {"planned_peak_bytes", Tree::of(s.planned_peak_bytes)},
                   {"measured_peak_bytes", Tree::of(s.measured_peak_bytes)},
                   {"allocations_after_first_token", Tree::of(s.rates.allocations_after_first_token)}}));
  const std::string line = fmt::format(
      "{} new tokens in {:.2f} s: prefill {:.0f} tok/s, decode {:.1f} tok/s; first token after {:.2f} s, "
      "start-up {:.2f} s; peak {} of {} planned",
      s.rates.new_tokens, s.seconds, prefill, decode, s.rates.first_token_seconds, s.startup_seconds,
      to_string(Bytes(s.measured_peak_bytes)), to_string(Bytes(s.planned_peak_bytes)));
  print_message(line);
}

}  // namespace plimsoll::generate
