// Batch normalisation over the micro-batches of all ranks of a run (torch's SyncBatchNorm), each of as many
// values. What the ranks exchange are rows of channels:
//
//   x ─ batch_statistics ─► own mean, variance ─ gather_ranks ─► [ranks, C] ─► mean, variance of all
//   dy ─ batch_norm_grad ─► dx with given statistics, own dw, db ─ gather_ranks ─► dw, db of all ─► dx
#pragma once

#include "ops/batch_norm.h"

namespace plimsoll::ops {

/// The statistics of all ranks' values, from each rank's own. The variance of all is the mean of own variance
/// and squared distance of own mean, of which no sum cancels.
BatchStatistics over_ranks(Builder& b, const BatchStatistics& own, int64_t ranks);

/// dx through the statistics of all ranks, from what it is with given statistics:
///   dx = given - weight * rstd * (db/M + xhat * dw/M), with M rows, db and dw of all ranks
/// `norm` is the op batch_norm, dw and db are f32 and this rank's.
ValueId through_ranks(Builder& b, const ir::Op& norm, ValueId given, ValueId dw, ValueId db);

}  // namespace plimsoll::ops
