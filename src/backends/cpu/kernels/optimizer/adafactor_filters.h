// Adafactor's second moments of a convolution's filters [out, height, width, in]: for each output and input a
// matrix [height, width], whose row and column lie at [out, height, in] and [out, width, in]. Runs along the
// inputs are contiguous everywhere.
#pragma once

#include <cstdint>

#include "backends/cpu/kernels/optimizer/tensor_update.h"

namespace plimsoll::cpu {

class AdafactorFilters {
 public:
  explicit AdafactorFilters(const TensorUpdateCall& call) : call_(call), f_(call.param.type.shape) {}
  /// Moments of an output's filter; the sum of its update's squares.
  [[nodiscard]] double measure(int64_t filter) const;
  /// Gradients of elements [at, at + n) of the parameter -> their steps.
  void scale(int64_t at, int64_t n, float rate, float* values) const;

 private:
  static constexpr int64_t kRun = 256;  ///< inputs at once
  /// `count` sums of squares of `terms` gradients each, from `first` on and `stride` apart, into moments.
  void next_moments(size_t state, int64_t place, int64_t first, int64_t stride, int64_t terms,
                    int64_t count) const;
  /// 1 / sqrt of the second moments of a run of inputs.
  void factors(int64_t filter, int64_t h, int64_t w, int64_t input, int64_t count, float* to) const;
  [[nodiscard]] int64_t place(int64_t filter, int64_t extent, int64_t at, int64_t input) const {
    return (filter * extent + at) * f_.in + input;
  }

  const TensorUpdateCall& call_;
  ops::FilterExtents f_;
};

}  // namespace plimsoll::cpu
