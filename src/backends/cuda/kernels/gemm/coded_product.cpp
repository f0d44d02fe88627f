// The units read operands that lie along k, so codes that lie across are turned, and scales of blocks are
// laid out as cuBLASLt wants them; b goes by bands of the result's columns, as where it becomes bf16 numbers.
#include "backends/cuda/kernels/gemm/coded_product.h"

#include <algorithm>
#include <array>

#include "backends/cuda/kernels/gemm/coded_product_args.h"

namespace plimsoll::cuda {
namespace {

using numerics::Scheme;

constexpr int64_t kLeastBytes = 16;  // extents of matrices that the units read are multiples of these

int64_t code_bits(Scheme scheme) { return numerics::info(numerics::info(scheme).codes).stored_bits; }

/// Lines of an operand, as they lie and as they are laid.
struct CodedLines {
  size_t input;  ///< of the op: codes, behind them scales
  Scheme scheme;
  bool across;
  int64_t all, first, lines, k;

  [[nodiscard]] const numerics::SchemeInfo& info() const { return numerics::info(scheme); }
  /// Elements of k, and lines, that share a scale.
  [[nodiscard]] int64_t block_of_k() const { return across ? info().block_rows : info().block_cols; }
  [[nodiscard]] int64_t block_of_lines() const { return across ? info().block_cols : info().block_rows; }
  [[nodiscard]] int64_t scales_of_k() const { return ceil_div(k, block_of_k()); }
  [[nodiscard]] ScaleMode mode() const {
    if (info().block_rows == 0) return ScaleMode::kTensor;
    if (numerics::is_nvfp4(scheme)) return ScaleMode::kRow16;
    if (scheme == Scheme::kMxfp8) return ScaleMode::kRow32;
    return info().block_rows == 1 ? ScaleMode::kRow128 : ScaleMode::kTile128;
  }
  [[nodiscard]] CodeType type() const {
    if (numerics::is_nvfp4(scheme)) return CodeType::kE2m1;
    return scheme == Scheme::kE5m2 ? CodeType::kE5m2 : CodeType::kE4m3;
  }
  [[nodiscard]] int64_t code_bytes() const { return across ? lines * k * code_bits(scheme) / 8 : 0; }
  [[nodiscard]] int64_t laid_scales() const {
    if (mode() == ScaleMode::kTensor) return 0;  // it has no blocks
    const int64_t fours = round_up(scales_of_k(), int64_t{4});
    switch (mode()) {
      case ScaleMode::kRow128:
        return scales_of_k() * lines;
      case ScaleMode::kTile128:
        return fours * ceil_div(lines, int64_t{128});
      default:
        return fours * round_up(lines, int64_t{128});
    }
  }
  [[nodiscard]] int64_t scale_bytes() const { return laid_scales() * numerics::scale_bytes(scheme); }
};

CodedLines a_lines(const ScaledProduct& p) { return {0, p.a, p.a_across, p.m, 0, p.m, p.k}; }
CodedLines b_lines(const ScaledProduct& p, int64_t first) {
  return {2, p.b, p.b_across, p.n, first, std::min(p.band(), p.n - first), p.k};
}

/// Where an operand comes to lie.
struct CodedPlaces {
  std::byte *codes = nullptr, *scales = nullptr;
};
CodedPlaces take(Scratch& scratch, const CodedLines& o) {
  return {scratch.take<std::byte>(o.code_bytes()), scratch.take<std::byte>(o.scale_bytes())};
}

const void* codes_of(const KernelCall& call, const CodedLines& o, const CodedPlaces& to) {
  if (o.across) return to.codes;
  return call.inputs[o.input].data + o.first * (o.k * code_bits(o.scheme) / 8);
}
CodedOperand coded(const KernelCall& call, const CodedLines& o, const CodedPlaces& to) {
  const bool is_laid = o.mode() != ScaleMode::kTensor;
  return {.type = o.type(), .mode = o.mode(), .scales = is_laid ? to.scales : call.inputs[o.input + 1].data};
}

Status turn(const KernelCall& call, const CodedLines& o, const CodedPlaces& to, Stream& stream) {
  if (!o.across) return Ok{};
  TurnCodes a;
  a.from = call.inputs[o.input].as<const unsigned char>() + o.first * code_bits(o.scheme) / 8;
  a.to = reinterpret_cast<unsigned char*>(to.codes);
  a.bits = static_cast<int>(code_bits(o.scheme));
  a.row_bytes = o.all * a.bits / 8;
  a.rows = o.k;
  a.cols = o.lines;
  const int64_t tiles = ceil_div(a.rows, int64_t{kTurnTile}) * ceil_div(a.cols, int64_t{kTurnTile});
  return stream.launch(kTurnCodes, blocks(tiles, 1), {kThreads}, 0, a);
}

Status lay_scales(const KernelCall& call, const CodedLines& o, const CodedPlaces& to, Stream& stream) {
  if (o.mode() == ScaleMode::kTensor) return Ok{};
  LayScales a;
  a.from = call.inputs[o.input + 1].data;
  a.to = to.scales;
  a.layout = o.mode() == ScaleMode::kRow128    ? ScaleLayout::kByLines
             : o.mode() == ScaleMode::kTile128 ? ScaleLayout::kByTiles
                                               : ScaleLayout::kTiled;
  a.is_f32 = numerics::scale_bytes(o.scheme) == 4 ? 1 : 0;
  a.across = o.across ? 1 : 0;
  a.pitch = o.across ? ceil_div(o.all, o.block_of_lines()) : o.scales_of_k();
  a.first = o.first;
  a.lines = o.lines;
  a.block_of_lines = o.block_of_lines();
  a.scales_of_k = o.scales_of_k();
  a.n = o.laid_scales();
  return stream.launch(kLayScales, blocks(a.n, kThreads), {kThreads}, 0, a);
}

/// The product of a band, whose operands need not lie there yet.
Product band_product(const KernelCall& call, const ScaledProduct& p, const ScaledTarget& to,
                     const CodedLines& b, const std::array<CodedPlaces, 2>& places) {
  const CodedLines a = a_lines(p);
  Product product = to.band(p, b.first, b.lines);
  product.a = codes_of(call, a, places[0]);
  product.b = codes_of(call, b, places[1]);
  product.a_codes = coded(call, a, places[0]);
  product.b_codes = coded(call, b, places[1]);
  product.b_transposed = true;
  return product;
}

std::array<CodedPlaces, 2> places_of(Scratch& scratch, const ScaledProduct& p) {
  const CodedPlaces a = take(scratch, a_lines(p));
  return {a, take(scratch, b_lines(p, 0))};
}

}  // namespace

bool has_coded_units(const ScaledProduct& p, int capability) {
  const int64_t least = 8 * kLeastBytes / code_bits(p.a);
  if (p.m % kLeastBytes != 0 || p.n % kLeastBytes != 0 || p.k % least != 0) return false;
  const CodedLines a = a_lines(p), b = b_lines(p, 0);
  if ((a.across && a.info().block_rows == 1) || (b.across && b.info().block_rows == 1)) return false;
  const bool both_tiles = a.mode() == ScaleMode::kTile128 && b.mode() == ScaleMode::kTile128;
  const bool both_wide = a.type() == CodeType::kE5m2 && b.type() == CodeType::kE5m2;
  switch (a.mode()) {
    case ScaleMode::kTensor:
      return capability >= 89 && b.mode() == ScaleMode::kTensor && !both_wide;
    case ScaleMode::kRow128:
    case ScaleMode::kTile128:
      return capability == 90 && (b.mode() == ScaleMode::kRow128 || b.mode() == ScaleMode::kTile128) &&
             !both_tiles;
    default:
      return capability >= 100 && a.mode() == b.mode();
  }
}

int64_t coded_bytes(const ScaledProduct& p) {
  Scratch scratch;
  places_of(scratch, p);
  return scratch.bytes();
}

Result<bool> multiply_codes(const KernelCall& call, const ScaledProduct& p, const ScaledTarget& to,
                            std::byte* memory, Stream& stream) {
  if (!has_coded_units(p, stream.capability())) return false;
  Scratch scratch(memory);
  const std::array<CodedPlaces, 2> places = places_of(scratch, p);
  for (int64_t first = 0; first < p.n; first += p.band())
    if (!stream.multiplies(band_product(call, p, to, b_lines(p, first), places))) return false;
  PLIMSOLL_TRY(turn(call, a_lines(p), places[0], stream));
  PLIMSOLL_TRY(lay_scales(call, a_lines(p), places[0], stream));
  for (int64_t first = 0; first < p.n; first += p.band()) {
    const CodedLines b = b_lines(p, first);
    PLIMSOLL_TRY(turn(call, b, places[1], stream));
    PLIMSOLL_TRY(lay_scales(call, b, places[1], stream));
    PLIMSOLL_TRY(stream.multiply(band_product(call, p, to, b, places)));
  }
  return true;
}

}  // namespace plimsoll::cuda
