// Lengths that a run's documents are padded to: by the settings, and where those leave it open by the data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "datasets/shard.h"
#include "preprocessing/run_data.h"

namespace plimsoll::preprocessing {

Buckets buckets_by_settings(const settings::DataSettings& data) {
  Buckets buckets;
  if (data.buckets.count > 0) {
    buckets.lengths = datasets::even_lengths(data.sequence_length, data.buckets.count);
    return buckets;
  }
  buckets.lengths = data.buckets.lengths;
  if (buckets.lengths.empty() || buckets.lengths.back() != data.sequence_length)
    buckets.lengths.push_back(data.sequence_length);
  return buckets;
}

namespace {

/// Sequences that a mixture counts as, of which each source has its share.
constexpr double kMixedSequences = 1e9;

double weights_of(const std::vector<datasets::DataFiles>& files) {
  double sum = 0;
  for (const datasets::DataFiles& source : files) sum += source.weight;
  return sum;
}

/// Of a stream's sequences, which are whole, one stands for all.
Result<datasets::LengthCounts> lengths_of(const datasets::DataFiles& source,
                                          const datasets::PackOptions& pack, int64_t sequence_length,
                                          bool whole_rows) {
  datasets::LengthCounts lengths(sequence_length);
  std::vector<datasets::Shard> shards;
  for (const std::string& path : source.paths) {
    if (!datasets::is_shard(path)) continue;
    PLIMSOLL_ASSIGN(datasets::Shard shard, datasets::Shard::open(path));
    shards.push_back(std::move(shard));
  }
  const auto count_row = [&](const datasets::ShardDocument& document) -> Status {
    lengths.add(std::min(document.num_tokens(), sequence_length));
    return Ok{};
  };
  if (whole_rows)
    for (const datasets::Shard& shard : shards) PLIMSOLL_TRY(shard.visit_documents(count_row));
  else if (shards.empty())
    lengths.add(sequence_length);
  else
    PLIMSOLL_TRY(datasets::PackIndex::count_lengths(shards, pack, lengths));
  return lengths;
}

}  // namespace

Result<Buckets> buckets_of(const settings::RunConfig& config, const std::vector<datasets::DataFiles>& files,
                           bool eval, bool whole_rows) {
  const settings::DataSettings& data = config.data;
  Buckets buckets = buckets_by_settings(data);
  if (!data.buckets.given()) return buckets;
  const datasets::PackOptions pack = training_data_options(config, eval).pack;
  datasets::LengthCounts lengths(data.sequence_length);
  bool any_documents = false;
  for (const datasets::DataFiles& source : files) {
    PLIMSOLL_ASSIGN(const datasets::LengthCounts counted,
                    lengths_of(source, pack, data.sequence_length, whole_rows));
    // Of several sources each counts as often as it is drawn.
    const bool alone = files.size() == 1;
    const double share = alone ? 1 : source.weight / weights_of(files);
    lengths.add_scaled(counted, alone ? counted.num_sequences() : std::llround(share * kMixedSequences));
    any_documents |= std::any_of(source.paths.begin(), source.paths.end(), datasets::is_shard);
  }
  if (lengths.num_sequences() == 0) return buckets;
  if (!any_documents) {  // all sequences are whole
    buckets.lengths = {data.sequence_length};
    return buckets;
  }
  if (data.buckets.count > 0) buckets.lengths = datasets::choose_lengths(lengths, data.buckets.count);
  buckets.sequences = lengths.num_sequences();
  buckets.tokens = lengths.num_tokens();
  buckets.positions = datasets::padded_positions(lengths, buckets.lengths);
  return buckets;
}

std::string bucket_note(const Buckets& buckets) {
  if (buckets.lengths.size() < 2)
    return fmt::format("data.buckets: all sequences are in the bucket of {} tokens", buckets.lengths.back());
  std::string text = fmt::format("in buckets of {} tokens", fmt::join(buckets.lengths, ", "));
  if (buckets.sequences == 0) return text;
  const auto share = [&](int64_t positions) {
    return 100 * (1 - static_cast<double>(buckets.tokens) / static_cast<double>(positions));
  };
  return text + fmt::format(": {:.1f}% padding, with a single length {:.1f}%", share(buckets.positions),
                            share(buckets.sequences * buckets.lengths.back()));
}

int64_t order_host_bytes(const settings::RunConfig& config) {
  return config.data.buckets.given() ? datasets::BucketOrder::host_bytes(config.training.global_batch_size)
                                     : 0;
}

}  // namespace plimsoll::preprocessing
