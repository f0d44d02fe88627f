#include "training/update_counts.h"

#include <fmt/format.h>

#include <span>

namespace plimsoll::training {

Result<UpdateCounts> UpdateCounts::read(const models::Model& model, const runtime::Session& session,
                                        int64_t step, int64_t micro_batches) {
  UpdateCounts counts;
  counts.step_ = step;
  counts.micro_batches_ = micro_batches;
  for (const models::BatchNormLayer& layer : model.batch_norms()) {
    if (layer.statistics != models::NormStatistics::kBatch) continue;
    Count count{fmt::format("{}.{}", layer.name, models::kUpdateCount)};
    PLIMSOLL_ASSIGN(count.value, session.value<int64_t>(count.state));
    counts.counts_.push_back(std::move(count));
  }
  return counts;
}

Status UpdateCounts::write(runtime::Session& session, int64_t step) const {
  for (const Count& count : counts_) {
    const int64_t value = count.value + (step - step_) * micro_batches_;
    PLIMSOLL_TRY(session.write(count.state, std::as_bytes(std::span(&value, 1))));
  }
  return Ok{};
}

}  // namespace plimsoll::training
