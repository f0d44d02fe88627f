// Reads and writes tensors of a session as callers see them: f32, filters as [out, in / groups, height,
// width], whatever they are kept in.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "checkpoints/file_order.h"
#include "runtime/session.h"

namespace plimsoll::library {

/// A parameter, or a buffer, by its state's name.
struct NamedTensor {
  std::string name;
  ir::Shape shape;                    ///< as callers see it
  checkpoints::FileOrder order = {};  ///< of its elements there
  bool is_count = false;              ///< an int64, see TracedBuffer
};

/// Elements from `first` on in the order of the storage, to the state and to its master. Errors: of the
/// device.
Status write_stored(runtime::Session& session, const std::string& state, int64_t first,
                    std::span<const float> values);

/// The whole tensor. Errors: of the device.
Status write_values(runtime::Session& session, const NamedTensor& tensor, std::span<const float> values);
Status read_values(const runtime::Session& session, const NamedTensor& tensor, std::span<float> values);
/// Values in the order of the storage become those that callers see.
void to_callers_order(const checkpoints::FileOrder& order, std::span<float> values);

}  // namespace plimsoll::library
