#include "ops/scaled_operand.h"

#include <algorithm>
#include <array>

#include "base/at.h"
#include "base/check.h"
#include "base/units.h"
#include "numerics/codes_to_bf16.h"
#include "ops/granules.h"
#include "ops/operands.h"

namespace plimsoll::ops {
namespace {

using numerics::Format;
using numerics::Scheme;

bool is_of_tensor(Scheme scheme) { return numerics::info(scheme).block_rows == 0; }

}  // namespace

Scheme scheme_of(const ir::Attrs& attrs, std::string_view attr) {
  const auto scheme = numerics::find_scheme(attrs.str(attr));
  PLIMSOLL_CHECK(scheme.has_value(), attrs.str(attr));
  return *scheme;
}

bool names_codes(const ir::Attrs& attrs, std::string_view attr) {
  using enum Format;
  const auto scheme = numerics::find_scheme(attrs.str(attr));
  const Format codes = scheme ? numerics::info(*scheme).codes : kFp32;
  return codes == kE4m3 || codes == kE5m2 || codes == kE2m1;
}

int64_t segment_of(const ir::Attrs& attrs) {
  return attrs.find("segment") == nullptr ? 0 : attrs.i64("segment");
}

ScaledProduct::ScaledProduct(const ir::Attrs& attrs, const ir::TensorType& c)
    : a(scheme_of(attrs, "a_scheme")),
      b(scheme_of(attrs, "b_scheme")),
      a_across(attrs.flag("a_across")),
      b_across(attrs.flag("b_across")),
      m(c.shape.num_rows()),
      n(attrs.i64("columns")),
      k(attrs.i64("inner")),
      segment(segment_of(attrs) > 0 ? std::min(k, segment_of(attrs)) : k),
      terms(attrs.find("terms") == nullptr ? segment : std::min(segment, attrs.i64("terms"))) {}

numerics::OperandForm form_of(const ir::Attrs& attrs) {
  return {scheme_of(attrs, "scheme"), attrs.flag("hadamard"), attrs.flag("stochastic")};
}

ir::Shape quantized_matrix(const ir::Shape& x, const ir::Attrs& attrs, bool transposed) {
  return transposed ? ir::Shape{x.dim(-1), TurnedRows(x, attrs).column(x.num_rows())} : x;
}

TurnedRows::TurnedRows(const ir::Shape& x, const ir::Attrs& attrs) : rows(x.num_rows()) {
  const bool by_sequence = attrs.flag("by_sequence");
  tokens = std::max<int64_t>(1, by_sequence ? Granules(x).segment() : rows);
  const int64_t block = numerics::info(scheme_of(attrs, "scheme")).block_cols;
  columns = by_sequence ? round_up(tokens, std::max<int64_t>(1, block)) : tokens;
}

int64_t TurnedRows::band_end(int64_t first, int64_t most) const {
  int64_t end = first + most;
  if (tokens != columns)
    end = tokens <= most ? first + most / tokens * tokens : std::min(end, (first / tokens + 1) * tokens);
  return std::min(rows, end);
}

ir::TensorType codes_type(Scheme scheme, const ir::Shape& matrix) {
  return {ir::DType::kU8, with_last(matrix, numerics::code_row_bytes(scheme, matrix.dim(-1)))};
}

ir::TensorType scales_type(Scheme scheme, const ir::Shape& matrix) {
  if (is_of_tensor(scheme)) return {ir::DType::kF32, ir::Shape{1}};
  const int64_t cols = numerics::scale_cols(scheme, matrix.dim(-1));
  const ir::DType dtype = numerics::scale_bytes(scheme) == 4 ? ir::DType::kF32 : ir::DType::kU8;
  if (numerics::info(scheme).block_rows == 1) return {dtype, with_last(matrix, cols)};
  return {dtype, ir::Shape{numerics::scale_rows(scheme, matrix.num_rows()), cols}};
}

OperandDraws::OperandDraws(const ir::Shape& x, bool is_transposed, const RandomStream& from)
    : stream(from), tokens(Granules(x).segment()), cols(x.dim(-1)), transposed(is_transposed) {}

OperandDraws::Run OperandDraws::at(int64_t row, int64_t col, int64_t length) const {
  const int64_t token = transposed ? col : row;
  const int64_t sequence = token / tokens, in_sequence = token % tokens;
  const int64_t element = transposed ? row * tokens + in_sequence : in_sequence * cols + col;
  Run run;
  run.key.seed = static_cast<uint64_t>(stream.seed_high) << 32 | stream.seed_low;
  run.key.stream = static_cast<uint64_t>(stream.op_key) << 32 | stream.step;
  const auto high = static_cast<uint64_t>(stream.sequence + static_cast<uint32_t>(sequence));
  run.key.first_element = (high << 34) + static_cast<uint64_t>(element);
  run.length = transposed ? std::min(length, tokens - in_sequence) : length;
  return run;
}

void quantize_run(const numerics::OperandForm& form, const numerics::TensorScale& tensor,
                  std::span<float> row, std::span<std::byte> codes, std::span<std::byte> scales,
                  const OperandDraws& draws, int64_t at_row, int64_t at_col) {
  if (form.hadamard) numerics::random_hadamard(row);
  const auto cols = static_cast<int64_t>(row.size());
  if (!form.stochastic) {
    const auto none = is_of_tensor(form.scheme) ? std::span<std::byte>{} : scales;
    numerics::quantize(form.scheme, tensor, row, 1, cols, codes, none);
    return;
  }
  for (int64_t col = 0; col < cols;) {
    const auto run = draws.at(at_row, at_col + col, cols - col);
    numerics::quantize_stochastically(tensor, row.subspan(at(col), at(run.length)),
                                      codes.subspan(at(col / 2), at(ceil_div(run.length, int64_t{2}))),
                                      scales.subspan(at(col / 16), at(ceil_div(run.length, int64_t{16}))),
                                      run.key);
    col += run.length;
  }
}

bool has_tensor_factor(Scheme a, Scheme b) {
  return numerics::info(a).has_tensor_scale || numerics::info(b).has_tensor_scale;
}

float product_factor(const TensorFactor& a, const TensorFactor& b) {
  constexpr float kInverse = 1.0F / (36.0F * 448.0F * 448.0F);
  if (numerics::is_nvfp4(a.scheme)) return *a.amax * *b.amax * kInverse;
  return is_of_tensor(a.scheme) ? *a.scales * *b.scales : 1.0F;
}

void dequantize_codes(Scheme scheme, const std::byte* codes, const std::byte* scales, int64_t cols,
                      int64_t row, int64_t col, std::span<uint16_t> out) {
  constexpr int64_t kPiece = 1024, kWidest = 128;  // a piece is whole blocks of every scheme
  constexpr numerics::TensorScale kUnit{.amax = 2688, .scale = 1, .decode = 1};
  const numerics::SchemeInfo& s = numerics::info(scheme);
  const std::byte* const row_codes = codes + row * numerics::code_row_bytes(scheme, cols);
  const int64_t scale_row = s.block_rows == 0 ? 0 : row / s.block_rows;
  const std::byte* const row_scales =
      scales + scale_row * numerics::scale_cols(scheme, cols) * numerics::scale_bytes(scheme);
  if (numerics::has_fp8_codes(scheme))
    return numerics::fp8_row_to_bf16(scheme, row_codes, row_scales, col, out);
  std::array<float, kPiece> numbers;
  for (const int64_t end = col + static_cast<int64_t>(out.size()); col < end;) {
    const int64_t begin = col / kWidest * kWidest, last = std::min({begin + kPiece, end, cols});
    const int64_t count = last - begin, bits = numerics::info(s.codes).stored_bits;
    const int64_t scale_count = numerics::scale_cols(scheme, count);
    const std::byte* const first_scale =
        s.block_cols == 0 ? row_scales : row_scales + begin / s.block_cols * numerics::scale_bytes(scheme);
    numerics::dequantize(scheme, kUnit,
                         {row_codes + begin * bits / 8, at(numerics::code_row_bytes(scheme, count))},
                         {first_scale, at(scale_count * numerics::scale_bytes(scheme))}, 1, count,
                         std::span(numbers).first(at(count)));
    const auto wanted = std::span(numbers).subspan(at(col - begin), at(last - col));
    numerics::encode(Format::kBf16, wanted, std::as_writable_bytes(out.first(wanted.size())));
    out = out.subspan(wanted.size());
    col = last;
  }
}

}  // namespace plimsoll::ops
