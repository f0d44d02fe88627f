// DLPack's tensor, as its specification lays it out in memory (dmlc.github.io/dlpack, version 0.8): the part
// that both its managed and its plain form begin with.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "library/batch.h"

namespace plimsoll::library {

struct DlTensor {
  void* data;
  int32_t device_type, device_id;
  int32_t num_axes;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t* shape;
  int64_t* strides;  ///< in elements; null: dense
  uint64_t byte_offset;
};

/// `tensor` points to a DLTensor or a DLManagedTensor. Errors: kInvalidArgument for memory that is not the
/// host's, or elements of another type.
Result<Array> array_of_dlpack(const void* tensor);

}  // namespace plimsoll::library
