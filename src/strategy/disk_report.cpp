#include "strategy/disk_report.h"

#include <filesystem>

#include "checkpoints/disk_need.h"
#include "io/atomic_directory.h"
#include "models/language_model.h"
#include "preprocessing/data_files.h"
#include "preprocessing/run_data.h"

namespace plimsoll::strategy {
namespace {

/// Texts that are tokenized into the cache.
int64_t text_bytes(const settings::RunConfig& config) {
  const auto tokenizer = preprocessing::tokenizer_path(config);
  if (!tokenizer || *tokenizer == "bytes") return 0;
  int64_t bytes = 0;
  for (const auto* patterns : {&config.data.train, &config.data.eval.files})
    for (const std::string& file : preprocessing::files_of(*patterns)) {
      std::error_code code;
      const uintmax_t size = std::filesystem::file_size(file, code);
      if (code) continue;
      const preprocessing::FileKind kind = preprocessing::kind_of(file);
      if (kind == preprocessing::FileKind::kJson || kind == preprocessing::FileKind::kText)
        bytes += static_cast<int64_t>(size);
    }
  return bytes;
}

}  // namespace

planner::DiskReport disk_report(const settings::RunConfig& config, const io::ConfigJson& model_config,
                                const models::Model& model, const passes::SessionPlan& session) {
  constexpr int64_t kTextBytesPerToken = 4;
  const models::LanguageModel* language = models::as_language_model(model);
  const int64_t token_bytes = language == nullptr || language->vocab_size() <= 1 << 16 ? 2 : 4;
  const checkpoints::SavedBytes saved =
      checkpoints::saved_bytes(model, session, checkpoints::final_format(config, model_config, model));
  planner::DiskReport report{.checkpoint_bytes = saved.checkpoint,
                             .final_bytes = saved.final,
                             .cache_bytes = text_bytes(config) / kTextBytesPerToken * token_bytes,
                             .offload_bytes = session.pool(ir::MemorySpace::kDisk).total()};
  report.free_bytes = io::free_space(config.output.dir);
  const auto need =
      checkpoints::disk_need(checkpoints::save_schedule(config, config.training.max_steps, 0, saved));
  if (!need) return report;
  report.checkpoints = need->checkpoints;
  report.total_bytes = need->bytes + report.cache_bytes + report.offload_bytes;
  return report;
}

}  // namespace plimsoll::strategy
