#include "io/tensor_stats.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "io/parallel.h"
#include "io/tensor_convert.h"

namespace plimsoll::io {
namespace {

/// Elements at once: a block is gone over three times, in the first-level cache.
constexpr int64_t kStatsBlock = 2048;
constexpr int64_t kBufferBytes = int64_t{64} << 10;
constexpr size_t kLanes = 8;

/// Mean and sum of squared differences from it.
struct Moments {
  double count = 0, mean = 0, squares = 0;

  void add(const Moments& other) {
    if (other.count == 0) return;
    const double total = count + other.count, delta = other.mean - mean;
    mean += delta * other.count / total;
    squares += other.squares + delta * delta * count * other.count / total;
    count = total;
  }
};

/// The sum of f over values, in lanes, so that additions need not wait for each other.
template <typename T, typename F>
double sum(std::span<const T> values, F&& f) {
  std::array<double, kLanes> lanes = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (size_t k = 0; k < kLanes; ++k) lanes[k] += f(static_cast<double>(values[i + k]));
  for (; i < values.size(); ++i) lanes[0] += f(static_cast<double>(values[i]));
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

template <typename T>
void add_block(std::span<const T> block, TensorStats& stats, Moments& moments) {
  std::array<T, kStatsBlock> finite;
  size_t count = 0;
  for (const T x : block) {
    finite[count] = x;
    count += std::abs(x) <= std::numeric_limits<T>::max() ? 1 : 0;  // false for a NaN
  }
  const std::span<const T> values(finite.data(), count);
  stats.elements += static_cast<int64_t>(block.size());
  if (values.empty()) return;
  T least = values[0], most = values[0];
  int64_t zeros = 0;
  for (const T x : values) {
    least = std::min(least, x);
    most = std::max(most, x);
    zeros += x == 0 ? 1 : 0;
  }
  stats.min =
      stats.finite == 0 ? static_cast<double>(least) : std::min(stats.min, static_cast<double>(least));
  stats.max = stats.finite == 0 ? static_cast<double>(most) : std::max(stats.max, static_cast<double>(most));
  stats.zeros += zeros;
  stats.finite += static_cast<int64_t>(count);
  const double mean = sum(values, [](double x) { return x; }) / static_cast<double>(count);
  const double squares = sum(values, [mean](double x) { return (x - mean) * (x - mean); });
  moments.add({static_cast<double>(count), mean, squares});
}

/// E4M3 (bias 7, no infinities, 0x7f is NaN) as f32; OCP 8-bit floating point specification.
float from_e4m3(uint8_t byte) {
  const int exponent = byte >> 3 & 15, mantissa = byte & 7;
  const float sign = (byte & 0x80) != 0 ? -1.0F : 1.0F;
  if ((byte & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

/// Any of the types but F64 to f32; `to` has room for a block.
void widen(std::string_view dtype, const std::byte* from, float* to, int64_t n) {
  if (const auto format = float_format(dtype)) return convert_to_f32(*format, from, to, n);
  if (dtype == "F8_E4M3") {
    for (int64_t i = 0; i < n; ++i) to[i] = from_e4m3(std::to_integer<uint8_t>(from[i]));
    return;
  }
  std::array<uint16_t, kStatsBlock> halves;  // E5M2 is the upper byte of an f16
  for (int64_t i = 0; i < n; ++i)
    halves[static_cast<size_t>(i)] = static_cast<uint16_t>(std::to_integer<int>(from[i]) << 8);
  convert_to_f32(FloatFormat::kF16, reinterpret_cast<const std::byte*>(halves.data()), to, n);
}

/// A piece of the payload, block by block.
void add_piece(std::string_view dtype, std::span<const std::byte> piece, TensorStats& stats,
               Moments& moments) {
  const auto element = static_cast<size_t>(dtype == "F64"            ? 8
                                           : dtype == "F32"          ? 4
                                           : dtype.starts_with("F8") ? 1
                                                                     : 2);
  for (size_t at = 0; at < piece.size(); at += kStatsBlock * element) {
    const size_t count = std::min<size_t>(kStatsBlock, (piece.size() - at) / element);
    if (dtype == "F64") {
      std::array<double, kStatsBlock> values;
      std::memcpy(values.data(), piece.data() + at, count * element);
      add_block(std::span<const double>(values.data(), count), stats, moments);
    } else {
      std::array<float, kStatsBlock> values;
      widen(dtype, piece.data() + at, values.data(), static_cast<int64_t>(count));
      add_block(std::span<const float>(values.data(), count), stats, moments);
    }
  }
}

}  // namespace

bool has_statistics(std::string_view dtype) {
  return float_format(dtype) || dtype == "F8_E4M3" || dtype == "F8_E5M2";
}

Result<TensorStats> measure_tensor(const SafetensorsFile& file, const SafetensorsTensor& tensor) {
  TensorStats stats;
  if (!has_statistics(tensor.dtype)) return stats;
  Moments moments;
  alignas(64) std::array<std::byte, kBufferBytes> buffer;
  for (int64_t at = 0; at < tensor.bytes; at += kBufferBytes) {
    const std::span<std::byte> piece(buffer.data(),
                                     static_cast<size_t>(std::min(kBufferBytes, tensor.bytes - at)));
    PLIMSOLL_TRY(file.read(tensor, at, piece));
    add_piece(tensor.dtype, piece, stats, moments);
  }
  stats.mean = moments.mean;
  stats.std = moments.count > 0 ? std::sqrt(moments.squares / moments.count) : 0;
  return stats;
}

Result<std::vector<TensorStats>> measure_tensors(const std::vector<WeightRef>& tensors, int num_threads) {
  std::vector<TensorStats> all(tensors.size());
  PLIMSOLL_TRY(in_parallel(tensors.size(), num_threads, [&](size_t i, size_t) -> Status {
    PLIMSOLL_ASSIGN(all[i], measure_tensor(*tensors[i].file, *tensors[i].tensor));
    return Ok{};
  }));
  return all;
}

}  // namespace plimsoll::io
