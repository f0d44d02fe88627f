// A band of rows of an op that quantises what another op computes (ops/fused_quantize.h): the call of that
// other op, for the backends' kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "ops/fused_quantize.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::runtime {

class FusedBand {
 public:
  /// Of `call` the rows from `first` on, as many as `y` has, of `all`; `y`: where the result is computed.
  FusedBand(const KernelCall& call, const ops::FusedQuantize& fused, const TensorRef& y, int64_t first,
            int64_t all)
      : op_(call.op), num_inputs_(fused.num_inputs), first_(first), all_(all), rows_(y.shape().num_rows()) {
    num_outputs_ = call.outputs.size() - ops::num_copies(call.op->attrs) + 1;
    PLIMSOLL_CHECK(num_inputs_ <= kMost && num_outputs_ <= kMost, "more operands than fused ops have");
    for (size_t i = 0; i < num_inputs_; ++i)
      inputs_[i] = call.inputs[i].shape().rank() == 1 ? call.inputs[i] : band_of(call.inputs[i]);
    for (size_t i = 0; i < num_outputs_; ++i)
      outputs_[i] = i == fused.result ? y : band_of(call.outputs[i < fused.result ? i : i - 1]);
  }
  FusedBand(const FusedBand&) = delete;
  FusedBand& operator=(const FusedBand&) = delete;

  [[nodiscard]] KernelCall call() const {
    return {op_, std::span(inputs_).first(num_inputs_), std::span(outputs_).first(num_outputs_), {}};
  }

 private:
  static constexpr size_t kMost = 5;

  /// Of a dense matrix, or of a number a row.
  [[nodiscard]] TensorRef band_of(const TensorRef& ref) const {
    const int64_t cols = ref.num_elements() / all_;
    TensorRef part = ref;
    part.data += first_ * cols * ir::bits(ref.type.dtype) / 8;
    part.type.shape = cols == 1 ? ir::Shape{rows_} : ir::Shape{rows_, cols};
    part.strides = ir::dense_strides(part.type.shape);
    return part;
  }

  const ir::Op* op_;
  size_t num_inputs_, num_outputs_ = 0;
  int64_t first_, all_, rows_;
  std::array<TensorRef, kMost> inputs_ = {}, outputs_ = {};
};

}  // namespace plimsoll::runtime
