#include "datasets/packing_layout.h"

namespace plimsoll::datasets::packing {

Status Layout::write(const Piece& piece) {
  report_.num_tokens += piece.segment.length;
  report_.num_targets += piece.targets;
  return sequences_.add(piece.segment);
}

Status Layout::flush() {
  if (pending_.empty()) return Ok{};
  if (options_.mode != PackMode::kBestFit) {
    for (const Piece& piece : pending_) PLIMSOLL_TRY(write(piece));
    pending_.clear();
    pending_tokens_ = 0;
    return sequences_.end();
  }
  lengths_.clear();
  for (const Piece& piece : pending_) lengths_.push_back(piece.segment.length);
  bins_.resize(pending_.size());
  const int32_t count = best_fit_.pack(lengths_, bins_);
  // By bin, and in a bin in the order of the data, which is the order of the file.
  starts_.assign(static_cast<size_t>(count) + 1, 0);
  for (const int32_t bin : bins_) ++starts_[static_cast<size_t>(bin) + 1];
  for (size_t bin = 1; bin < starts_.size(); ++bin) starts_[bin] += starts_[bin - 1];
  by_bin_.resize(pending_.size());
  for (size_t i = 0; i < pending_.size(); ++i)
    by_bin_[static_cast<size_t>(starts_[static_cast<size_t>(bins_[i])]++)] = static_cast<int32_t>(i);
  for (size_t i = 0; i < by_bin_.size(); ++i) {
    const auto piece = static_cast<size_t>(by_bin_[i]);
    PLIMSOLL_TRY(write(pending_[piece]));
    if (i + 1 == by_bin_.size() || bins_[static_cast<size_t>(by_bin_[i + 1])] != bins_[piece])
      PLIMSOLL_TRY(sequences_.end());
  }
  pending_.clear();
  pending_tokens_ = 0;
  return Ok{};
}

}  // namespace plimsoll::datasets::packing
