// The verdict on a profile: of measured parts alone, so that each bottleneck can be planted in a test.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/profile.h"

namespace plimsoll::train {
namespace {

/// Operations a byte from which an op is bound by arithmetic on processors of today.
constexpr double kIntense = 8;
/// Below this share of the run's best rate a product's shape is held to be at fault.
constexpr double kSlowShare = 0.5;
/// Products of fewer rows than this are bound by reading their weights.
constexpr int64_t kFewRowsMost = 64;
/// Waits that fall to this share of the first are those of a cold cache.
constexpr double kWarmShare = 0.25;
/// Bytes a token from which a step's data came from storage and not from a cache.
constexpr double kReadBytesPerToken = 1;

enum Place : uint8_t {
  kStorage,
  kCold,
  kPrepare,
  kTaken,
  kIdle,
  kHostWork,
  kCopies,
  kFewRows,
  kBelowRate,
  kProducts,
  kSweeps,
  kOptimizer,
  kRecompute,
  kPadding,
  kPlaces
};
using PlaceSeconds = std::array<double, kPlaces>;

constexpr std::pair<const char*, const char*> kFindings[kPlaces] = {
    {"waiting for data: storage", "data.prefetch_factor=8 reads further ahead; else a faster disk"},
    {"waiting for data: cold cache", "--warmup 5 passes over it; data.cache_dir=DIR keeps what was prepared"},
    {"waiting for data: preparing it", "data.num_workers=4, or plimsoll data tokenize ahead of the run"},
    {"CPUs taken by others", "runtime.threads=1 leaves them one, or let nothing run beside it"},
    {"threads idle", "a larger training.micro_batch_size gives each op's threads more to share"},
    {"host work between ops", "a larger training.micro_batch_size has fewer, larger ops"},
    {"copies between memories", "memory.offload=none keeps tensors where they are used"},
    {"products of too few rows", "a larger training.micro_batch_size reads weights once for more rows"},
    {"products below their rate", "data.sequence_length in multiples of 64"},
    {"matrix products and attention", "training.precision=bf16 where the processor has instructions for it"},
    {"sweeps over memory", "training.precision=bf16 halves what products read and write"},
    {"optimizer", "a larger training.global_batch_size: the update is once a step, whatever the batch"},
    {"recompute", "memory.recompute=none, where memory.budget has room for it"},
    {"padding", "data.packing=best_fit, or data.buckets=8"}};

bool is_linear(const OpFacts& f) { return f.op.starts_with("linear"); }
bool is_intense(const OpFacts& f) { return f.flops > 0 && f.flops >= kIntense * f.bytes; }

Place place_of(const OpFacts& f) {
  if (f.copies) return kCopies;
  if (f.updates) return kOptimizer;
  if (f.recomputed) return kRecompute;
  if (is_intense(f)) return kProducts;
  return is_linear(f) && f.rows < kFewRowsMost ? kFewRows : kSweeps;
}

/// Seconds and operations of each op's runs over all steps.
struct OpSums {
  double seconds = 0, flops = 0;
  double idle = 0;   ///< of the seconds, that the mean of its threads did nothing while one computed
  double issue = 0;  ///< of the seconds, that none of its threads computed
  [[nodiscard]] double rate() const { return seconds > 0 ? flops / seconds : 0; }
};

std::vector<OpSums> sums_of(const Profile& profile) {
  std::vector<OpSums> sums(profile.facts.size());
  for (const ProfiledStep& step : profile.steps)
    for (const OpRun& run : step.ops) {
      sums[run.op].seconds += run.seconds;
      sums[run.op].flops += profile.facts[run.op].flops;
      if (run.mean_seconds <= 0) continue;
      const double busiest = std::min(run.busiest_seconds, run.seconds);
      sums[run.op].idle += std::max(0.0, busiest - run.mean_seconds);
      sums[run.op].issue += run.seconds - busiest;
    }
  return sums;
}

/// What a hint names.
struct Named {
  std::string shapes;  ///< the inputs of the product that lost most to them
  std::string idle;    ///< the op with whose threads most was idle
};

/// Puts each op's seconds where they belong.
Named add_ops(const Profile& profile, PlaceSeconds& seconds) {
  const std::vector<OpSums> sums = sums_of(profile);
  double best = 0, most = 0, most_idle = 0;
  for (size_t i = 0; i < sums.size(); ++i)
    if (place_of(profile.facts[i]) == kProducts && is_linear(profile.facts[i]))
      best = std::max(best, sums[i].rate());
  Named named;
  for (size_t i = 0; i < sums.size(); ++i) {
    const OpFacts& f = profile.facts[i];
    const Place place = place_of(f);
    const double worked = sums[i].seconds - sums[i].idle - sums[i].issue;
    seconds[place] += worked, seconds[kIdle] += sums[i].idle, seconds[kHostWork] += sums[i].issue;
    if (sums[i].idle > most_idle) most_idle = sums[i].idle, named.idle = f.op;
    if (place != kProducts || !is_linear(f) || sums[i].rate() >= kSlowShare * best) continue;
    const double lost = std::max(0.0, worked - sums[i].flops / best);
    seconds[kProducts] -= lost, seconds[kBelowRate] += lost;
    if (lost > most) most = lost, named.shapes = f.dims;
  }
  return named;
}

/// What the waits of later steps do not have is a cold cache's; the rest is storage's where it was read.
void add_data_waits(const Profile& profile, PlaceSeconds& seconds) {
  std::vector<double> late;
  double read = 0, tokens = 0, all = 0;
  const size_t half = profile.steps.size() / 2;
  for (size_t i = 0; i < profile.steps.size(); ++i) {
    const ProfiledStep& step = profile.steps[i];
    if (i >= half) late.push_back(step.data_wait_seconds);
    all += step.data_wait_seconds;
    read += static_cast<double>(step.read_bytes), tokens += static_cast<double>(step.tokens);
  }
  std::sort(late.begin(), late.end());
  const double steady = late.empty() ? 0 : late[late.size() / 2];
  for (size_t i = 0; i < half; ++i) {
    const double wait = profile.steps[i].data_wait_seconds;
    if (steady <= kWarmShare * wait) seconds[kCold] += wait - steady;
  }
  seconds[read > 0 && read >= kReadBytesPerToken * tokens ? kStorage : kPrepare] += all - seconds[kCold];
}

/// Moves `share` of what stands at `from` to `to`.
void move_share(PlaceSeconds& seconds, Place from, Place to, double share) {
  const double moved = share * seconds[from];
  seconds[from] -= moved, seconds[to] += moved;
}

/// A thread that is kept from running is so in whatever it does; only waiting for data is none of it. What
/// the others do meanwhile, waiting for its part of an op, comes first.
void move_taken(double taken, PlaceSeconds& seconds) {
  const double waited_for = std::min(taken, seconds[kIdle]);
  seconds[kIdle] -= waited_for, seconds[kTaken] += waited_for, taken -= waited_for;
  double busy = 0;
  for (size_t p = kHostWork; p < kPlaces; ++p) busy += seconds[p];
  if (busy <= 0) return;
  const double share = std::clamp(taken / busy, 0.0, 1.0);
  for (size_t p = kHostWork; p < kPlaces; ++p) move_share(seconds, static_cast<Place>(p), kTaken, share);
}

/// Of a padded batch that share of all work which grows with the tokens.
void move_padding(const Profile& profile, double tokens, PlaceSeconds& seconds) {
  const double computed =
      static_cast<double>(profile.padded_tokens) * static_cast<double>(profile.steps.size());
  const double share = computed > tokens ? 1 - tokens / computed : 0;
  for (const Place p : {kFewRows, kBelowRate, kProducts, kSweeps, kRecompute})
    move_share(seconds, p, kPadding, share);
}

}  // namespace

std::vector<Finding> verdict_of(const Profile& profile) {
  PlaceSeconds seconds = {};
  const Named named = add_ops(profile, seconds);
  double total = 0, tokens = 0, taken = 0;
  for (const ProfiledStep& step : profile.steps) {
    double ops = 0;
    for (const OpRun& run : step.ops) ops += run.seconds;
    total += step.seconds, tokens += static_cast<double>(step.tokens), taken += step.taken_seconds;
    seconds[kHostWork] += std::max(0.0, step.seconds - step.data_wait_seconds - ops);
  }
  add_data_waits(profile, seconds);
  move_taken(taken, seconds);
  move_padding(profile, tokens, seconds);
  const auto steps = static_cast<double>(std::max<size_t>(1, profile.steps.size()));
  std::vector<Finding> findings;
  for (size_t p = 0; p < kPlaces; ++p) {
    if (seconds[p] <= 0) continue;
    findings.push_back({kFindings[p].first, seconds[p] / steps, seconds[p] / total, kFindings[p].second});
    if (p == kBelowRate) findings.back().hint += fmt::format("; most is lost in {}", named.shapes);
    if (p == kIdle) findings.back().hint += fmt::format("; most are in {}", named.idle);
  }
  std::sort(findings.begin(), findings.end(),
            [](const Finding& a, const Finding& b) { return a.seconds > b.seconds; });
  return findings;
}

}  // namespace plimsoll::train
