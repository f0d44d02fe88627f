#include "cli/bench/bench_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/process.h"
#include "base/resource_use.h"
#include "cli/terminal.h"
#include "corpora/images/image_list.h"
#include "images/load_times.h"
#include "io/scratch_folder.h"
#include "io/tree.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"

namespace plimsoll::cli {
namespace {

/// A step that takes longer than this waits for no loader worth measuring.
constexpr double kLongestStep = 0.05;
constexpr int kStepsWaited = 12;
/// CPU time by which a rung counts as bounded by its threads.
constexpr double kBusy = 0.75;

struct Rung {
  std::string name = {}, settings = {};
  double samples_per_second = 0, units_per_second = 0;
  std::string unit = {};  ///< of the task
  double per_core = 0;    ///< samples by second of CPU time
  double wait_seconds = 0, step_seconds = 0;
  std::string bound_by = {};
  images::LoadTimes an_image = {};  ///< in the mean, of a thread; zero where there are no images
};

/// Of this process and, where it made any, of its children.
double all_cpu_seconds() { return cpu_seconds(resource_use()) + cpu_seconds(resource_use(RUSAGE_CHILDREN)); }

void drop_from_cache(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::fsync(fd);
  (void)::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

/// The files that a list of images names.
void drop_images(const std::string& list_path) {
  const auto list = corpora::ImageList::open(list_path);
  if (!list) return;
  std::vector<std::byte> scratch(static_cast<size_t>(list->scratch_bytes()));
  std::string last;
  for (int64_t i = 0; i < list->size(); ++i) {
    const auto image = list->read(i, scratch);
    if (!image || last == image->path) continue;
    last = image->path;
    drop_from_cache(image->path);
  }
}

/// What of the files the system holds goes, as far as it is on the disk already.
void drop_from_cache(const std::vector<datasets::DataFiles>& files) {
  for (const datasets::DataFiles& source : files)
    for (const std::string& path : source.paths) {
      if (path.ends_with(".images")) drop_images(path);
      drop_from_cache(path.c_str());
    }
}

/// What bounds a rung whose threads were busy, or waited for files, with `loading` images meanwhile.
std::string bound_of(const images::LoadTimes& loading, bool is_busy, bool is_cold) {
  if (loading.total() <= 0 || (!is_busy && !is_cold))
    return is_busy ? "processor" : is_cold ? "disk" : "handing over";
  switch (loading.longest()) {
    case images::LoadPart::kReading:
      return is_cold ? "disk" : "processor";  // what is warm is copied from memory
    case images::LoadPart::kDecoding:
      return "decoding";
    case images::LoadPart::kAugmenting:
      break;
  }
  return "augmentation";
}

images::LoadTimes mean_of(const images::LoadTimes& all, double samples) {
  return {all.reading / samples, all.decoding / samples, all.augmenting / samples};
}

/// A run whose data is ready.
struct ReadyData {
  settings::RunConfig config;
  strategy::Prepared prepared;
  preprocessing::RunData files;
};

Result<std::unique_ptr<ReadyData>> make_ready(const settings::RunConfig& config) {
  const int threads = strategy::num_threads(config);
  const auto target = strategy::make_target(config, threads);
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, strategy::prepare(config, *target, {.num_threads = threads}));
  PLIMSOLL_ASSIGN(
      preprocessing::RunData files,
      preprocessing::prepare_data(config, {.vocab_size = prepared.vocab_size(), .num_threads = threads}));
  // What the data says of a plan: its labels, and what reading its largest image takes.
  if (prepared.labels)
    PLIMSOLL_TRY(strategy::prepare_after_data(config, *target, {.num_threads = threads}, files, prepared));
  return std::unique_ptr<ReadyData>(new ReadyData{config, std::move(prepared), std::move(files)});
}

struct How {
  int workers = 1;
  int64_t prefetch = 1;
  bool cold = false, kept = false;
};

constexpr int64_t kAllOfIt = int64_t{1} << 50;

/// Reads for so long as fast as it comes, then at the pace of a step.
Result<Rung> climb(const ReadyData& ready, const How& how, double seconds) {
  if (how.cold) drop_from_cache(ready.files.train);
  datasets::TrainingDataOptions data_options =
      strategy::data_options(ready.config, ready.prepared, ready.files, /*eval=*/false);
  if (how.kept) data_options.kept_bytes = kAllOfIt;
  PLIMSOLL_ASSIGN(const datasets::TrainingData data,
                  datasets::TrainingData::open(ready.files.train, data_options));
  datasets::LoaderOptions options = ready.prepared.loader;
  options.num_threads = how.workers;
  options.prefetch = how.prefetch;
  options.grows = false;
  Rung rung;
  if (how.kept) rung.settings = fmt::format("data.keep_in_memory={}", data.kept_bytes());
  rung.step_seconds = std::min(kLongestStep, ready.prepared.report.seconds_estimated);
  int64_t batches = 0, units = 0, next = 0;
  double wall = 0, cpu = 0;
  images::LoadTimes loading;
  {
    const double cpu_before = all_cpu_seconds(), start = now_seconds();
    const images::LoadTimes images_before = images::load_times();
    PLIMSOLL_ASSIGN(const auto loader, datasets::Loader::start(data, options, 0));
    while (wall < seconds || batches < 2) {
      PLIMSOLL_ASSIGN(const datasets::LoadedBatch batch, loader->next());
      units += batch.counts.units, ++batches, next += options.batch_size;
      wall = now_seconds() - start;
      if (how.cold && next >= data.num_examples()) break;  // what comes now is warm
    }
    cpu = all_cpu_seconds() - cpu_before;
    loading = images::load_times().since(images_before);
  }
  const auto samples = static_cast<double>(batches * options.batch_size);
  rung.samples_per_second = samples / wall;
  rung.units_per_second = static_cast<double>(units) / wall;
  rung.unit = ready.prepared.report.unit;
  rung.per_core = samples / std::max(cpu, 1e-6);
  rung.bound_by = bound_of(loading, cpu > kBusy * wall * how.workers, how.cold);
  rung.an_image = mean_of(loading, samples);
  PLIMSOLL_ASSIGN(const auto loader, datasets::Loader::start(data, options, next));
  for (int step = 0; step < kStepsWaited; ++step) {
    const double start = now_seconds();
    PLIMSOLL_TRY(loader->next());
    if (step > 0) rung.wait_seconds += (now_seconds() - start) / (kStepsWaited - 1);
    std::this_thread::sleep_for(std::chrono::duration<double>(rung.step_seconds));
  }
  return rung;
}

/// From the files that the run names to batches, with an empty cache: what a first run does.
Result<Rung> tokenize_on_the_way(const settings::RunConfig& config) {
  PLIMSOLL_ASSIGN(const io::ScratchFolder folder, io::ScratchFolder::create("bench-data"));
  settings::RunConfig fresh = config;
  fresh.data.cache_dir = folder.path();
  const double cpu_before = all_cpu_seconds(), start = now_seconds();
  PLIMSOLL_ASSIGN(const std::unique_ptr<ReadyData> ready, make_ready(fresh));
  PLIMSOLL_ASSIGN(
      const datasets::TrainingData data,
      datasets::TrainingData::open(ready->files.train, strategy::data_options(ready->config, ready->prepared,
                                                                              ready->files, /*eval=*/false)));
  const double wall = now_seconds() - start, cpu = all_cpu_seconds() - cpu_before;
  const auto samples = static_cast<double>(data.num_examples());
  Rung rung;
  rung.name = "prepared on the way";
  rung.samples_per_second = samples / wall;
  rung.per_core = samples / std::max(cpu, 1e-6);
  rung.units_per_second = static_cast<double>(data.num_units()) / wall;
  rung.unit = ready->prepared.report.unit;
  rung.bound_by = cpu > kBusy * wall ? "processor" : "disk";
  return rung;
}

void print_json(const Rung& r) {
  io::Tree rung = io::Tree::map({{"event", io::Tree::of(std::string("rung"))},
                                 {"name", io::Tree::of(r.name)},
                                 {"settings", io::Tree::of(r.settings)},
                                 {"samples_per_second", io::Tree::of(r.samples_per_second)},
                                 {r.unit + "_per_second", io::Tree::of(r.units_per_second)},
                                 {"samples_per_cpu_second", io::Tree::of(r.per_core)},
                                 {"wait_seconds", io::Tree::of(r.wait_seconds)},
                                 {"step_seconds", io::Tree::of(r.step_seconds)},
                                 {"bound_by", io::Tree::of(r.bound_by)}});
  if (r.an_image.total() > 0)
    rung.set("image_seconds", io::Tree::map({{"reading", io::Tree::of(r.an_image.reading)},
                                             {"decoding", io::Tree::of(r.an_image.decoding)},
                                             {"augmenting", io::Tree::of(r.an_image.augmenting)}}));
  fmt::print("{}\n", io::to_json(rung));
}

void print(const Rung& r, bool json) {
  if (json)
    print_json(r);
  else
    print_text(fmt::format("{:<22}{:>11.0f}{:>12.0f}{:>10.0f}{:>9.3f}  {}\n", r.name, r.samples_per_second,
                           r.units_per_second, r.per_core, 1e3 * r.wait_seconds, r.bound_by));
  std::fflush(stdout);
}

/// The rungs that read what is ready, by `how`.
Status climb_all(const ReadyData& ready, const BenchDataArguments& arguments, bool json) {
  images::LoadTimes an_image;
  const auto rung = [&](std::string name, const std::string& settings, const How& how) -> Status {
    PLIMSOLL_ASSIGN(Rung r, climb(ready, how, 1e-3 * static_cast<double>(arguments.milliseconds)));
    r.name = std::move(name);
    an_image = r.an_image;
    r.settings = settings + (r.settings.empty() ? "" : " ") + r.settings;
    print(r, json);
    return Ok{};
  };
  PLIMSOLL_TRY(rung("ready, cold cache", "data.num_workers=1 data.prefetch_factor=1", {1, 1, true}));
  PLIMSOLL_TRY(rung("ready, warm cache", "data.num_workers=1 data.prefetch_factor=1", {1, 1}));
  PLIMSOLL_TRY(rung("kept in memory", "data.num_workers=1 data.prefetch_factor=1",
                    {.workers = 1, .prefetch = 1, .kept = true}));
  PLIMSOLL_TRY(rung("by the step itself", "data.num_workers=0", {.workers = 0}));
  PLIMSOLL_TRY(rung("and in memory", "data.num_workers=0", {.workers = 0, .kept = true}));
  for (const int64_t prefetch : {2, 4})
    PLIMSOLL_TRY(rung(fmt::format("prefetch {}", prefetch),
                      fmt::format("data.num_workers=1 data.prefetch_factor={}", prefetch), {1, prefetch}));
  const int most = std::max(2, strategy::num_threads(ready.config));
  for (int workers = 2; workers <= most; workers *= 2)
    PLIMSOLL_TRY(rung(fmt::format("workers {}", workers),
                      fmt::format("data.num_workers={} data.prefetch_factor=4", workers),
                      {workers, std::max<int64_t>(4, workers)}));
  if (an_image.total() > 0 && !json)
    print_text(
        fmt::format("an image takes a thread {:.3f} ms to read, {:.3f} ms to decode and resize, {:.3f} ms "
                    "to augment\n",
                    1e3 * an_image.reading, 1e3 * an_image.decoding, 1e3 * an_image.augmenting));
  return Ok{};
}

}  // namespace

Status bench_data(const BenchDataArguments& arguments) {
  const bool json = arguments.run.json;
  PLIMSOLL_ASSIGN(const settings::RunConfig config,
                  settings::load_run_config(arguments.run.file, arguments.run.overrides));
  PLIMSOLL_ASSIGN(const Rung first, tokenize_on_the_way(config));
  if (!json)
    print_text(fmt::format("{:<22}{:>11}{:>12}{:>10}{:>9}  bound by\n", "", "samples/s", first.unit + "/s",
                           "a core", "wait, ms"));
  print(first, json);
  PLIMSOLL_ASSIGN(const std::unique_ptr<ReadyData> ready, make_ready(config));
  PLIMSOLL_TRY(climb_all(*ready, arguments, json));
  for (const char* packing : {"best_fit", "pad", "stream"}) {
    std::vector<std::string> overrides = arguments.run.overrides;
    overrides.push_back(fmt::format("data.packing={}", packing));
    const auto other = settings::load_run_config(arguments.run.file, overrides);
    if (!other) continue;  // not of this data
    const auto packed = make_ready(*other);
    if (!packed) continue;
    PLIMSOLL_ASSIGN(Rung rung, climb(**packed, {1, 2}, 1e-3 * static_cast<double>(arguments.milliseconds)));
    rung.name = fmt::format("packing {}", packing);
    rung.settings = overrides.back() + " data.num_workers=1 data.prefetch_factor=2";
    print(rung, json);
  }
  return Ok{};
}

}  // namespace plimsoll::cli
