#include "checkpoints/base_tensor.h"

#include <algorithm>

#include "numerics/quantized.h"

namespace plimsoll::checkpoints {
namespace {

namespace bnb = numerics::bitsandbytes;

}  // namespace

BaseTensor BaseTensor::plain(const io::WeightRef& ref) {
  BaseTensor base;
  base.ref_ = ref;
  base.dtype_ = ref.tensor->dtype;
  base.shape_ = ref.tensor->shape;
  return base;
}

Result<BaseTensor> BaseTensor::dequantised(const QuantizedTensor& tensor, std::string dtype, bool turned) {
  BaseTensor base;
  base.ref_ = tensor.weight;
  base.dtype_ = std::move(dtype);
  base.shape_ = tensor.shape;
  base.quantized_ = tensor;
  PLIMSOLL_ASSIGN(base.scales_, read_scales(tensor));
  if (!turned) return base;
  PLIMSOLL_ASSIGN(const Values values, base.read());
  base.turned_ =
      transpose(values, static_cast<size_t>(tensor.shape[0]), static_cast<size_t>(tensor.shape[1]));
  base.shape_ = {tensor.shape[1], tensor.shape[0]};
  return base;
}

int64_t BaseTensor::num_elements() const {
  int64_t n = 1;
  for (const int64_t extent : shape_) n *= extent;
  return n;
}

Result<Values> BaseTensor::read(int64_t first, int64_t count) const {
  if (!turned_.empty()) return Values(turned_.begin() + first, turned_.begin() + first + count);
  return quantized_ ? read_codes(first, count) : read_values(*ref_.file, *ref_.tensor, first, count);
}

Result<Values> BaseTensor::read_codes(int64_t first, int64_t count) const {
  Values values(static_cast<size_t>(count));
  if (quantized_->format == QuantizedFormat::kInt8Rows) {
    std::vector<std::byte> codes(values.size());
    PLIMSOLL_TRY(ref_.file->read(*ref_.tensor, first, codes));
    const int64_t columns = quantized_->shape[1];
    for (int64_t at = 0; at < count;) {
      const int64_t row = (first + at) / columns,
                    run = std::min(count - at, (row + 1) * columns - first - at);
      numerics::dequantize_row(codes.data() + at, scales_[static_cast<size_t>(row)],
                               std::span(values).subspan(static_cast<size_t>(at), static_cast<size_t>(run)));
      at += run;
    }
    return values;
  }
  const int64_t block = first / bnb::kBlock, begin = block * bnb::kBlock;
  std::vector<std::byte> codes(static_cast<size_t>((first + count + 1) / 2 - begin / 2));
  PLIMSOLL_TRY(ref_.file->read(*ref_.tensor, begin / 2, codes));
  numerics::dequantize_four_bit(
      quantized_->format == QuantizedFormat::kFp4 ? bnb::FourBit::kFp4 : bnb::FourBit::kNf4, codes.data(),
      first - begin, scales_.data() + block, values);
  return values;
}

}  // namespace plimsoll::checkpoints
