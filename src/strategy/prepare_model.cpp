#include "strategy/prepare_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "io/adapter_folder.h"
#include "models/image_model.h"
#include "models/language_model.h"
#include "models/lora.h"
#include "models/lora_config.h"
#include "models/quantization_config.h"
#include "preprocessing/image_data.h"
#include "preprocessing/image_labels.h"
#include "preprocessing/image_processor.h"
#include "preprocessing/labelled_data.h"
#include "preprocessing/run_task.h"
#include "settings/lora_settings.h"
#include "settings/micro_batch.h"
#include "settings/param_groups.h"
#include "settings/precision.h"
#include "settings/quantization.h"
#include "settings/state_settings.h"
#include "strategy/image_features.h"
#include "tasks/task_list.h"

namespace plimsoll::strategy {
namespace {

/// What a classifier's labels are, by the data where that is ready, else as far as it can be known.
Status settle_labels(const settings::RunConfig& config, const io::ConfigJson& model,
                     PrepareOptions& options) {
  if (options.labels) return Ok{};
  const bool trains = options.purpose == Purpose::kTrain;
  if (!options.looks_at_data) {
    PLIMSOLL_ASSIGN(const corpora::LabelRequest request, preprocessing::label_request(config, model));
    PLIMSOLL_ASSIGN(corpora::EarlyLabels early, corpora::labels_without_data(request));
    options.labels = std::move(early.labels);
    return Ok{};
  }
  if (auto found = preprocessing::find_labelled(config, model, trains); found && found->labels) {
    options.labels = std::move(found->labels);
    options.num_eval = found->num_eval;
    return Ok{};
  }
  PLIMSOLL_ASSIGN(corpora::EarlyLabels early, preprocessing::find_labels(config, model, trains));
  options.labels = std::move(early.labels);
  return Ok{};
}

/// Of questions the labels are known; how many windows are evaluated, by the data where that is ready.
Status settle_spans(const settings::RunConfig& config, const io::ConfigJson& model, PrepareOptions& options) {
  options.labels = preprocessing::span_labels();
  if (!options.looks_at_data) return Ok{};
  if (const auto found = preprocessing::find_labelled(config, model, options.purpose == Purpose::kTrain))
    options.num_eval = found->num_eval;
  return Ok{};
}

/// The same of images, whose folders and tables say what the classes are.
Status settle_classes(const settings::RunConfig& config, const io::ConfigJson& model,
                      PrepareOptions& options) {
  if (options.labels) return Ok{};
  const preprocessing::PrepareDataOptions look{.train = options.purpose == Purpose::kTrain};
  if (options.looks_at_data)
    if (auto found = preprocessing::ImagePreparation(config, look, model).look(); found && found->labels) {
      options.labels = std::move(found->labels);
      options.num_eval = found->num_eval;
      options.reading_bytes = found->reading_bytes;
      return Ok{};
    }
  PLIMSOLL_ASSIGN(const corpora::LabelRequest request,
                  preprocessing::image_label_request(config, model, look.train));
  PLIMSOLL_ASSIGN(corpora::EarlyLabels early, corpora::labels_without_data(request));
  options.labels = std::move(early.labels);
  return Ok{};
}

/// Nothing where no images are read.
Result<std::optional<tasks::ImageInputs>> image_inputs_of(const settings::RunConfig& config,
                                                          const io::ConfigJson& model,
                                                          const tasks::TaskDef& def,
                                                          const PrepareOptions& options) {
  if (def.preparation != tasks::Preparation::kImages) return std::optional<tasks::ImageInputs>();
  PLIMSOLL_ASSIGN(tasks::ImageInputs inputs,
                  preprocessing::image_inputs(config, model, options.reading_bytes));
  if (options.purpose != Purpose::kTrain) inputs.mix = {};
  return std::optional(std::move(inputs));
}

datasets::MaskingRules masking_rules(const settings::RunConfig& config) {
  const settings::MaskingSettings& mlm = config.mlm;
  return {.probability = mlm.probability,
          .mask = mlm.mask,
          .random = mlm.random,
          .whole_words = mlm.whole_word,
          .seed = static_cast<uint64_t>(config.training.seed)};
}

/// How the training reads ahead, as its task has it.
datasets::LoaderOptions loader_of(const settings::RunConfig& config, const tasks::Task& task,
                                  int64_t num_labels) {
  datasets::LoaderOptions loader = preprocessing::loader_options(config, task.inputs(), num_labels);
  loader.scratch_bytes = std::max(loader.scratch_bytes, task.scratch_bytes());
  if (task.blends())
    loader.blend = [&task](int64_t batch, std::span<const std::span<std::byte>> tensors,
                           std::span<std::byte> scratch) { task.blend(batch, tensors, scratch); };
  return loader;
}

/// Tells an image model how large its images are. Errors: kInvalidArgument where it takes no such.
Status fit_images(const images::Processor& processor, models::Model& model) {
  models::ImageModel* const image_model = models::as_image_model(model);
  return image_model == nullptr ? Status(Ok{}) : image_model->take_images(processor.height, processor.width);
}

/// By the settings, or by the adapter that the run goes on with.
Result<models::LoraSpec> spec_of(const settings::LoraSettings& lora) {
  if (lora.adapter.empty()) return settings::lora_spec(lora);
  PLIMSOLL_ASSIGN(models::LoraSpec spec, models::read_adapter_config(lora.adapter));
  PLIMSOLL_TRY(settings::check_adapter_agrees(lora, spec, lora.adapter));
  if (lora.lora_dropout) spec.lora_dropout = *lora.lora_dropout;
  return spec;
}

Status add_adapters_of(const settings::LoraSettings& lora, const models::LoraSpec& spec,
                       const io::ConfigJson& model_config, models::Model& model) {
  PLIMSOLL_ASSIGN(const std::string type, model_config.model_type());
  if (lora.adapter.empty()) return models::add_adapters(model, spec, type);
  auto added = models::add_adapters(model, spec, type, /*strict=*/false);
  if (!added) return io::of_adapter(std::move(added).error(), lora.adapter);
  return Ok{};
}

/// As the model's files have it, or as the settings say.
Status keep_in_few_bits(const settings::RunConfig& config, const io::ConfigJson& model_config, bool trains,
                        models::Model& model) {
  PLIMSOLL_ASSIGN(std::optional<models::QuantizeSpec> spec, models::read_quantization_config(model_config));
  if (spec) {
    PLIMSOLL_ASSIGN(spec, settings::settle_stored(config, std::move(*spec), trains));
  } else {
    spec = settings::quantize_spec(config.quantization);
    if (spec) spec->learns = trains;
  }
  return spec ? models::quantize(model, *spec) : models::check_whole(model);
}

/// model.norm_statistics, for models that have such norms.
Status settle_norm_statistics(const settings::RunConfig& config, models::Model& model) {
  using settings::NormStatisticsWord;
  const NormStatisticsWord asked = config.model.norm_statistics;
  const auto wrong = [&](const char* why, const char* hint) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("model.norm_statistics is {}, and {}", settings::word(asked), why),
                 "model.norm_statistics", hint};
  };
  if (asked != NormStatisticsWord::kAuto && model.batch_norms().empty())
    return wrong("the model has no BatchNorm layer", "leave it out");
  const bool synchronised = asked == NormStatisticsWord::kSynchronised;
  const bool of_batch = asked == NormStatisticsWord::kBatch || synchronised;
  if (of_batch && model.adapters())
    return wrong("an adapter's files hold no running statistics", "leave it out, or train without lora");
  std::optional<models::NormStatistics> statistics;
  if (of_batch) statistics = models::NormStatistics::kBatch;
  if (asked == NormStatisticsWord::kFrozen || model.adapters()) statistics = models::NormStatistics::kFrozen;
  model.set_norm_statistics(statistics, synchronised ? config.distributed.num_ranks() : 1);
  return Ok{};
}

}  // namespace

Result<Prepared> prepare_model(const settings::RunConfig& config, PrepareOptions& options,
                               bool may_read_features) {
  if (!options.buckets)
    options.buckets = preprocessing::find_buckets(config, options.purpose == Purpose::kTrain);
  PLIMSOLL_ASSIGN(io::ConfigJson model_config, settings::load_model_config(config.model));
  PLIMSOLL_ASSIGN(const tasks::TaskDef* def, preprocessing::task_of(config, model_config));
  const bool images = def->preparation == tasks::Preparation::kImages;
  const bool labelled = images || def->preparation == tasks::Preparation::kLabelled;
  if (images) PLIMSOLL_TRY(settle_classes(config, model_config, options));
  if (def->asks && !options.labels) PLIMSOLL_TRY(settle_spans(config, model_config, options));
  if (labelled) PLIMSOLL_TRY(settle_labels(config, model_config, options));
  PLIMSOLL_ASSIGN(auto image_inputs, image_inputs_of(config, model_config, *def, options));
  const bool fresh_head = images ? !preprocessing::has_head_of(model_config, *options.labels)
                                 : def->adapt != nullptr && !def->is_made_for(model_config);
  if (fresh_head && def->masks && config.lora.enabled && settings::starts_pretrained(config.model))
    return Error{ErrorCode::kInvalidArgument,
                 "the model has no head for masked language models, and an adapter does not save one",
                 model_config.source(), "train without lora first, or name a …ForMaskedLM"};
  if (def->adapt != nullptr) {
    PLIMSOLL_ASSIGN(model_config, def->adapt(model_config, options.labels.value_or(io::Labels{})));
  }
  std::optional<models::LoraSpec> lora;
  if (config.lora.enabled) {
    PLIMSOLL_ASSIGN(lora, spec_of(config.lora));
    models::fit_vocabulary(*lora, model_config);
  }
  PLIMSOLL_ASSIGN(std::unique_ptr<models::Model> model, models::make_model(model_config));
  PLIMSOLL_TRY(settings::check_overrides(config.model, model_config));
  if (const models::LanguageModel* language = models::as_language_model(*model))
    PLIMSOLL_TRY(settings::check_against_model(config, language->max_positions()));
  if (image_inputs) PLIMSOLL_TRY(fit_images(image_inputs->processor, *model));
  if (lora) PLIMSOLL_TRY(add_adapters_of(config.lora, *lora, model_config, *model));
  PLIMSOLL_TRY(models::select(*model, settings::selection_of(config.training)));
  PLIMSOLL_TRY(settle_norm_statistics(config, *model));
  if (!settings::micro_batch_dependence(config).empty()) model->couple_micro_batch();
  model->keep_in(settings::state_choice(config.training).weights);
  PLIMSOLL_TRY(keep_in_few_bits(config, model_config, options.purpose == Purpose::kTrain, *model));
  if (image_inputs && may_read_features && options.purpose == Purpose::kTrain) {
    PLIMSOLL_ASSIGN(image_inputs->features, feature_use(config, *model, *image_inputs, options.num_threads));
  }
  PLIMSOLL_ASSIGN(std::unique_ptr<tasks::Task> task,
                  def->make({.model = *model,
                             .model_config = model_config,
                             .sequence_length = config.data.sequence_length,
                             .packs_documents = preprocessing::packs_documents(config.data),
                             .labels = labelled ? &*options.labels : nullptr,
                             .images = image_inputs ? &*image_inputs : nullptr,
                             .masking = masking_rules(config)}));
  datasets::LoaderOptions loader = loader_of(config, *task, model->num_labels());
  return Prepared{.model_config = std::move(model_config),
                  .model = std::move(model),
                  .task = std::move(task),
                  .labels = labelled ? options.labels : std::nullopt,
                  .fresh_head = fresh_head,
                  .loader = std::move(loader),
                  .buckets = *options.buckets};
}

}  // namespace plimsoll::strategy
