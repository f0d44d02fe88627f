#include "checkpoints/load_buffers.h"

#include <algorithm>

#include "checkpoints/weight_names.h"
#include "io/tensor_convert.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

bool fits(const models::Buffer& buffer, const io::SafetensorsTensor& tensor) {
  if (buffer.is_count) return tensor.dtype == "I64" && tensor.bytes == 8;
  return std::ranges::equal(buffer.shape.dims(), tensor.shape) && io::float_format(tensor.dtype);
}

/// A count's words as they are, all else as f32.
Status load_buffer(const BufferSource& source, runtime::Session& session) {
  const io::SafetensorsTensor& tensor = *source.weight.tensor;
  std::vector<std::byte> stored(static_cast<size_t>(tensor.bytes));
  PLIMSOLL_TRY(source.weight.file->read(tensor, 0, stored));
  if (source.buffer->is_count) return session.write(source.buffer->name, stored);
  std::vector<float> values(static_cast<size_t>(source.buffer->shape.num_elements()));
  const io::FloatFormat format = *io::float_format(tensor.dtype);
  io::convert_to_f32(format, stored.data(), values.data(), std::ssize(values));
  return session.write(source.buffer->name, std::as_bytes(std::span(values)));
}

}  // namespace

BufferMatch match_buffers(const models::Model& model, const io::ModelWeights& weights) {
  BufferMatch match;
  for (const models::Buffer& buffer : model.buffers()) {
    const auto weight = find_weight(weights, buffer.view, model);
    if (weight)
      (fits(buffer, *weight->tensor) ? match.sources : match.misfit).push_back({&buffer, *weight});
    else if (!buffer.is_count)
      match.missing.push_back(&buffer);
  }
  return match;
}

Status load_buffers(const BufferMatch& match, runtime::Session& session) {
  for (const BufferSource& source : match.sources) PLIMSOLL_TRY(load_buffer(source, session));
  return Ok{};
}

}  // namespace plimsoll::checkpoints
