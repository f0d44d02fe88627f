// Brings sequences to where the programs read them.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "data/dataset.h"
#include "data/permutation.h"
#include "runtime/session.h"

namespace plimsoll::train {

/// Tokens and targets of micro-batches, written into the session's input states. Allocates nothing.
class BatchFeeder {
 public:
  /// `scratch` is the run's host buffer; all references outlive the feeder.
  BatchFeeder(const Dataset& dataset, runtime::Session& session, std::span<std::byte> scratch);

  /// Rows [first, first + micro batch) of `order`'s positions; a row from `end` on is empty: all targets
  /// ignored. Targets are the tokens moved left by one, the last is ignored. Returns the targets that count.
  Result<int64_t> feed(const BatchOrder& order, int64_t first, int64_t end);

 private:
  const Dataset& dataset_;
  runtime::TensorRef tokens_;
  runtime::TensorRef targets_;
  std::span<std::byte> scratch_;
};

}  // namespace plimsoll::train
