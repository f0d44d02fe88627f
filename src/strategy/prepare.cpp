#include "strategy/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/host.h"
#include "base/process.h"
#include "models/language_model.h"
#include "planner/cost/step_times.h"
#include "planner/report/budget.h"
#include "settings/distributed.h"
#include "strategy/disk_report.h"
#include "strategy/image_features.h"
#include "strategy/machine_rates.h"
#include "strategy/plan_search.h"
#include "strategy/prepare_model.h"
#include "strategy/run_card.h"
#include "strategy/step_report.h"

namespace plimsoll::strategy {
namespace {

std::string model_name(const settings::RunConfig& config, const io::ConfigJson& model) {
  return config.model.preset.empty() ? model.source() : config.model.preset;
}

planner::Network network_of(const settings::DistributedSettings& distributed) {
  const settings::TopologySettings& t = distributed.topology;
  return {.per_node = t.per_node.value_or(0),
          .intra = t.intra.bytes_per_second,
          .inter = t.inter.bytes_per_second,
          .latency = t.latency.seconds,
          .is_described = t.is_given()};
}

/// Each rank's share is whole micro-batches: padding would count in the statistics of a batch.
Status check_batch_statistics(const settings::RunConfig& config, const models::Model& model) {
  const int64_t ranks = config.distributed.num_ranks();
  if (ranks == 1 || !model.takes_batch_statistics()) return Ok{};
  const int64_t batch = config.training.global_batch_size,
                planned = ranks * settings::training_of_rank(config.training, ranks).global_batch_size;
  if (planned == batch) return Ok{};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("training.global_batch_size is {}, and {} ranks compute {}: padding would count in "
                  "the statistics of BatchNorm",
                  batch, ranks, planned),
      "training.global_batch_size",
      fmt::format("set training.global_batch_size={}, or model.norm_statistics=frozen", planned)};
}

}  // namespace

int64_t Prepared::vocab_size() const {
  const models::LanguageModel* language = models::as_language_model(*model);
  return language == nullptr ? 0 : language->vocab_size();
}

datasets::TrainingDataOptions data_options(const settings::RunConfig& config, const Prepared& prepared,
                                           const preprocessing::RunData& data, bool eval) {
  datasets::TrainingDataOptions options =
      preprocessing::training_data_options(config, eval, prepared.buckets.lengths);
  options.open_source = [task = prepared.task.get()](const datasets::DataFiles& files,
                                                     const datasets::SourceOptions& how) {
    return task->open_source(files, how);
  };
  options.token_kinds = data.token_kinds;
  return options;
}

int num_threads(const settings::RunConfig& config) {
  return static_cast<int>(config.runtime.threads.value_or(num_available_cpus()));
}

Result<Prepared> prepare(const settings::RunConfig& config, const runtime::Target& target,
                         const PrepareOptions& options) {
  PlanCache cache;
  return prepare(config, target, options, cache);
}

Result<Prepared> prepare(const settings::RunConfig& config, const runtime::Target& target,
                         const PrepareOptions& asked, PlanCache& cache) {
  const auto start = std::chrono::steady_clock::now();
  PrepareOptions options = asked;
  PLIMSOLL_ASSIGN(Prepared prepared, prepare_model(config, options));
  PLIMSOLL_ASSIGN(prepared, plan_prepared(config, std::move(prepared), target, options, cache));
  PLIMSOLL_ASSIGN(const bool pass_fits, add_feature_pass(config, target, options, prepared));
  if (!pass_fits) {
    prepared.programs = {};  // two plans at once would be memory that neither counts
    PlanCache of_whole_model;
    PLIMSOLL_ASSIGN(prepared, prepare_model(config, options, /*may_read_features=*/false));
    PLIMSOLL_ASSIGN(prepared, plan_prepared(config, std::move(prepared), target, options, of_whole_model));
  }
  trim_heap();  // what planning needed and no longer needs goes back before the session takes its memory
  prepared.report.planning_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return prepared;
}

Result<Prepared> plan_prepared(const settings::RunConfig& config, Prepared prepared,
                               const runtime::Target& target, const PrepareOptions& options,
                               PlanCache& cache) {
  PLIMSOLL_TRY(check_card_is_known(config));
  if (options.purpose == Purpose::kTrain) PLIMSOLL_TRY(check_batch_statistics(config, *prepared.model));
  prepared.memory = options.memory ? *options.memory : read_machine_memory();
  PLIMSOLL_ASSIGN(const planner::MachineProfile profile, run_profile(config, target));
  const double link = config.runtime.discrete.copy_bandwidth.bytes_per_second;
  const planner::MachineProfile linked = link > 0 ? planner::with_link(profile, link) : profile;
  prepared.costs = std::make_shared<planner::CostModel>(linked, options.num_threads,
                                                        network_of(config.distributed), &target);
  if (profile.rates == "calibrated") prepared.profile_identity = planner::profile_identity(profile);
  prepared.is_cpu = target.name() == "cpu";
  PLIMSOLL_ASSIGN(ChosenPlan chosen, choose_plan({config, prepared, target, options}, cache));
  prepared.split = chosen.step.strategy.split;
  prepared.programs = std::move(chosen.step.programs);
  prepared.report = std::move(chosen.step.report);
  prepared.considered = std::move(chosen.considered);
  prepared.host_scratch_bytes = scratch_bytes(config, prepared);
  if (const auto card = run_card(config)) prepared.report.context_bytes = card->context_bytes;
  const bool has_lengths = prepared.task->unit().by_length;
  prepared.report.pads = has_lengths && (prepared.labels.has_value() || config.data.packing == "pad");
  prepared.report.model = model_name(config, prepared.model_config);
  prepared.report.num_parameters = prepared.model->num_parameters();
  if (options.purpose == Purpose::kTrain) {
    prepared.report.num_trained = prepared.model->num_trained();
    if (options.request == PlanRequest::kPrograms && !config.is_embedded)
      prepared.report.disk =
          disk_report(config, prepared.model_config, *prepared.model, prepared.programs.session);
    prepared.report.total_steps = config.training.max_steps;
  }
  return prepared;
}

Result<Prepared> prepare_before_data(const settings::RunConfig& config, const runtime::Target& target,
                                     PrepareOptions options) {
  options.looks_at_data = false;
  options.buckets = preprocessing::buckets_by_settings(config.data);
  constexpr int64_t kLeastReading = 1;  // what images take is open too: small ones take next to nothing
  if (options.reading_bytes == 0) options.reading_bytes = kLeastReading;
  // Which lengths the data will have is open. One alone is the least that any choice needs, so what does not
  // fit never will, and planning touches no more memory than the plan that is run counts.
  if (config.data.buckets.count > 0) {
    options.buckets->lengths = {config.data.sequence_length};
    options.dump_ir.clear();  // the text of programs that are not run would only mislead
  }
  return prepare(config, target, options);
}

Status prepare_after_data(const settings::RunConfig& config, const runtime::Target& target,
                          PrepareOptions options, const preprocessing::RunData& data, Prepared& prepared) {
  const bool is_same =
      data.buckets.lengths == prepared.buckets.lengths && config.data.buckets.count == 0 &&
      data.labels == prepared.labels && data.reading_bytes == options.reading_bytes &&
      prepared.task->metrics_bytes(data.num_eval) == prepared.task->metrics_bytes(options.num_eval);
  if (is_same) {
    prepared.buckets = data.buckets;
    describe_buckets(data.buckets, prepared.report);
    return Ok{};
  }
  prepared.programs = {};  // two plans at once would be memory that neither counts
  options.buckets = data.buckets;
  options.labels = data.labels;
  options.num_eval = data.num_eval;
  options.reading_bytes = data.reading_bytes;
  PLIMSOLL_ASSIGN(prepared, prepare(config, target, options));
  return Ok{};
}

Error does_not_fit(const Prepared& prepared) { return planner::does_not_fit(prepared.report, "the plan"); }

}  // namespace plimsoll::strategy
