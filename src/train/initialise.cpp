#include "train/initialise.h"

#include <cstring>

#include "train/fp16_range.h"
#include "train/load_weights.h"

namespace plimsoll::train {

void write_constants(const Prepared& prepared, runtime::Session& session) {
  for (const models::Constant& c : prepared.model->constants())
    if (session.plan().find_state(c.name) != nullptr)
      std::memcpy(session.state(c.name).data, c.data.data(), c.data.size() * sizeof(float));
}

void write_random_state(runtime::Session& session, int64_t seed, int64_t step) {
  const auto bits = static_cast<uint64_t>(seed);
  auto* random = session.state(planner::kRandomState).as<int32_t>();
  random[0] = static_cast<int32_t>(static_cast<uint32_t>(bits));
  random[1] = static_cast<int32_t>(static_cast<uint32_t>(bits >> 32));
  random[2] = static_cast<int32_t>(step);
  random[3] = 0;
}

Result<std::optional<LoadReport>> initialise(const RunConfig& config, const Prepared& prepared,
                                             runtime::Session& session, bool pretrained, int num_threads) {
  write_constants(prepared, session);
  if (pretrained) {
    PLIMSOLL_ASSIGN(const std::string folder, model_directory(config.model));
    PLIMSOLL_ASSIGN(const ModelWeights weights, ModelWeights::open(folder));
    PLIMSOLL_ASSIGN(LoadReport report, load_weights(*prepared.model, weights, session, num_threads));
    if (auto fits = check_fp16_range(config, *prepared.model, session, num_threads); !fits)
      return std::move(fits).error().at(weights.directory());
    return std::optional(std::move(report));
  }
  write_random_state(session, config.training.seed, /*step=*/0);
  session.run(session.plan().find_program("init"));
  return std::optional<LoadReport>();
}

Result<bool> evaluates_weights(const ModelSettings& model) {
  if (model.init == "pretrained") return true;
  PLIMSOLL_ASSIGN(const std::string folder, model_directory(model));
  if (folder.empty()) return false;
  return ModelWeights::are_in(folder) || starts_pretrained(model);
}

}  // namespace plimsoll::train
