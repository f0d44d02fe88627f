// The kinds of trained parameters: optimizers, adapters and quantization treat each kind in its own way.
#pragma once

#include <cstdint>

namespace plimsoll::ir {

/// Set by the model family; nothing concludes it from a shape.
enum class ParameterKind : uint8_t {
  kLinear,  ///< a linear map, [out, in] or [in, out], or several side by side
  kTable,  ///< rows that are looked up: an embedding, positions; no linear map, although a tied head reads it
           ///< as one
  kVector,   ///< a norm's weight, a bias: weight decay leaves it out
  kStack,    ///< linear maps of one shape, [maps, out, in]: experts
  kFilters,  ///< a convolution's, [out, height, width, in / groups]
};

}  // namespace plimsoll::ir
