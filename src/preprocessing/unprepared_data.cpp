#include "preprocessing/unprepared_data.h"

#include <utility>

#include "corpora/saved_dataset.h"

namespace plimsoll::preprocessing {
namespace {

/// A source for each entry where they are weighted, else one.
Result<std::vector<datasets::DataFiles>> sources_of(const std::vector<std::string>& entries,
                                                    const std::vector<double>& weights) {
  std::vector<datasets::DataFiles> sources;
  for (size_t i = 0; i < entries.size(); ++i) {
    PLIMSOLL_ASSIGN(const std::vector<std::string> paths, corpora::expand_data(entries[i]));
    if (sources.empty() || !weights.empty()) sources.push_back({.weight = weights.empty() ? 1 : weights[i]});
    sources.back().paths.insert(sources.back().paths.end(), paths.begin(), paths.end());
  }
  return sources;
}

}  // namespace

Result<RunData> unprepared_data(const settings::RunConfig& config, bool train) {
  const settings::DataSettings& data = config.data;
  if (data.eval_fraction > 0)
    return Error{ErrorCode::kInvalidArgument, "data.eval_fraction splits documents, and this task has none",
                 "data.eval_fraction", "name held-out data: data.eval"};
  RunData ready;
  ready.buckets.lengths = {data.sequence_length};
  if (train) {
    PLIMSOLL_ASSIGN(ready.train, sources_of(data.train, data.weights));
  }
  if (data.eval.empty()) return ready;
  for (const settings::EvalFiles::Set& set : data.eval.sets()) {
    PLIMSOLL_ASSIGN(auto files, sources_of(set.files, {}));
    ready.eval.push_back(std::move(files.front()));
    if (!data.eval.names.empty()) ready.eval_names.push_back(set.name);
  }
  return ready;
}

}  // namespace plimsoll::preprocessing
