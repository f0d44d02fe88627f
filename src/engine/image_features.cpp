// The pass over the images: a session whose outputs are the features, a micro-batch at a time, in the order
// of the lists.
#include "engine/image_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/host.h"
#include "base/units.h"
#include "corpora/images/image_features.h"
#include "preprocessing/data_cache.h"
#include "runtime/session.h"
#include "strategy/image_features.h"
#include "strategy/run_device.h"
#include "tasks/image_classification.h"
#include "training/batch_feeder.h"
#include "training/initialise.h"

namespace plimsoll::engine {
namespace {

/// A source's features, and where they belong.
struct Missing {
  datasets::DataFiles files;
  std::string path;
  int64_t images = 0;
};

class FeaturePass {
 public:
  FeaturePass(const settings::RunConfig& config, strategy::PrepareOptions planning, int64_t width,
              const preprocessing::DataProgress& progress, const Stop& stop)
      : config_(config), planning_(std::move(planning)), width_(width), progress_(progress), stop_(stop) {}

  Status operator()(const std::vector<Missing>& sources) {
    PLIMSOLL_TRY(open());
    for (const Missing& source : sources) total_ += source.images;
    for (const Missing& source : sources) PLIMSOLL_TRY(write(source));
    if (progress_) progress_(1, "");
    return Ok{};
  }

 private:
  Status open() {
    const auto target = strategy::make_target(config_, planning_.num_threads);
    PLIMSOLL_ASSIGN(strategy::Prepared prepared,
                    strategy::prepare_feature_pass(config_, *target, planning_, width_));
    prepared_.emplace(std::move(prepared));
    if (!prepared_->report.fits) return strategy::does_not_fit(*prepared_);
    PLIMSOLL_ASSIGN(device_, strategy::make_device(config_, planning_.num_threads, *prepared_));
    PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, std::move(prepared_->programs.session), {}));
    scratch_.resize(static_cast<size_t>(prepared_->host_scratch_bytes));
    PLIMSOLL_TRY(
        training::initialise(config_, *prepared_, *session_, /*pretrained=*/true, planning_.num_threads));
    return Ok{};
  }

  Status write(const Missing& source) {
    datasets::TrainingDataOptions options = strategy::data_options(config_, *prepared_, {}, /*eval=*/true);
    options.shuffle = false;
    PLIMSOLL_ASSIGN(const datasets::TrainingData data,
                    datasets::TrainingData::open({&source.files, 1}, options));
    PLIMSOLL_ASSIGN(corpora::FeatureWriter writer,
                    corpora::FeatureWriter::create(source.path, source.images, width_));
    training::BatchFeeder feeder(*session_, *prepared_->task, prepared_->buckets.lengths);
    const int program = session_->plan().find_program({passes::ProgramRole::kEval});
    const int64_t micro = prepared_->split.micro_batch_size;
    std::vector<int64_t> positions(static_cast<size_t>(micro));
    std::vector<float> features(static_cast<size_t>(micro * width_));
    for (int64_t first = 0; first < source.images; first += micro) {
      if (is_asked(stop_))
        return Error{ErrorCode::kInterrupted, "stopped by a signal", {}, "run the same command again"};
      if (progress_)
        progress_(static_cast<double>(done_ + first) / static_cast<double>(std::max<int64_t>(1, total_)),
                  fmt::format("features of images, {} of {}", done_ + first, total_));
      const auto batch =
          std::span(positions).first(static_cast<size_t>(std::min(micro, source.images - first)));
      PLIMSOLL_TRY(data.look_up(first, batch, scratch_));
      PLIMSOLL_TRY(feeder.read(data, batch, 0, scratch_));
      PLIMSOLL_TRY(session_->run(program));
      PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(features))));
      for (int64_t r = 0; r < std::ssize(batch); ++r)
        PLIMSOLL_TRY(add(feeder.row(0, r), features, r, writer));
    }
    done_ += source.images;
    return writer.finish();
  }

  Status add(datasets::ExampleRow row, std::span<const float> features, int64_t r,
             corpora::FeatureWriter& writer) const {
    const bool is_damaged = datasets::row_as<const int32_t>(row[1])[0] == datasets::kNoTarget;
    if (is_damaged) return writer.add_damaged();
    return writer.add(features.subspan(static_cast<size_t>(r * width_), static_cast<size_t>(width_)));
  }

  const settings::RunConfig& config_;
  strategy::PrepareOptions planning_;
  const int64_t width_;
  const preprocessing::DataProgress& progress_;
  const Stop& stop_;
  std::optional<strategy::Prepared> prepared_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;  ///< goes before its device
  std::vector<std::byte> scratch_;
  int64_t done_ = 0, total_ = 0;
};

/// Of the sources that have none yet. `lease`: what is used of the cache is told it.
Result<std::vector<Missing>> find_missing(const preprocessing::RunData& data, const tasks::FeatureUse& use,
                                          const io::Labels& labels, const preprocessing::CacheLease& lease) {
  std::vector<Missing> missing;
  for (const auto& side : {data.train, data.eval})
    for (const datasets::DataFiles& files : side) {
      PLIMSOLL_ASSIGN(
          const corpora::ImageDataset listed,
          corpora::ImageDataset::open(files.paths, {.labels = labels, .reading_bytes = data.reading_bytes}));
      std::string path = corpora::features_path(files.paths, listed, use.key);
      PLIMSOLL_TRY(lease.use(path));
      if (!corpora::has_features(path, listed.size(), use.width))
        missing.push_back({files, std::move(path), listed.size()});
    }
  return missing;
}

std::string note_of(const std::vector<Missing>& missing, int64_t width) {
  int64_t images = 0;
  for (const Missing& source : missing) images += source.images;
  const Bytes bytes(images * width * static_cast<int64_t>(sizeof(float)));
  return images == 0 ? std::string("the features of the frozen backbone lie in the cache")
                     : fmt::format("computed the features of {} images by the frozen backbone once: {}",
                                   images, to_string(bytes));
}

}  // namespace

Status make_features(const settings::RunConfig& config, const strategy::PrepareOptions& planning,
                     const strategy::Prepared& prepared, const preprocessing::RunData& data,
                     const preprocessing::DataProgress& progress, const Stop& stop,
                     const std::function<void(const std::string&)>& note) {
  const tasks::FeatureUse* use = strategy::read_features(*prepared.task);
  if (use == nullptr) return Ok{};
  strategy::PrepareOptions options = planning;
  options.buckets = data.buckets;
  options.labels = data.labels;
  options.num_eval = data.num_eval;
  options.reading_bytes = data.reading_bytes;
  options.memory = prepared.memory;  // the budgets that the plan judged the pass by
  const std::string folder = preprocessing::training_data_options(config, /*eval=*/false).cache_folder;
  PLIMSOLL_ASSIGN(const preprocessing::CacheLease lease, preprocessing::CacheLease::take(folder));
  PLIMSOLL_ASSIGN(const std::string told, run_apart([&]() -> Result<std::string> {
                    PLIMSOLL_ASSIGN(const std::vector<Missing> missing,
                                    find_missing(data, *use, *data.labels, lease));
                    FeaturePass pass(config, options, use->width, progress, stop);
                    if (!missing.empty()) PLIMSOLL_TRY(pass(missing));
                    return note_of(missing, use->width);
                  }));
  note(told);
  return Ok{};
}

}  // namespace plimsoll::engine
