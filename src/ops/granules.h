// The granules of row reductions, the same for every backend: the order of their sums follows from it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"
#include "ir/shape.h"

namespace plimsoll::ops {

/// Rows.
inline constexpr int64_t kGranule = 256;

/// The granules of a reduction over the rows of an operand of that shape (ops.h): kGranule rows each,
/// restarting at each index of axis 0 where the rank is 3 or more.
class Granules {
 public:
  explicit Granules(const ir::Shape& shape)
      : rows_(shape.num_rows()), segment_(shape.rank() >= 3 && rows_ > 0 ? rows_ / shape.dim(0) : rows_) {}
  [[nodiscard]] int64_t rows() const { return rows_; }
  /// Rows between restarts.
  [[nodiscard]] int64_t segment() const { return segment_; }
  [[nodiscard]] int64_t per_segment() const { return ceil_div(segment_, kGranule); }
  [[nodiscard]] int64_t count() const { return segment_ == 0 ? 0 : rows_ / segment_ * per_segment(); }
  [[nodiscard]] int64_t begin(int64_t g) const {
    return g / per_segment() * segment_ + g % per_segment() * kGranule;
  }
  [[nodiscard]] int64_t end(int64_t g) const {
    return std::min(begin(g) + kGranule, (g / per_segment() + 1) * segment_);
  }

 private:
  int64_t rows_;
  int64_t segment_;
};

/// What a part of a sequence is a multiple of where head and loss go through it in chunks: a granule where
/// the weight's gradient is a sum over tokens; else no row knows of the others, and the products alone want
/// some.
inline constexpr int64_t kLossRows = 64;
constexpr int64_t loss_chunk_unit(bool has_dw) { return has_dw ? kGranule : kLossRows; }

/// The chunks in which head and loss go through the tokens of an operand of that shape: runs of whole
/// sequences, or parts of one in whole units.
class LossChunks {
 public:
  LossChunks(const ir::Shape& x, int64_t chunk_tokens, bool has_dw)
      : rows_(x.num_rows()), sequence_(Granules(x).segment()), whole_(sequence_ <= chunk_tokens) {
    const int64_t unit = loss_chunk_unit(has_dw);
    step_ = whole_ ? chunk_tokens / sequence_ * sequence_ : std::max(unit, chunk_tokens / unit * unit);
  }
  /// Of the chunk that begins there.
  [[nodiscard]] int64_t end(int64_t begin) const {
    const int64_t limit = whole_ ? rows_ : (begin / sequence_ + 1) * sequence_;
    return std::min(limit, begin + step_);
  }
  [[nodiscard]] int64_t max_rows() const { return end(0); }

 private:
  int64_t rows_, sequence_, step_ = 1;
  bool whole_;
};

}  // namespace plimsoll::ops
