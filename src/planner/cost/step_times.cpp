#include "planner/cost/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plimsoll::planner {
namespace {

constexpr size_t kMostKinds = 1000;
constexpr double kMostSeconds = 1e9;
/// Less of a step's time says nothing of a kind.
constexpr double kLeastShare = 1e-4;
/// A kind that makes up less of the difference is not its reason.
constexpr double kReason = 0.3;

Error bad_measurement(const std::string& what) { return {ErrorCode::kBadData, "no measured step: " + what}; }

std::string text_of(const io::Tree& map, std::string_view key) {
  const io::Tree* t = map.find(key);
  return t != nullptr && t->kind == io::Tree::Kind::kString && t->text.size() < 200 ? t->text : "";
}

/// Negative where there is no such number.
double seconds_of(const io::Tree& map, std::string_view key) {
  const io::Tree* t = map.find(key);
  const bool is_number =
      t != nullptr && (t->kind == io::Tree::Kind::kNumber || t->kind == io::Tree::Kind::kInteger);
  return is_number && t->number >= 0 && t->number <= kMostSeconds ? t->number : -1;
}

std::string seconds_text(double seconds) {
  return seconds < 0.1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
}

}  // namespace

void StepTimes::add(std::string_view kind, ProductType type, double took, double expected) {
  auto at = std::ranges::find_if(ops, [&](const OpSeconds& o) { return o.type == type && o.kind == kind; });
  if (at == ops.end()) at = ops.insert(at, {.kind = std::string(kind), .type = type});
  ++at->calls;
  at->seconds += took;
  at->estimated += expected;
}

std::string profile_identity(const MachineProfile& profile) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: for telling apart, not against forgery
  for (const char c : profile_json(profile)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return fmt::format("{:016x}", hash);
}

io::Tree step_times_event(const StepTimes& times) {
  io::Tree ops = io::Tree::list();
  for (const OpSeconds& o : times.ops)
    ops.items.push_back(io::Tree::map({{"op", io::Tree::of(o.kind)},
                                       {"type", io::Tree::of(std::string(name(o.type)))},
                                       {"calls", io::Tree::of(o.calls)},
                                       {"seconds", io::Tree::of(o.seconds)},
                                       {"seconds_estimated", io::Tree::of(o.estimated)}}));
  return io::Tree::map({{"event", io::Tree::of(std::string("estimate"))},
                        {"machine", io::Tree::of(times.machine)},
                        {"profile", io::Tree::of(times.profile)},
                        {"threads", io::Tree::of(times.threads)},
                        {"seconds", io::Tree::of(times.seconds)},
                        {"seconds_estimated", io::Tree::of(times.estimated)},
                        {"ops", std::move(ops)}});
}

Result<StepTimes> parse_step_times(const io::Tree& event) {
  if (text_of(event, "event") != "estimate") return bad_measurement("it is no \"estimate\" event");
  StepTimes times{.machine = text_of(event, "machine"),
                  .profile = text_of(event, "profile"),
                  .seconds = seconds_of(event, "seconds"),
                  .estimated = seconds_of(event, "seconds_estimated")};
  const io::Tree *ops = event.find("ops"), *threads = event.find("threads");
  if (threads == nullptr || threads->kind != io::Tree::Kind::kInteger)
    return bad_measurement("threads is missing");
  times.threads = threads->integer;
  if (const io::Tree* profile = event.find("profile"); profile != nullptr && profile->text.empty())
    return bad_measurement("its estimates did not use a calibrated profile; 'plimsoll calibrate' makes one");
  if (times.machine.empty() || times.profile.empty() || times.seconds < 0 || times.estimated < 0)
    return bad_measurement("machine, profile, seconds or seconds_estimated is missing or damaged");
  if (ops == nullptr || ops->kind != io::Tree::Kind::kList || ops->items.size() > kMostKinds)
    return bad_measurement("ops is no list, or too long");
  for (const io::Tree& item : ops->items) {
    const auto type = parse_product_type(text_of(item, "type"));
    const io::Tree* calls = item.find("calls");
    OpSeconds op{.kind = text_of(item, "op"),
                 .seconds = seconds_of(item, "seconds"),
                 .estimated = seconds_of(item, "seconds_estimated")};
    if (!type || op.kind.empty() || op.seconds < 0 || op.estimated < 0 || calls == nullptr ||
        calls->kind != io::Tree::Kind::kInteger || calls->integer < 0)
      return bad_measurement("an op is damaged");
    op.type = *type, op.calls = calls->integer;
    times.ops.push_back(std::move(op));
  }
  return times;
}

std::string difference_text(const StepTimes& times) {
  if (times.estimated <= 0 || times.seconds <= 0) return "";
  const double more = times.seconds / times.estimated - 1;
  if (std::abs(more) <= kNoticedDifference) return "";
  std::string text =
      fmt::format("a step takes {}, {:.0f} % {} than the {} of the plan", seconds_text(times.seconds),
                  100 * std::abs(more), more > 0 ? "more" : "less", seconds_text(times.estimated));
  const double sign = more > 0 ? 1 : -1;
  const auto off = [&](const OpSeconds& o) { return sign * (o.seconds - o.estimated); };
  const auto most = std::ranges::max_element(times.ops, {}, off);
  if (most == times.ops.end() || off(*most) < kReason * std::abs(times.seconds - times.estimated))
    return text + "; no kind of op stands out: other processes and the data count, too";
  return text + fmt::format("; most of it is {} in {}: {} instead of {}. 'plimsoll calibrate' measures again",
                            most->kind, name(most->type), seconds_text(most->seconds),
                            seconds_text(most->estimated));
}

Result<MachineProfile> with_measured(MachineProfile profile, std::span<const StepTimes> runs) {
  StepTimes all;
  for (const StepTimes& run : runs) {
    if (run.machine != profile.name)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("it ran on {}, the profile is of {}", run.machine, profile.name)};
    if (run.profile != profile_identity(profile))
      return Error{ErrorCode::kInvalidArgument, "its estimates used another profile than the one in use", "",
                   "run it again with this profile; give several runs in one call: --from A --from B"};
    if (run.threads != profile.threads)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("it ran on {} threads, the profile is of {}", run.threads, profile.threads)};
    for (const OpSeconds& o : run.ops)
      if (o.seconds > kLeastShare * run.seconds && o.estimated > 0)
        all.add(o.kind, o.type, o.seconds, o.estimated);
  }
  for (const OpSeconds& o : all.ops) {
    auto at = std::ranges::find_if(profile.factors,
                                   [&](const OpFactor& f) { return f.type == o.type && f.kind == o.kind; });
    if (at == profile.factors.end()) at = profile.factors.insert(at, {.kind = o.kind, .type = o.type});
    at->factor = std::clamp(at->factor * o.seconds / o.estimated, kLeastFactor, 1 / kLeastFactor);
  }
  return profile;
}

}  // namespace plimsoll::planner
