// Images are listed first, in files that are gone with the process, so that the plan knows what the largest
// takes; then they go through in their order, a micro-batch at a time.
#include "engine/predict_images.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/host.h"
#include "corpora/images/image_dataset.h"
#include "corpora/images/scan_images.h"
#include "corpora/reasons.h"
#include "engine/predict_line.h"
#include "engine/prediction_lines.h"
#include "io/adapter_folder.h"
#include "io/scratch_folder.h"
#include "models/classifier.h"
#include "models/timm.h"
#include "planner/programs/step_programs.h"
#include "preprocessing/image_processor.h"
#include "runtime/session.h"
#include "settings/settings.h"
#include "strategy/memory_budget.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"
#include "training/batch_feeder.h"
#include "training/initialise.h"

namespace plimsoll::engine {
namespace {

constexpr const char* kNoneIsSkipped = "correct the file or leave it out: predict skips no image";

/// config.json of the model or, where it has one, of the adapter, which was written with its labels.
Result<io::ConfigJson> classifier_config(const io::NamedModel& named) {
  const std::string of_adapter = named.adapter + "/config.json";
  const bool trained = !named.adapter.empty() && io::is_file(of_adapter);
  return models::read_model_config(trained ? of_adapter : named.model + "/config.json");
}

class ImagePrediction {
 public:
  ImagePrediction(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop)
      : request_(request), sink_(sink), stop_(stop) {}

  Status operator()() {
    PLIMSOLL_TRY(open());
    PLIMSOLL_ASSIGN(PredictionLines lines, PredictionLines::open(request_.output, sink_));
    PLIMSOLL_TRY(list());
    PLIMSOLL_TRY(plan());
    PLIMSOLL_ASSIGN(device_, strategy::make_device(config_, strategy::num_threads(config_), *prepared_));
    PLIMSOLL_ASSIGN(session_, runtime::Session::create(*device_, std::move(prepared_->programs.session), {}));
    PLIMSOLL_TRY(training::initialise(config_, *prepared_, *session_, /*pretrained=*/true,
                                      strategy::num_threads(config_)));
    return run(lines);
  }

 private:
  Status open() {
    PLIMSOLL_ASSIGN(const io::NamedModel named, io::find_named_model(request_.model, request_.adapter));
    if (named.note) note(*named.note);
    PLIMSOLL_ASSIGN(const io::ConfigJson model, classifier_config(named));
    if (!io::is_image_classifier(model))
      return model.error("architectures", "an image classifier (…ForImageClassification)",
                         "train one: task=image_classification");
    PLIMSOLL_ASSIGN(io::LabelFields fields, io::read_label_fields(model));
    labels_ = {io::ProblemType::kSingleLabel, std::move(fields.names)};
    config_.task = "image_classification";
    config_.model.path = named.model;
    config_.lora.enabled = !named.adapter.empty();
    config_.lora.adapter = named.adapter;
    PLIMSOLL_TRY(set_limits(request_, config_));
    PLIMSOLL_ASSIGN(images_, preprocessing::image_inputs(config_, model, 0));
    return Ok{};
  }

  /// In a process of its own, whose memory is in no plan.
  Status list() {
    PLIMSOLL_ASSIGN(io::ScratchFolder folder, io::ScratchFolder::create("predict"));
    folder_.emplace(std::move(folder));
    const std::string path = folder_->path() + "/predict.images";
    auto done = run_apart([&]() -> Result<std::string> {
      PLIMSOLL_TRY(write_list(path));
      return std::string();
    });
    if (!done) {
      Error error = std::move(done).error();
      if (error.hint == corpora::kSkipHint) error.hint = kNoneIsSkipped;
      return error;
    }
    PLIMSOLL_ASSIGN(corpora::ImageList list, corpora::ImageList::open(path));
    images_.reading_bytes = std::max(images_.reading_bytes, list.summary().reading_bytes);
    list_.emplace(std::move(list));
    PLIMSOLL_ASSIGN(corpora::ImageDataset data,
                    corpora::ImageDataset::open(std::vector{path}, {.processor = images_.processor,
                                                                    .reading_bytes = images_.reading_bytes}));
    data_.emplace(std::move(data));
    return Ok{};
  }

  Status write_list(const std::string& path) const {
    corpora::ImageEntries entries;
    for (const std::string& pattern : request_.data) {
      PLIMSOLL_ASSIGN(const std::vector<std::string> found, io::expand_glob(pattern));
      for (const std::string& entry : found)
        PLIMSOLL_TRY(
            corpora::add_images(entry, {.with_labels = false, .packs_folder = folder_->path()}, entries));
    }
    PLIMSOLL_ASSIGN(const corpora::ScannedImages scanned,
                    corpora::scan_images(entries, {.processor = images_.processor,
                                                   .num_threads = strategy::num_threads(config_),
                                                   .stop = stop_}));
    return corpora::write_image_list(path, entries, scanned.facts, scanned.summary);
  }

  Status plan() {
    const int threads = strategy::num_threads(config_);
    const strategy::PrepareOptions options{.num_threads = threads,
                                           .purpose = strategy::Purpose::kEvaluate,
                                           .labels = labels_,
                                           .reading_bytes = images_.reading_bytes};
    PLIMSOLL_ASSIGN(strategy::Prepared prepared,
                    strategy::prepare(config_, *strategy::make_target(config_, threads), options));
    prepared_.emplace(std::move(prepared));
    if (!prepared_->report.fits) return strategy::does_not_fit(*prepared_);
    scratch_.resize(static_cast<size_t>(prepared_->host_scratch_bytes));
    return Ok{};
  }

  Status run(PredictionLines& lines) {
    const std::vector<int64_t>& lengths = prepared_->buckets.lengths;
    training::BatchFeeder feeder(*session_, *prepared_->task, lengths);
    const int64_t micro = prepared_->split.micro_batch_size;
    std::vector<float> logits(static_cast<size_t>(session_->type(planner::kLogitsState).num_elements()));
    const size_t width = logits.size() / static_cast<size_t>(micro);
    const auto program = session_->plan().find_program(
        {passes::ProgramRole::kEval, planner::bucket_of(lengths.front(), lengths)});
    for (int64_t first = 0; first < data_->size(); first += micro) {
      if (is_asked(stop_))
        return Error{ErrorCode::kInterrupted, "stopped by a signal", {}, "run the same command again"};
      const int64_t count = std::min(micro, data_->size() - first);
      const auto fill_row = [&](int64_t r, datasets::ExampleRow to) { return read(first + r, to); };
      PLIMSOLL_TRY(feeder.fill(0, count, fill_row));
      PLIMSOLL_TRY(session_->run(program));
      PLIMSOLL_TRY(session_->read(planner::kLogitsState, std::as_writable_bytes(std::span(logits))));
      for (int64_t r = 0; r < count; ++r)
        PLIMSOLL_TRY(
            add_line(first + r, std::span(logits).subspan(static_cast<size_t>(r) * width, width), lines));
      PLIMSOLL_TRY(lines.flush());
    }
    return lines.finish();
  }

  Status read(int64_t index, datasets::ExampleRow to) {
    for (size_t t = 0; t < to.size(); ++t) datasets::pad_example(prepared_->task->inputs()[t], to[t]);
    auto label = data_->read(index, 0, datasets::row_as<uint8_t>(to[0]), scratch_);
    if (label) return Ok{};
    Error error = std::move(label).error();
    if (error.code == ErrorCode::kBadData) error.hint = kNoneIsSkipped;
    return error;
  }

  Status add_line(int64_t index, std::span<const float> logits, PredictionLines& lines) {
    PLIMSOLL_ASSIGN(const corpora::ListedImage image, list_->read(index, scratch_));
    io::Tree line = io::Tree::map();
    line.set("image", io::Tree::of(std::string(image.name)));
    line.merge(prediction(labels_, logits));
    lines.add(line);
    return Ok{};
  }

  const PredictRequest& request_;
  telemetry::Sink& sink_;
  const Stop& stop_;
  settings::RunConfig config_;
  io::Labels labels_;
  tasks::ImageInputs images_;
  std::optional<io::ScratchFolder> folder_;  ///< of the list, and of images from within Parquet files
  std::optional<corpora::ImageList> list_;
  std::optional<corpora::ImageDataset> data_;
  std::optional<strategy::Prepared> prepared_;
  std::unique_ptr<runtime::Device> device_;
  std::unique_ptr<runtime::Session> session_;  ///< goes before its device
  std::vector<std::byte> scratch_;
};

}  // namespace

Result<bool> classifies_images(const PredictRequest& request) {
  PLIMSOLL_ASSIGN(const io::NamedModel named, io::find_named_model(request.model, request.adapter));
  PLIMSOLL_ASSIGN(const io::ConfigJson model, models::read_model_config(named.model + "/config.json"));
  return models::is_image_model(model);
}

Status predict_images(const PredictRequest& request, telemetry::Sink& sink, const Stop& stop) {
  return ImagePrediction(request, sink, stop)();
}

Status set_limits(const PredictRequest& request, settings::RunConfig& config) {
  config.training.global_batch_size = request.batch_size;
  config.runtime.threads = request.threads;
  PLIMSOLL_TRY(settings::assign_setting(*settings::find_setting("memory.budget"),
                                        io::Tree::of(request.memory_budget), config));
  for (const std::string& remark : strategy::budget_notes(config, read_machine_memory())) note(remark);
  return Ok{};
}

}  // namespace plimsoll::engine
