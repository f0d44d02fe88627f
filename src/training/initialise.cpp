#include "training/initialise.h"

#include <span>

#include "checkpoints/adapter_files.h"
#include "checkpoints/adapter_start.h"
#include "checkpoints/fp16_range.h"
#include "checkpoints/load_weights.h"
#include "settings/distributed.h"

namespace plimsoll::training {

Status write_constants(const models::Model& model, runtime::Session& session) {
  for (const models::Constant& c : model.constants())
    if (session.plan().find_state(c.name) != nullptr)
      PLIMSOLL_TRY(session.write(c.name, std::as_bytes(std::span(c.data))));
  return Ok{};
}

std::array<int32_t, 4> random_words(int64_t seed, int64_t step) {
  const auto bits = static_cast<uint64_t>(seed);
  return {static_cast<int32_t>(static_cast<uint32_t>(bits)),
          static_cast<int32_t>(static_cast<uint32_t>(bits >> 32)), static_cast<int32_t>(step), 0};
}

Status write_random_state(runtime::Session& session, int64_t seed, int64_t step) {
  const auto words = random_words(seed, step);
  return session.write(planner::kRandomState, std::as_bytes(std::span(words)));
}

bool are_parameters_shared(const settings::RunConfig& config, const runtime::Session& session) {
  return settings::shares_parameters(config.distributed) && !session.plan().shared.empty();
}

namespace {

/// Random parameters from training.seed.
Status draw(const settings::RunConfig& config, runtime::Session& session, passes::ProgramRole role) {
  PLIMSOLL_TRY(write_random_state(session, config.training.seed, /*step=*/0));
  return session.run(session.plan().find_program({role}));
}

/// What adapters begin as beside this base, which ranks that share it do together later
/// (Trainer::start_shared_parameters), and over that what lora.adapter names.
Status begin_adapters(const settings::RunConfig& config, const strategy::Prepared& prepared,
                      runtime::Session& session) {
  if (!are_parameters_shared(config, session))
    PLIMSOLL_TRY(checkpoints::start_adapters(*prepared.model, session));
  if (!config.lora.enabled || config.lora.adapter.empty()) return Ok{};
  return checkpoints::load_adapter(*prepared.model, config.lora.adapter, session);
}

}  // namespace

Result<std::optional<checkpoints::LoadReport>> initialise(const settings::RunConfig& config,
                                                          const strategy::Prepared& prepared,
                                                          runtime::Session& session, bool pretrained,
                                                          int num_threads) {
  PLIMSOLL_TRY(write_constants(*prepared.model, session));
  PLIMSOLL_TRY(checkpoints::draw_adapters(*prepared.model, config.training.seed, session));
  if (pretrained) {
    PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(config.model));
    PLIMSOLL_ASSIGN(const io::ModelWeights weights, io::ModelWeights::open(folder));
    // First, as what the files have takes the place of what was drawn.
    if (prepared.fresh_head) PLIMSOLL_TRY(draw(config, session, passes::ProgramRole::kInitHead));
    PLIMSOLL_ASSIGN(
        checkpoints::LoadReport report,
        checkpoints::load_weights(*prepared.model, weights, session, num_threads, prepared.fresh_head));
    PLIMSOLL_TRY(begin_adapters(config, prepared, session));
    Status fits = are_parameters_shared(config, session)
                      ? Ok{}
                      : checkpoints::check_fp16_range(config, *prepared.model, session, num_threads);
    if (!fits) return std::move(fits).error().at(weights.directory());
    return std::optional(std::move(report));
  }
  PLIMSOLL_TRY(draw(config, session, passes::ProgramRole::kInit));
  PLIMSOLL_TRY(begin_adapters(config, prepared, session));
  return std::optional<checkpoints::LoadReport>();
}

Result<bool> evaluates_weights(const settings::ModelSettings& model) {
  if (model.init == settings::FirstWeights::kPretrained) return true;
  PLIMSOLL_ASSIGN(const std::string folder, settings::model_directory(model));
  if (folder.empty()) return false;
  return io::ModelWeights::are_in(folder) || settings::starts_pretrained(model);
}

}  // namespace plimsoll::training
