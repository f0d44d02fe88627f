// Quantized matrices from which adapters are initialised: what adapter and codes become of W's own
// numbers, while these are there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "checkpoints/adapter_start.h"
#include "checkpoints/load_weights.h"

namespace plimsoll::checkpoints {

struct QuantizedStart {
  std::vector<std::byte> storage;    ///< of the block type: codes, scales
  numerics::LowRankFactors factors;  ///< left: B [outs, rank]; right: A [rank, in]
};

/// What a matrix is and becomes.
struct QuantizedStartOptions {
  ir::TensorType type;      ///< the block type, as the matrix lies
  bool transposed = false;  ///< it lies as [in, out]
  AdaptedShape shape;
  models::Factors factors = models::Factors::kLoftq;
  int64_t iterations = 1;  ///< LoftQ's
};

/// kSvd, kQr: A and B are the principal part of W (QPiSSA), and W - s B A is rounded. kLoftq, each iteration:
/// W - s B A is rounded to Q, beginning with W, and s B A becomes the nearest of W - Q (algorithm 1 of
/// arXiv:2310.08659; PEFT's counts no s, which is the same where lora_alpha is r). One thread, the same bits
/// each time. Memory: as start_adapters_bytes says, `w` with it.
QuantizedStart start_quantized(std::vector<float> w, const QuantizedStartOptions& options);

/// Whether loading the source is begun by its adapter so.
bool starts_quantized(const models::Model& model, const WeightSource& source);

/// Reads the source's tensor, quantises it into its parameter's state, and gives its adapter A and B. Errors:
/// kBadData naming a tensor with a value that is not finite; kIo; of the device.
Status load_quantized_start(const models::Model& model, const WeightSource& source,
                            runtime::Session& session);

}  // namespace plimsoll::checkpoints
