// A base tensor that adapters are merged into: in its stored dtype, or quantized and then dequantized.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/adapter_change.h"
#include "checkpoints/quantized_tensors.h"

namespace plimsoll::checkpoints {

class BaseTensor {
 public:
  /// Of plain numbers: F32, BF16, F16.
  static BaseTensor plain(const io::WeightRef& ref);
  /// What codes and scales stand for, in f32; `dtype` is what it is to be written in. Reads the scales; of
  /// one that is to be `turned`, [out, in] to [in, out], all of it. Errors: kBadData for scales; kIo.
  static Result<BaseTensor> dequantised(const QuantizedTensor& tensor, std::string dtype, bool turned);

  [[nodiscard]] const std::string& name() const { return ref_.tensor->name; }
  [[nodiscard]] const std::string& dtype() const { return dtype_; }
  [[nodiscard]] const std::vector<int64_t>& shape() const { return shape_; }
  [[nodiscard]] int64_t num_elements() const;
  [[nodiscard]] int64_t num_columns() const { return num_elements() / shape_[0]; }
  /// Elements [first, first + count). From any thread. Errors: kIo.
  [[nodiscard]] Result<Values> read(int64_t first, int64_t count) const;
  [[nodiscard]] Result<Values> read() const { return read(0, num_elements()); }

 private:
  [[nodiscard]] Result<Values> read_codes(int64_t first, int64_t count) const;
  io::WeightRef ref_;
  std::string dtype_;
  std::vector<int64_t> shape_;
  std::optional<QuantizedTensor> quantized_ = {};
  Values scales_ = {};
  Values turned_ = {};  ///< all of it, where it was turned
};

}  // namespace plimsoll::checkpoints
