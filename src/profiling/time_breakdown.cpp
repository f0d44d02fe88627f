// Time is put down where it was measured first - ops by what they are, the host's spans, waits - and then
// moved to where it was lost: what a product takes beyond the best rate, what others took of the CPUs, what
// went to tokens of padding, what CPUs that were not asked would have done.
#include "profiling/time_breakdown.h"

#include <algorithm>
#include <limits>

#include "checkpoints/checkpoint_writer.h"

namespace plimsoll::profiling {
namespace {

/// Operations a byte from which an op is bound by arithmetic on processors of today.
constexpr double kIntense = 8;
/// Below this share of the best rate a product's shape is held to be at fault.
constexpr double kSlowShare = 0.5;
/// Products of fewer rows than this are bound by reading their weights.
constexpr int64_t kFewRowsMost = 64;
/// Waits that fall to this share of the first are those of a cold cache.
constexpr double kWarmShare = 0.25;
/// The last quarter of the steps, and no fewer than these, says what is left of waits.
constexpr size_t kFewestLate = 2;
/// Bytes a token from which a step's data came from storage and not from a cache.
constexpr double kReadBytesPerToken = 1;

using Seconds = std::array<double, kPlaces>;
/// Where kernels compute: what a padded token, or a thread more, has a part in.
constexpr Place kKernelPlaces[] = {kFewRows, kBelowRate, kProducts, kMemoryBound, kRecompute};

bool is_intense(const OpFacts& f) { return f.flops > 0 && f.flops >= kIntense * f.bytes; }
bool has_small_m(const OpFacts& f) { return f.is_product && f.rows < kFewRowsMost && !is_intense(f); }

Place place_of(const OpFacts& f) {
  if (f.copies) return kCopies;
  if (f.updates) return kOptimizer;
  if (f.recomputed) return kRecompute;
  return is_intense(f) || has_small_m(f) ? kProducts : kMemoryBound;
}

/// An op's runs over all steps.
struct OpSums {
  double seconds = 0, flops = 0;
  double idle = 0;   ///< of the seconds, that the mean of its threads did nothing while one computed
  double issue = 0;  ///< of the seconds, that none of its threads computed
  double rate = 0;   ///< operations a second of the quickest run: others may have been held up
  [[nodiscard]] double worked() const { return seconds - idle - issue; }
  void add(const OpRun& run, double op_flops) {
    double threads_idle = 0, none_works = 0;
    if (run.mean_seconds > 0) {
      const double busiest = std::min(run.busiest_seconds, run.seconds);
      threads_idle = std::max(0.0, busiest - run.mean_seconds);
      none_works = run.seconds - busiest;
    }
    seconds += run.seconds;
    flops += op_flops;
    idle += threads_idle;
    issue += none_works;
    const double took = run.seconds - threads_idle - none_works;
    if (took > 0) rate = std::max(rate, op_flops / took);
  }
};

std::vector<OpSums> sums_of(const Profile& profile) {
  std::vector<OpSums> sums(profile.facts.size());
  for (const ProfiledStep& step : profile.steps)
    for (const OpRun& run : step.ops) sums[run.op].add(run, profile.facts[run.op].flops);
  return sums;
}

/// Of large products, in operations a second: the best of the run; the machine's, where that was measured
/// or no product of the run has a shape for it.
double best_rate(const Profile& profile, const std::vector<OpSums>& sums) {
  double run = 0, machine = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const OpFacts& f = profile.facts[i];
    if (place_of(f) != kProducts || !f.is_product) continue;
    if (!has_small_m(f)) run = std::max(run, sums[i].rate);
    if (f.peak_seconds > 0) machine = std::max(machine, f.flops / f.peak_seconds);
  }
  return run > 0 && profile.rates == "uncalibrated" ? run : std::max(run, machine);
}

/// Puts each op's seconds where they belong.
void add_ops(const Profile& profile, TimeBreakdown& to) {
  const std::vector<OpSums> sums = sums_of(profile);
  const double best = best_rate(profile, sums);
  Seconds& seconds = to.seconds;
  double most_lost = 0, most_idle = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const OpFacts& f = profile.facts[i];
    const OpSums& sum = sums[i];
    const Place place = place_of(f);
    seconds[place] += sum.worked();
    seconds[kIdle] += sum.idle;
    seconds[kHostWork] += sum.issue;
    if (sum.idle > most_idle) {
      most_idle = sum.idle;
      to.idle_op = f.op;
    }
    const bool small_m = has_small_m(f);
    if (place != kProducts || !f.is_product || (!small_m && sum.rate >= kSlowShare * best)) continue;
    const double lost = std::max(0.0, sum.worked() - (best > 0 ? sum.flops / best : 0));
    seconds[kProducts] -= lost;
    seconds[small_m ? kFewRows : kBelowRate] += lost;
    if (!small_m && lost > most_lost) {
      most_lost = lost;
      to.shapes = f.dims;
    }
  }
}

double ops_seconds(const ProfiledStep& step) {
  double sum = 0;
  for (const OpRun& run : step.ops) sum += run.seconds;
  return sum;
}

bool is_saving(const Span& span) {
  return span.lane == SpanLane::kStep && (std::string_view(span.name) == checkpoints::kSaveSpan ||
                                          std::string_view(span.name) == checkpoints::kSaveWaitSpan);
}

/// The rest of a step is the host's; what of it went to checkpoints has a name.
void add_host(const Profile& profile, Seconds& seconds) {
  for (const ProfiledStep& step : profile.steps) {
    const double rest = std::max(0.0, step.seconds - step.data_wait_seconds - ops_seconds(step));
    double saving = 0;
    for (const Span& span : step.spans)
      if (is_saving(span)) saving += span.end - span.start;
    saving = std::min(saving, rest);
    seconds[kCheckpoints] += saving;
    seconds[kHostWork] += rest - saving;
  }
}

/// What who waits for data waits for, but for a cold cache: the longest part of loading images; of other data
/// storage where enough was read from there.
Place data_place(const Profile& profile) {
  images::LoadTimes loading;
  double read = 0, tokens = 0;
  for (const ProfiledStep& step : profile.steps) {
    loading.add(step.images);
    read += static_cast<double>(step.read_bytes);
    tokens += static_cast<double>(step.units);
  }
  if (loading.total() <= 0) return read > 0 && read >= kReadBytesPerToken * tokens ? kStorage : kPrepare;
  switch (loading.longest()) {
    case images::LoadPart::kReading:
      return kStorage;
    case images::LoadPart::kDecoding:
      return kDecoding;
    case images::LoadPart::kAugmenting:
      break;
  }
  return kAugmenting;
}

/// What the waits of the last steps do not have is a cold cache's; the rest is storage's where it was read.
void add_data_waits(const Profile& profile, Seconds& seconds) {
  const size_t steps = profile.steps.size(), num_late = std::max(std::min(kFewestLate, steps), steps / 4);
  std::vector<double> late;
  double all = 0;
  for (size_t i = 0; i < steps; ++i) {
    const ProfiledStep& step = profile.steps[i];
    if (i + num_late >= steps) late.push_back(step.data_wait_seconds);
    all += step.data_wait_seconds;
  }
  std::sort(late.begin(), late.end());
  const double steady = late.empty() ? 0 : late[late.size() / 2];
  for (size_t i = 0; i + num_late < steps; ++i) {
    const double wait = profile.steps[i].data_wait_seconds;
    if (steady <= kWarmShare * wait) seconds[kCold] += wait - steady;
  }
  seconds[data_place(profile)] += all - seconds[kCold];
}

/// Op by op, copies show all of their time. As much as kernels take is hidden behind them at best.
void hide_copies(Seconds& seconds) {
  double kernels = 0;
  for (const Place p : {kFewRows, kBelowRate, kOptimizer, kRecompute, kProducts, kMemoryBound})
    kernels += seconds[p];
  const double hidden = std::min(kernels, seconds[kCopies]);
  seconds[kCopies] -= hidden;
  seconds[kHiddenCopies] += hidden;
}

/// Moves `share` of what stands at `from` to `to`.
void move_share(Seconds& seconds, Place from, Place to, double share) {
  const double moved = share * seconds[from];
  seconds[from] -= moved;
  seconds[to] += moved;
}

/// Of what was taken, what the process's own threads had: those that load, those that save.
void move_own(const Profile& profile, double taken, Seconds& seconds) {
  double loading = 0, saving = 0;
  for (const ProfiledStep& step : profile.steps) {
    const double had = step.loading_seconds + step.saving_seconds;
    if (had <= 0) continue;
    const double part = std::min(1.0, step.taken_seconds / had);
    loading += part * step.loading_seconds;
    saving += part * step.saving_seconds;
  }
  if (taken <= 0) return;
  const double all = seconds[kTaken];
  const Place loads = data_place(profile);
  for (const auto& [place, own] :
       {std::pair(loads == kStorage ? kPrepare : loads, loading), std::pair(kCheckpoints, saving)}) {
    const double moved = own / taken * all;
    seconds[kTaken] -= moved;
    seconds[place] += moved;
  }
}

/// A thread that is kept from running is so in whatever it does; only waiting is none of it. What the others
/// do meanwhile, waiting for its part of an op, comes first.
void move_taken(const Profile& profile, Seconds& seconds) {
  double taken = 0;
  for (const ProfiledStep& step : profile.steps) taken += step.taken_seconds;
  const double waited_for = std::min(taken, seconds[kIdle]);
  seconds[kIdle] -= waited_for;
  seconds[kTaken] += waited_for;
  double busy = 0;
  for (size_t p = kHostWork; p < kPlaces; ++p) busy += seconds[p];
  const double share = busy > 0 ? std::clamp((taken - waited_for) / busy, 0.0, 1.0) : 0;
  for (size_t p = kHostWork; p < kPlaces; ++p) move_share(seconds, static_cast<Place>(p), kTaken, share);
  move_own(profile, taken, seconds);
}

/// Of a padded batch that share of all work which grows with the tokens.
void move_padding(const Profile& profile, Seconds& seconds) {
  double tokens = 0;
  for (const ProfiledStep& step : profile.steps) tokens += static_cast<double>(step.units);
  const double computed =
      static_cast<double>(profile.padded_units) * static_cast<double>(profile.steps.size());
  const double share = computed > tokens ? 1 - tokens / computed : 0;
  for (const Place p : kKernelPlaces) move_share(seconds, p, kPadding, share);
}

/// CPUs that no thread of the run was made for, and that nobody else used: what they would have had of the
/// kernels' work.
void move_to_idle_cpus(const Profile& profile, TimeBreakdown& places) {
  const int spare = profile.num_cpus - profile.num_threads;
  if (profile.num_threads <= 0 || spare <= 0 || profile.steps.empty()) return;
  double idle = 0, total = 0;
  for (const ProfiledStep& step : profile.steps) idle += step.idle_cpus * step.seconds, total += step.seconds;
  if (total <= 0) return;
  places.idle_cpus = std::clamp(idle / total, 0.0, static_cast<double>(spare));
  const double share = places.idle_cpus / (profile.num_threads + places.idle_cpus);
  for (const Place p : kKernelPlaces) move_share(places.seconds, p, kFewThreads, share);
  move_share(places.seconds, kOptimizer, kFewThreads, share);
}

}  // namespace

TimeBreakdown places_of(const Profile& profile) {
  TimeBreakdown places;
  add_ops(profile, places);
  hide_copies(places.seconds);
  add_host(profile, places.seconds);
  add_data_waits(profile, places.seconds);
  move_taken(profile, places.seconds);
  move_padding(profile, places.seconds);
  move_to_idle_cpus(profile, places);
  return places;
}

}  // namespace plimsoll::profiling
