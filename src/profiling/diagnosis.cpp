// The verdict on a profile: of measured parts alone, so that each bottleneck can be planted in a test.
#include "profiling/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "profiling/time_breakdown.h"

namespace plimsoll::profiling {
namespace {

constexpr std::string_view kKindNames[] = {"loss", "work", "small loss"};
/// From which gain bf16 is worth its rounding.
constexpr double kWorthwhileGain = 1.1;

constexpr std::pair<const char*, const char*> kFindings[kPlaces] = {
    {"waiting for data: storage", "data.prefetch_factor=8 reads further ahead; else a faster disk"},
    {"waiting for data: cold cache", "--warmup 5 skips it; data.cache_dir=DIR keeps prepared data"},
    {"waiting for data: preparing it", "data.num_workers=4, or plimsoll data tokenize ahead of the run"},
    {"waiting for data: decoding images",
     "data.images.cache=u8 keeps decoded images, data.num_workers=4 decodes on more threads"},
    {"waiting for data: augmenting images", "data.num_workers=4, or less of data.images.augment"},
    {"waiting for checkpoints", "a larger output.save_steps, or a faster disk under output.dir"},
    {"CPUs taken by others", "runtime.threads=1 leaves them one, or let nothing else run"},
    {"threads idle", "a larger training.micro_batch_size gives the threads of each op more work"},
    {"host work between ops", "a larger training.micro_batch_size has fewer, larger ops"},
    {"copies that kernels cannot hide", "memory.offload=none keeps tensors where they are used"},
    {"products with too few rows", "a larger training.micro_batch_size reads weights once for more rows"},
    {"products below their rate", "sizes that are multiples of 64"},
    {"CPUs without a thread", ""},
    {"optimizer", "a larger training.global_batch_size: the update is once a step, whatever the batch"},
    {"recompute", "memory.recompute=none, where memory.budget has room for it"},
    {"padding", "data.packing=best_fit, or data.buckets=8"},
    {"matrix products and attention", "at the best rate of this run"},
    {"memory-bound ops", "at the memory bandwidth"},
    {"copies overlapped with kernels",
     "without timing they overlap with kernels as far as their order allows"}};

std::string hint_of(Place place, const Profile& profile, const TimeBreakdown& places) {
  const std::string hint = kFindings[place].second;
  const bool bf16_helps = profile.bf16_gain >= kWorthwhileGain;
  switch (place) {
    case kBelowRate:
      return fmt::format("{}; most is lost in {}", hint, places.shapes);
    case kIdle:
      return fmt::format("{}; most are in {}", hint, places.idle_op);
    case kFewThreads:
      return fmt::format("runtime.threads={}: {:.1f} of them had nothing to do", profile.num_cpus,
                         places.idle_cpus);
    case kProducts:
      return bf16_helps ? fmt::format("{}; the rate of training.precision=bf16 is {:.1f} times as high", hint,
                                      profile.bf16_gain)
                        : hint;
    case kMemoryBound:
      return bf16_helps ? hint + "; training.precision=bf16 halves what most of them read and write" : hint;
    default:
      return hint;
  }
}

}  // namespace

std::string_view name(FindingKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::vector<Finding> diagnose(const Profile& profile) {
  const TimeBreakdown places = places_of(profile);
  double total = 0;
  for (const ProfiledStep& step : profile.steps) total += step.seconds;
  const auto steps = static_cast<double>(std::max<size_t>(1, profile.steps.size()));
  std::vector<Finding> findings;
  for (size_t p = 0; p < kPlaces; ++p) {
    const auto place = static_cast<Place>(p);
    if (places.seconds[p] <= 0) continue;
    const double share = places.seconds[p] / total;
    const FindingKind kind = is_work(place)        ? FindingKind::kWork
                             : share >= kSmallLoss ? FindingKind::kLoss
                                                   : FindingKind::kSmallLoss;
    findings.push_back(
        {kFindings[p].first, kind, places.seconds[p] / steps, share, hint_of(place, profile, places)});
  }
  std::ranges::stable_sort(findings, [](const Finding& a, const Finding& b) {
    return std::tuple(a.kind, -a.seconds) < std::tuple(b.kind, -b.seconds);
  });
  return findings;
}

}  // namespace plimsoll::profiling
