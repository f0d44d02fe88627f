#include "checkpoints/load_quantized.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

using Look = std::function<Status(std::span<const std::byte>)>;

/// A tensor's payload to the byte `at` of a state; `look` sees each piece.
Status copy_in(const io::WeightRef& from, int64_t at, std::string_view state, runtime::Session& session,
               const Look& look = {}) {
  return session.write_pieces(state, at, from.tensor->bytes,
                              [&](std::span<std::byte> place, int64_t offset) -> Status {
                                PLIMSOLL_TRY(from.file->read(*from.tensor, offset, place));
                                return look ? look(place) : Status(Ok{});
                              });
}

/// Scales that the largest `offset` may be added to. Pieces of a state begin and end at whole values.
Look finite_scales(const io::WeightRef& ref, float offset) {
  return [&ref, offset](std::span<const std::byte> piece) -> Status {
    PLIMSOLL_CHECK(piece.size() % sizeof(float) == 0, ref.tensor->name);
    for (size_t i = 0; i < piece.size(); i += sizeof(float)) {
      float scale = 0;
      std::memcpy(&scale, piece.data() + i, sizeof scale);
      if (!std::isfinite(std::fabs(scale) + std::fabs(offset)))
        return Error{ErrorCode::kBadData,
                     fmt::format("{} has a scale that is not finite", io::shown_name(ref.tensor->name)),
                     ref.file->path(), "save the model again, or quantize the original: plimsoll quantize"};
    }
    return Ok{};
  };
}

}  // namespace

Status load_quantized(const WeightSource& source, runtime::Session& session) {
  const std::string& state = source.parameter->name;
  const ir::TensorType& type = session.type(state);
  const QuantizedTensor& tensor = *source.quantized;
  const ir::Components parts = ir::components(type.dtype, type.num_elements(), type.shape.dim(-1));
  PLIMSOLL_CHECK(type.dtype == block_type(tensor) && tensor.weight.tensor->bytes == parts[0].bytes.count &&
                     tensor.absmax.tensor->bytes == parts[1].bytes.count,
                 state);
  PLIMSOLL_TRY(copy_in(tensor.weight, parts[0].offset, state, session));
  if (!tensor.nested)
    return copy_in(tensor.absmax, parts[1].offset, state, session, finite_scales(tensor.absmax, 0));
  PLIMSOLL_TRY(copy_in(tensor.absmax, parts[1].offset, state, session));
  PLIMSOLL_TRY(copy_in(tensor.nested_absmax, parts[2].offset, state, session,
                       finite_scales(tensor.nested_absmax, tensor.offset)));
  return session.write(state, std::as_bytes(std::span(&tensor.offset, 1)), parts[3].offset);
}

}  // namespace plimsoll::checkpoints
