// Weights that transformers saved with bitsandbytes: which tensors of a model directory belong together, and
// whether they are what they say. All parts are checked against each other before a value is used.
//
//   4 bits   W.weight u8 [n/2, 1], W.weight.absmax f32 [blocks] (nested: u8), W.weight.quant_map f32 [16],
//            nested: W.weight.nested_absmax f32, W.weight.nested_quant_map f32 [256];
//            W.weight.quant_state.bitsandbytes__nf4 (or __fp4): JSON text as u8
//   8 bits   W.weight i8 [out, in], W.SCB f32 [out], W.weight_format u8 [] = 0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/model_weights.h"
#include "ir/dtype.h"

namespace plimsoll::checkpoints {

enum class QuantizedFormat : uint8_t { kNf4, kFp4, kInt8Rows };

/// One matrix. The references are valid as long as the tensors they were found in.
struct QuantizedTensor {
  QuantizedFormat format = QuantizedFormat::kNf4;
  std::vector<int64_t> shape;        ///< of the matrix, [out, in]
  std::string source_dtype;          ///< what it was made from, torch's name ("bfloat16"); empty: not said
  bool nested = false;               ///< its absmax are codes of the signed dynamic map
  float offset = 0;                  ///< what nested scales are relative to
  io::WeightRef weight;              ///< codes
  io::WeightRef absmax;              ///< of blocks of 64; int8: SCB, one a row
  io::WeightRef nested_absmax = {};  ///< where nested, of blocks of 256
  std::vector<const io::SafetensorsTensor*> parts = {};  ///< all tensors that it consists of
};
/// The block type that a parameter of these codes and scales has.
ir::DType block_type(const QuantizedTensor& tensor);

/// The fields of a quant_state tensor.
struct QuantState {
  std::string quant_type;
  int64_t blocksize = 0;
  std::string dtype;  ///< of the source, empty where it is not said
  std::vector<int64_t> shape;
  std::optional<int64_t> nested_blocksize;  ///< there: nested
  float nested_offset = 0;
};
/// Errors: kBadData for text that is no such object, blocks other than 64 and 256, a shape that is none or
/// whose product overflows, an offset that is not finite.
Result<QuantState> parse_quant_state(std::string_view json);

/// The quantised matrices among `tensors`, by the weight's name. Reads quant states and maps (1.2 kB a
/// matrix). Errors: kBadData naming the tensor: a part that lacks, of another dtype or size, a map that is
/// not bitsandbytes' own, another weight format than rows; kIo.
Result<std::map<std::string, QuantizedTensor>> find_quantized(std::span<const io::WeightRef> tensors);
Result<std::map<std::string, QuantizedTensor>> find_quantized(const io::ModelWeights& weights);

/// The absmax of each block, or of each row, in f32. Errors: kIo; kBadData where one is not finite.
Result<std::vector<float>> read_scales(const QuantizedTensor& tensor);

}  // namespace plimsoll::checkpoints
