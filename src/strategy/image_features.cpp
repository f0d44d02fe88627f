#include "strategy/image_features.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/units.h"
#include "images/processor.h"
#include "io/model_weights.h"
#include "ir/op_def.h"
#include "models/image_model.h"
#include "ops/op_list.h"
#include "preprocessing/cache_key.h"
#include "settings/settings.h"
#include "strategy/plan_cache.h"
#include "strategy/prepare_model.h"
#include "strategy/run_device.h"

namespace plimsoll::strategy {
namespace {

/// Another number where features of the same key would be others.
constexpr const char* kFeaturesVersion = "features 1";

/// What features depend on beside weights, processor and images.
constexpr std::array<std::string_view, 5> kDecide = {"training.precision", "training.state.", "quantization.",
                                                     "model.", "data.on_error"};

bool trains_head_alone(const models::Model& model) {
  return !model.adapters() && std::ranges::all_of(model.parameters(), [&](const models::Parameter& p) {
    return !p.trained || model.is_of_head(p.name);
  });
}

/// Whether the backbone draws in training: dropout, stochastic depth.
bool draws(const models::ImageModel& model, const images::Processor& processor) {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const ir::Shape image{1, processor.height, processor.width, model.channels()};
  const ir::ValueId pixels = b.state({"pixels", {ir::DType::kF32, image}, ir::StateClass::kInput});
  const ir::ValueId random = b.state({"random", {ir::DType::kI32, {4}}, ir::StateClass::kScalars});
  (void)model.features(b, {.pixels = pixels, .training = true, .random = random});
  const auto is_drawn = [&](ir::OpId id) {
    const ir::Op& op = graph.op(id);
    const auto operand = static_cast<size_t>(op.def->random);
    return op.def->random >= 0 && operand < op.inputs.size() && op.inputs[operand].valid();
  };
  return !b.status() || std::ranges::any_of(graph.order(), is_drawn);
}

std::string key_of(const settings::RunConfig& config, const std::string& folder, uint64_t weights,
                   const images::Processor& p, int num_threads) {
  preprocessing::CacheKey key;
  key.add(kFeaturesVersion);
  key.add(fmt::format("{}", weights));
  key.add(preprocessing::content_of(folder + "/config.json"));
  key.add(images::processor_json(p));
  key.add(fmt::format("{} {} {} {}", p.max_pixels, name(p.orientation), name(p.alpha), name(p.backend)));
  key.add(make_target(config, num_threads)->instruction_set());
  for (const settings::Setting& setting : settings::settings())
    if (std::ranges::any_of(kDecide, [&](std::string_view start) { return setting.path.starts_with(start); }))
      key.add(fmt::format("{}: {}", setting.path, settings::setting_text(setting, config)));
  return key.text();
}

}  // namespace

const tasks::FeatureUse* read_features(const tasks::Task& task) {
  const tasks::ImageInputs* images = tasks::image_inputs_of(task);
  const bool reads = images != nullptr && images->features.kind == tasks::FeatureUse::Kind::kRead;
  return reads ? &images->features : nullptr;
}

Result<tasks::FeatureUse> feature_use(const settings::RunConfig& config, const models::Model& model,
                                      const tasks::ImageInputs& images, int num_threads) {
  const tasks::FeatureUse none;
  const models::ImageModel& backbone = models::image_model(model);
  // A dump is of the whole model's steps.
  const bool is_fixed = config.debug.dump_dir.empty() && !config.is_embedded &&
                        config.distributed.num_ranks() == 1 && images.augmentations.empty() &&
                        !images.mix.any() && backbone.num_features() > 0 && trains_head_alone(model) &&
                        !model.couples_micro_batch() && settings::starts_pretrained(config.model);
  if (!is_fixed || draws(backbone, images.processor)) return none;
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
  const auto weights = io::ModelWeights::open(folder);
  if (!weights) return none;  // who reads them says so; a run that goes on needs none
  PLIMSOLL_ASSIGN(const uint64_t fingerprint, weights->fingerprint());
  return tasks::FeatureUse{.kind = tasks::FeatureUse::Kind::kRead,
                           .key = key_of(config, folder, fingerprint, images.processor, num_threads),
                           .width = backbone.num_features()};
}

Result<Prepared> prepare_feature_pass(const settings::RunConfig& config, const runtime::Target& target,
                                      PrepareOptions options, int64_t width) {
  options.purpose = Purpose::kEvaluate;
  options.dump_ir.clear();
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_model(config, options));
  tasks::ImageInputs inputs = *tasks::image_inputs_of(*prepared.task);
  inputs.features = {.kind = tasks::FeatureUse::Kind::kWritten, .key = {}, .width = width};
  prepared.task = tasks::make_image_classification(*prepared.labels, inputs);
  PlanCache cache;
  return plan_prepared(config, std::move(prepared), target, options, cache);
}

Result<bool> add_feature_pass(const settings::RunConfig& config, const runtime::Target& target,
                              PrepareOptions options, Prepared& prepared) {
  const tasks::FeatureUse* use = read_features(*prepared.task);
  if (use == nullptr) return true;
  options.memory = prepared.memory;
  PLIMSOLL_ASSIGN(const Prepared pass, prepare_feature_pass(config, target, options, use->width));
  for (planner::PhaseBytes phase : pass.report.phases)
    if (phase.name == "eval") {
      phase.name = "features";
      prepared.report.phases.push_back(std::move(phase));
    }
  return pass.report.fits;
}

std::string feature_note(const tasks::Task& task) {
  const tasks::FeatureUse* use = read_features(task);
  if (use == nullptr) return {};
  return fmt::format(
      "the frozen backbone runs once for each image, before the first step and in a process of its own "
      "(phase "
      "features); steps read its outputs, {} an image, from data.cache_dir",
      to_string(Bytes(use->width * static_cast<int64_t>(sizeof(float)))));
}

}  // namespace plimsoll::strategy
