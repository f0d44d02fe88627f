#include "checkpoints/quantize_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"
#include "io/tensor_convert.h"
#include "ops/block_values.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

/// What is read and quantised at once, in elements: in the second-level cache.
constexpr int64_t kRunElements = int64_t{32} << 10;

/// Whole blocks.
int64_t run_elements(const ir::TensorType& type) {
  const int64_t block = ops::quantized_block(type);
  return std::max<int64_t>(1, kRunElements / block) * block;
}

int64_t scratch_of(const ir::TensorType& type) {
  const int64_t blocks = ceil_div(type.num_elements(), ops::quantized_block(type));
  return run_elements(type) * (8 + 4 + 1) + 2 * blocks * 4 + 4096;
}

Status write_bytes(runtime::Session& session, const std::string& state, int64_t at,
                   std::span<const std::byte> bytes) {
  return session.write_pieces(state, at, static_cast<int64_t>(bytes.size()),
                              [&](std::span<std::byte> place, int64_t from) -> Status {
                                std::memcpy(place.data(), bytes.data() + from, place.size());
                                return Ok{};
                              });
}

Status not_finite(const WeightSource& source, int64_t element) {
  return Error{ErrorCode::kBadData,
               fmt::format("{} has a value that is not finite or too large, at element {}", source.view->name,
                           element),
               source.weight.file->path(), "such a weight cannot be quantized: repair the model's files"};
}

/// Elements [first, first + x) as f32, by way of `raw`; each such that it can be quantised.
Status read_run(const WeightSource& source, const ir::TensorType& type, int64_t first,
                std::span<std::byte> raw, std::span<float> x) {
  const io::FloatFormat format = *io::float_format(source.weight.tensor->dtype);
  const int64_t stored = io::element_bytes(format), count = static_cast<int64_t>(x.size());
  const std::span<std::byte> from = raw.first(static_cast<size_t>(count * stored));
  PLIMSOLL_TRY(source.weight.file->read(*source.weight.tensor, first * stored, from));
  if (format == io::FloatFormat::kF32)
    std::memcpy(x.data(), from.data(), from.size());
  else
    io::convert_to_f32(format, from.data(), x.data(), count);
  // int8 goes by way of fp16, as transformers does it.
  const float most = type.dtype == ir::DType::kI8Rows ? 65504.0F : std::numeric_limits<float>::max();
  const auto bad = std::ranges::find_if(x, [&](float v) { return !(std::fabs(v) <= most); });
  if (bad != x.end()) return not_finite(source, first + (bad - x.begin()));
  return Ok{};
}

}  // namespace

Result<std::vector<float>> read_finite(const WeightSource& source, const ir::TensorType& type) {
  std::vector<float> values(static_cast<size_t>(type.num_elements()));
  std::vector<std::byte> raw(static_cast<size_t>(kRunElements * 8));
  for (size_t first = 0; first < values.size(); first += kRunElements) {
    const size_t count = std::min<size_t>(kRunElements, values.size() - first);
    PLIMSOLL_TRY(
        read_run(source, type, static_cast<int64_t>(first), raw, std::span(values).subspan(first, count)));
  }
  return values;
}

Status read_quantized(const WeightSource& source, runtime::Session& session) {
  const std::string& state = source.parameter->name;
  const ir::TensorType& type = session.type(state);
  const int64_t elements = type.num_elements(), block = ops::quantized_block(type), run = run_elements(type);
  const int64_t stored = io::element_bytes(*io::float_format(source.weight.tensor->dtype));
  PLIMSOLL_CHECK(elements == source.view->shape.num_elements(), state);
  std::vector<std::byte> raw(static_cast<size_t>(run * stored)), codes(static_cast<size_t>(run));
  std::vector<float> values(static_cast<size_t>(run)), scales(static_cast<size_t>(ceil_div(elements, block)));
  for (int64_t first = 0; first < elements; first += run) {
    const int64_t count = std::min(run, elements - first);
    const std::span<float> x(values.data(), static_cast<size_t>(count));
    PLIMSOLL_TRY(read_run(source, type, first, raw, x));
    const int64_t bytes = ceil_div(count * ir::bits(type.dtype), int64_t{8});
    const std::span<std::byte> to(codes.data(), static_cast<size_t>(bytes));
    ops::quantize(type, x, to,
                  std::span(scales).subspan(static_cast<size_t>(first / block),
                                            static_cast<size_t>(ceil_div(count, block))));
    PLIMSOLL_TRY(write_bytes(session, state, first * ir::bits(type.dtype) / 8, to));
  }
  return write_bytes(session, state, ops::scales_offset(type), ops::stored_scales(type, scales));
}

int64_t quantize_scratch(const models::Model& model, int num_threads) {
  std::vector<int64_t> needs;
  for (const models::Parameter& p : model.parameters())
    if (ir::is_block(p.dtype) && !p.is_stored) needs.push_back(scratch_of({p.dtype, p.shape}));
  std::ranges::sort(needs, std::greater<>());
  int64_t bytes = 0;
  for (size_t i = 0; i < std::min(needs.size(), static_cast<size_t>(num_threads)); ++i) bytes += needs[i];
  return bytes;
}

}  // namespace plimsoll::checkpoints
