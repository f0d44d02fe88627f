#include "checkpoints/quantize_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/units.h"
#include "checkpoints/adapter_change.h"
#include "io/parallel.h"
#include "io/tree.h"
#include "numerics/bitsandbytes.h"
#include "numerics/dynamic_map.h"
#include "numerics/quantized.h"

namespace plimsoll::checkpoints {
namespace {

namespace bnb = numerics::bitsandbytes;

constexpr int64_t kPieceValues = 1 << 17;  // whole blocks
/// From here on fp16 rounds to infinity.
constexpr float kBeyondFp16 = 65520.0F;

bnb::FourBit four_bit(const QuantizePlan& plan) {
  return plan.format == QuantizedFormat::kNf4 ? bnb::FourBit::kNf4 : bnb::FourBit::kFp4;
}

/// [out, in].
std::vector<int64_t> linear_shape(const io::SafetensorsTensor& matrix, const QuantizePlan& plan) {
  if (!plan.transposed) return matrix.shape;
  return {matrix.shape[1], matrix.shape[0]};
}

std::string state_text(const io::SafetensorsTensor& matrix, const QuantizePlan& plan) {
  const auto text = [](const char* value) { return io::Tree::of(std::string(value)); };
  const char* dtype = matrix.dtype == "F32" ? "float32" : matrix.dtype == "BF16" ? "bfloat16" : "float16";
  const std::vector<int64_t> shape = linear_shape(matrix, plan);
  io::Tree state =
      io::Tree::map({{"quant_type", text(plan.format == QuantizedFormat::kNf4 ? "nf4" : "fp4")},
                     {"blocksize", io::Tree::of(bnb::kBlock)},
                     {"dtype", text(dtype)},
                     {"shape", io::Tree::list({io::Tree::of(shape[0]), io::Tree::of(shape[1])})}});
  if (plan.nested) {
    state.set("nested_blocksize", io::Tree::of(bnb::kNestedBlock));
    state.set("nested_dtype", text("float32"));
    state.set("nested_offset", io::Tree::of(static_cast<double>(plan.offset)));
  }
  return io::to_json(state);
}

Result<Values> read_matrix(const io::WeightRef& ref, const QuantizePlan& plan, int num_threads) {
  const io::SafetensorsTensor& matrix = *ref.tensor;
  const int64_t rows = matrix.shape[0], cols = matrix.shape[1];
  Values values(static_cast<size_t>(rows * cols));
  const int64_t piece = std::max<int64_t>(1, kPieceValues / cols);
  PLIMSOLL_TRY(io::in_parallel(
      static_cast<size_t>(ceil_div(rows, piece)), num_threads, [&](size_t i, size_t) -> Status {
        const int64_t first = static_cast<int64_t>(i) * piece, count = std::min(piece, rows - first);
        PLIMSOLL_ASSIGN(const Values read, read_values(*ref.file, matrix, first * cols, count * cols));
        for (int64_t r = 0; r < count; ++r)
          for (int64_t c = 0; c < cols; ++c) {
            const int64_t to = plan.transposed ? c * rows + first + r : (first + r) * cols + c;
            values[static_cast<size_t>(to)] = read[static_cast<size_t>(r * cols + c)];
          }
        return Ok{};
      }));
  return values;
}

template <typename T>
std::vector<std::byte> as_bytes_of(std::span<const T> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

Error not_finite(const io::WeightRef& ref, std::string_view what) {
  return {ErrorCode::kBadData,
          fmt::format("{} has values that are {}", io::shown_name(ref.tensor->name), what), ref.file->path(),
          "such a matrix cannot be quantized; is the model intact?"};
}

/// Codes and absmax of whole pieces.
struct FourBitCodes {
  std::vector<std::byte> codes;
  std::vector<float> absmax;
};

Status quantize_pieces(const io::WeightRef& ref, const Values& values, const QuantizePlan& plan,
                       int num_threads, FourBitCodes& to) {
  const auto n = static_cast<int64_t>(values.size());
  to.codes.resize(static_cast<size_t>(ceil_div(n, 2)));
  to.absmax.resize(static_cast<size_t>(ceil_div(n, bnb::kBlock)));
  return io::in_parallel(static_cast<size_t>(ceil_div(n, kPieceValues)), num_threads,
                         [&](size_t i, size_t) -> Status {
                           const size_t first = i * kPieceValues;
                           const size_t count = std::min<size_t>(kPieceValues, values.size() - first);
                           const auto piece = std::span(values).subspan(first, count);
                           if (!std::ranges::all_of(piece, [](float v) { return std::isfinite(v); }))
                             return not_finite(ref, "not finite");
                           numerics::quantize_four_bit(
                               four_bit(plan), piece, std::span(to.codes).subspan(first / 2, (count + 1) / 2),
                               std::span(to.absmax).subspan(
                                   first / bnb::kBlock,
                                   static_cast<size_t>(ceil_div(static_cast<int64_t>(count), bnb::kBlock))));
                           return Ok{};
                         });
}

/// Of codes with these scales; NaN where a value is not finite.
double largest_error(const Values& values, const FourBitCodes& codes, std::span<const float> scales,
                     const QuantizePlan& plan, int num_threads) {
  const auto pieces = static_cast<size_t>(ceil_div(static_cast<int64_t>(values.size()), kPieceValues));
  std::vector<double> errors(pieces, 0.0);
  (void)io::in_parallel(pieces, num_threads, [&](size_t i, size_t) -> Status {
    const size_t first = i * kPieceValues, count = std::min<size_t>(kPieceValues, values.size() - first);
    Values back(count);
    numerics::dequantize_four_bit(four_bit(plan), codes.codes.data(), static_cast<int64_t>(first),
                                  scales.data() + first / bnb::kBlock, std::span(back));
    for (size_t k = 0; k < count; ++k) {
      const double error = std::abs(static_cast<double>(values[first + k]) - static_cast<double>(back[k]));
      if (!(error <= errors[i])) errors[i] = error;
      if (std::isnan(error)) break;
    }
    return Ok{};
  });
  for (const double error : errors)
    if (!std::isfinite(error)) return error;
  return errors.empty() ? 0.0 : *std::max_element(errors.begin(), errors.end());
}

Result<QuantizedParts> quantize_four_bit(const io::WeightRef& ref, const QuantizePlan& plan,
                                         int num_threads) {
  PLIMSOLL_ASSIGN(const Values values, read_matrix(ref, plan, num_threads));
  FourBitCodes codes;
  PLIMSOLL_TRY(quantize_pieces(ref, values, plan, num_threads, codes));
  const std::string state = state_text(*ref.tensor, plan);
  const auto map = as_bytes_of(std::span<const float>(bnb::values_of(four_bit(plan))));
  QuantizedParts parts;
  if (plan.nested) {
    const bnb::Nested nested = bnb::quantize_absmax(codes.absmax, plan.offset);
    parts.largest_error = largest_error(values, codes, dequantize_absmax(nested), plan, num_threads);
    parts.bytes = {std::move(codes.codes),
                   as_bytes_of(std::span<const uint8_t>(nested.codes)),
                   map,
                   as_bytes_of(std::span<const float>(nested.absmax)),
                   as_bytes_of(std::span<const float>(numerics::signed_dynamic_map().values)),
                   as_bytes_of(std::span<const char>(state))};
  } else {
    parts.largest_error = largest_error(values, codes, codes.absmax, plan, num_threads);
    const auto absmax = as_bytes_of(std::span<const float>(codes.absmax));
    parts.bytes = {std::move(codes.codes), absmax, map, as_bytes_of(std::span<const char>(state))};
  }
  if (!std::isfinite(parts.largest_error)) return not_finite(ref, "not finite");
  return parts;
}

Result<QuantizedParts> quantize_rows(const io::WeightRef& ref, const QuantizePlan& plan, int num_threads) {
  PLIMSOLL_ASSIGN(const Values values, read_matrix(ref, plan, num_threads));
  const std::vector<int64_t> shape = linear_shape(*ref.tensor, plan);
  const auto rows = static_cast<size_t>(shape[0]), cols = static_cast<size_t>(shape[1]);
  std::vector<int8_t> codes(values.size());
  std::vector<float> scb(rows);
  std::vector<double> errors(rows, 0.0);
  PLIMSOLL_TRY(io::in_parallel(rows, num_threads, [&](size_t r, size_t) -> Status {
    const auto row = std::span(values).subspan(r * cols, cols);
    for (const float v : row)
      if (!(std::abs(v) < kBeyondFp16)) return not_finite(ref, "not finite in fp16");
    const auto to = std::span(codes).subspan(r * cols, cols);
    scb[r] = bnb::quantize_int8_row(row, to);
    for (size_t c = 0; c < cols; ++c)
      errors[r] = std::max(errors[r], std::abs(row[c] - static_cast<double>(to[c]) * scb[r] / 127));
    return Ok{};
  }));
  QuantizedParts parts;
  parts.largest_error = *std::max_element(errors.begin(), errors.end());
  parts.bytes = {as_bytes_of(std::span<const int8_t>(codes)), as_bytes_of(std::span<const float>(scb)),
                 std::vector<std::byte>(1)};
  return parts;
}

}  // namespace

std::vector<io::SafetensorsEntry> quantized_entries(const io::SafetensorsTensor& matrix,
                                                    const QuantizePlan& plan) {
  const std::string& name = matrix.name;
  const std::vector<int64_t> shape = linear_shape(matrix, plan);
  if (plan.format == QuantizedFormat::kInt8Rows) {
    const std::string module = name.substr(0, name.rfind('.') + 1);
    return {{name, "I8", shape}, {module + "SCB", "F32", {shape[0]}}, {module + "weight_format", "U8", {}}};
  }
  const int64_t n = shape[0] * shape[1], blocks = ceil_div(n, bnb::kBlock);
  std::vector<io::SafetensorsEntry> entries = {{name, "U8", {ceil_div(n, 2), 1}},
                                               {name + ".absmax", plan.nested ? "U8" : "F32", {blocks}},
                                               {name + ".quant_map", "F32", {16}}};
  if (plan.nested) {
    entries.push_back({name + ".nested_absmax", "F32", {ceil_div(blocks, bnb::kNestedBlock)}});
    entries.push_back({name + ".nested_quant_map", "F32", {256}});
  }
  const std::string type = plan.format == QuantizedFormat::kNf4 ? "nf4" : "fp4";
  const auto bytes = static_cast<int64_t>(state_text(matrix, plan).size());
  entries.push_back({name + ".quant_state.bitsandbytes__" + type, "U8", {bytes}});
  return entries;
}

Result<QuantizedParts> quantize_tensor(const io::WeightRef& matrix, const QuantizePlan& plan,
                                       int num_threads) {
  return plan.format == QuantizedFormat::kInt8Rows ? quantize_rows(matrix, plan, num_threads)
                                                   : quantize_four_bit(matrix, plan, num_threads);
}

Result<float> scales_mean(const io::WeightRef& matrix, const QuantizePlan& plan, int num_threads) {
  PLIMSOLL_ASSIGN(const Values values, read_matrix(matrix, plan, num_threads));
  FourBitCodes codes;
  PLIMSOLL_TRY(quantize_pieces(matrix, values, plan, num_threads, codes));
  return bnb::quantize_absmax(codes.absmax).offset;
}

}  // namespace plimsoll::checkpoints
