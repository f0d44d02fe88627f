// Lengths that a run's documents are padded to: by the settings, and where those leave it open by the data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "data/shard.h"
#include "train/run_data.h"

namespace plimsoll::train {

Buckets buckets_by_settings(const DataSettings& data) {
  Buckets buckets;
  if (data.buckets.count > 0) {
    buckets.lengths = even_lengths(data.sequence_length, data.buckets.count);
    return buckets;
  }
  buckets.lengths = data.buckets.lengths;
  if (buckets.lengths.empty() || buckets.lengths.back() != data.sequence_length)
    buckets.lengths.push_back(data.sequence_length);
  return buckets;
}

Result<Buckets> buckets_of(const RunConfig& config, const std::vector<DataFiles>& files, bool eval) {
  const DataSettings& data = config.data;
  Buckets buckets = buckets_by_settings(data);
  if (!data.buckets.given()) return buckets;
  const PackOptions pack = training_data_options(config, /*vocab_size=*/0, eval).pack;
  LengthCounts lengths(data.sequence_length);
  for (const DataFiles& source : files) {
    std::vector<Shard> shards;
    for (const std::string& path : source.paths) {
      if (!is_shard(path)) continue;  // a stream: its sequences are whole
      PLIMSOLL_ASSIGN(Shard shard, Shard::open(path));
      shards.push_back(std::move(shard));
    }
    PLIMSOLL_TRY(PackIndex::count_lengths(shards, pack, lengths));
  }
  if (lengths.num_sequences() == 0) return buckets;
  if (data.buckets.count > 0) buckets.lengths = choose_lengths(lengths, data.buckets.count);
  buckets.sequences = lengths.num_sequences();
  buckets.tokens = lengths.num_tokens();
  buckets.positions = padded_positions(lengths, buckets.lengths);
  return buckets;
}

std::string bucket_note(const Buckets& buckets) {
  if (buckets.lengths.size() < 2) return {};
  std::string text = fmt::format("in buckets of {} tokens", fmt::join(buckets.lengths, ", "));
  if (buckets.sequences == 0) return text;
  const auto share = [&](int64_t positions) {
    return 100 * (1 - static_cast<double>(buckets.tokens) / static_cast<double>(positions));
  };
  return text + fmt::format(": {:.1f}% padding, with one length {:.1f}%", share(buckets.positions),
                            share(buckets.sequences * buckets.lengths.back()));
}

int64_t order_host_bytes(const RunConfig& config) {
  return config.data.buckets.given() ? BucketOrder::host_bytes(config.training.global_batch_size) : 0;
}

}  // namespace plimsoll::train
