#include "planner/report/why.h"

#include <fmt/format.h>

#include "base/units.h"
#include "planner/report/budget.h"

namespace plimsoll::planner {
namespace {

io::Tree alternative_event(const std::optional<Alternative>& a, bool timed) {
  if (!a) return {};
  return io::Tree::map({{"micro_batch_size", io::Tree::of(a->micro_batch_size)},
                        {"grad_accum_steps", io::Tree::of(a->grad_accum_steps)},
                        {"recompute", io::Tree::of(a->recompute)},
                        {"loss_chunk_tokens", io::Tree::of(a->loss_chunk_tokens)},
                        {"optimizer_in_backward", io::Tree::of(a->optimizer_in_backward)},
                        {"peak_bytes", io::Tree::of(a->peak_bytes)},
                        {"excess_bytes", io::Tree::of(a->excess_bytes)},
                        {"seconds", timed ? io::Tree::of(a->seconds) : io::Tree{}}});
}

std::string line(std::string_view name, const std::string& what, const std::string& costs) {
  return fmt::format("  {:<17}{}\n  {:<17}{}\n", name, what, "", costs);
}

}  // namespace

std::string way_text(const Alternative& a) {
  std::string text = split_text(a.micro_batch_size, a.grad_accum_steps) + ", recompute " + a.recompute;
  if (a.loss_chunk_tokens > 0) text += fmt::format(", loss by {} tokens", a.loss_chunk_tokens);
  if (a.optimizer_in_backward) text += ", optimizer in backward";
  return text;
}

Alternative alternative_of(const PlanReport& r) {
  return {r.micro_batch_size,
          r.grad_accum_steps,
          r.recompute,
          r.loss_chunk_tokens,
          r.device_in_process ? r.process_peak_bytes() : r.device_peak_bytes(),
          excess_bytes(r),
          r.seconds_estimated,
          r.optimizer_in_backward};
}

io::Tree why_event(const PlanReport& r) {
  return io::Tree::map({{"budget", io::Tree::of(r.why.budget)},
                        {"faster", alternative_event(r.why.faster, r.has_time())},
                        {"runner_up", alternative_event(r.why.runner_up, r.has_time())},
                        {"more_bytes", io::Tree::of(r.why.more_bytes)},
                        {"with_more", alternative_event(r.why.with_more, r.has_time())}});
}

std::string why_lines(const PlanReport& r) {
  if (r.why.budget.empty() || r.rates == kUnknownRates) return {};
  const Why& why = r.why;
  const auto bytes = [](int64_t n) { return to_string(Bytes(n)); };
  std::string out = "\nWhy this plan\n";
  if (why.faster)
    out += line("faster", way_text(*why.faster),
                fmt::format("about {:.3g} s, but {} over {}", why.faster->seconds,
                            bytes(why.faster->excess_bytes), why.budget));
  else
    out += "  No faster plan was found, even without a budget.\n";
  if (why.runner_up)
    out += line(
        "runner-up", way_text(*why.runner_up),
        fmt::format("about {:.3g} s, peak {}", why.runner_up->seconds, bytes(why.runner_up->peak_bytes)));
  if (why.more_bytes == 0) return out;
  const std::string name = bytes(why.more_bytes) + " more";
  if (!why.with_more) return out + fmt::format("  {:<17}would not help\n", name);
  return out + line(name, way_text(*why.with_more),
                    fmt::format("about {:.3g} s: {:.2g} s per step less ({:.1f} %)", why.with_more->seconds,
                                r.seconds_estimated - why.with_more->seconds,
                                100 * (1 - why.with_more->seconds / r.seconds_estimated)));
}

}  // namespace plimsoll::planner
