// Conversions from f32 and back, one thread, as a share of the copy bandwidth: each turn copies an array with
// memcpy and then converts one, so that whatever else the machine does falls on both. Bytes are those read
// and written. "large" lies beyond every cache, "small" within the second level.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "numerics/blocks.h"
#include "numerics/convert.h"

namespace plimsoll::numerics {
namespace {

constexpr size_t kSmall = size_t{1} << 16, kLarge = size_t{1} << 24;

struct Arrays {
  std::vector<float> x, y;
  std::vector<std::byte> codes, scales;
  explicit Arrays(size_t n) : x(n), y(n), codes(4 * n), scales(n) {
    for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i * 2654435761u % 2003) / 1001.5f - 1.0f;
  }
};

/// Of this thread alone: what others take of the processor is not ours.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double seconds_of(const auto& work) {
  const double start = thread_seconds();
  work();
  return thread_seconds() - start;
}

/// `work` reads and writes `bytes`.
void in_turn(benchmark::State& state, Arrays& a, double bytes, const auto& work) {
  const size_t copied = a.x.size() * sizeof(float);
  double copying = 0, working = 0;
  for (auto _ : state) {
    copying += seconds_of([&] { std::memcpy(a.y.data(), a.x.data(), copied); });
    benchmark::ClobberMemory();
    const double seconds = seconds_of(work);
    benchmark::ClobberMemory();
    working += seconds;
    state.SetIterationTime(seconds);
  }
  const double turns = static_cast<double>(state.iterations());
  state.counters["GB/s"] = bytes * turns / working * 1e-9;
  state.counters["of_copy"] = bytes / working / (2 * static_cast<double>(copied) / copying);
}

void encode_in_turn(benchmark::State& state, Format format, size_t n, Rounding rounding) {
  Arrays a(n);
  const auto codes =
      std::span(a.codes).first(static_cast<size_t>(encoded_bytes(format, static_cast<int64_t>(n))));
  in_turn(state, a, static_cast<double>(4 * n + codes.size()),
          [&] { encode(format, a.x, codes, {.rounding = rounding}); });
}

void decode_in_turn(benchmark::State& state, Format format, size_t n) {
  Arrays a(n);
  const auto codes =
      std::span(a.codes).first(static_cast<size_t>(encoded_bytes(format, static_cast<int64_t>(n))));
  encode(format, a.x, codes);
  in_turn(state, a, static_cast<double>(4 * n + codes.size()), [&] { decode(format, codes, a.y); });
}

void quantize_in_turn(benchmark::State& state, Scheme scheme, size_t n) {
  Arrays a(n);
  const int64_t cols = 1024, rows = static_cast<int64_t>(n) / cols;
  const auto codes = std::span(a.codes).first(static_cast<size_t>(rows * code_row_bytes(scheme, cols)));
  const auto scales = std::span(a.scales).first(
      static_cast<size_t>(scale_rows(scheme, rows) * scale_cols(scheme, cols) * scale_bytes(scheme)));
  in_turn(state, a, static_cast<double>(4 * n + codes.size() + scales.size()), [&] {
    const auto tensor = tensor_scale(scheme, info(scheme).has_tensor_scale ? largest_magnitude(a.x) : 0);
    quantize(scheme, tensor, a.x, rows, cols, codes, scales);
  });
}

void dequantize_in_turn(benchmark::State& state, Scheme scheme, size_t n) {
  Arrays a(n);
  const int64_t cols = 1024, rows = static_cast<int64_t>(n) / cols;
  const auto codes = std::span(a.codes).first(static_cast<size_t>(rows * code_row_bytes(scheme, cols)));
  const auto scales = std::span(a.scales).first(
      static_cast<size_t>(scale_rows(scheme, rows) * scale_cols(scheme, cols) * scale_bytes(scheme)));
  const auto tensor = tensor_scale(scheme, info(scheme).has_tensor_scale ? largest_magnitude(a.x) : 0);
  quantize(scheme, tensor, a.x, rows, cols, codes, scales);
  in_turn(state, a, static_cast<double>(4 * n + codes.size() + scales.size()),
          [&] { dequantize(scheme, tensor, codes, scales, rows, cols, a.y); });
}

void add(const std::string& name, const auto& body) {
  for (const auto& [size, n] : {std::pair{"large", kLarge}, std::pair{"small", kSmall}})
    benchmark::RegisterBenchmark(("convert/" + name + "/" + size).c_str(),
                                 [body, n](benchmark::State& state) { body(state, n); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(0.1);
}

const bool kRegistered = [] {
  for (const FormatInfo& f : formats()) {
    const std::string name(f.name);
    const Format format = f.format;
    add(name + "/encode", [format](benchmark::State& state, size_t n) {
      encode_in_turn(state, format, n, Rounding::kNearestEven);
    });
    add(name + "/decode", [format](benchmark::State& state, size_t n) { decode_in_turn(state, format, n); });
    if (format == Format::kBf16 || format == Format::kE4m3)
      add(name + "/stochastic", [format](benchmark::State& state, size_t n) {
        encode_in_turn(state, format, n, Rounding::kStochastic);
      });
  }
  for (const SchemeInfo& s : schemes())
    if (s.block_rows > 0) {
      add(std::string(s.name) + "/quantize",
          [scheme = s.scheme](benchmark::State& state, size_t n) { quantize_in_turn(state, scheme, n); });
      add(std::string(s.name) + "/dequantize",
          [scheme = s.scheme](benchmark::State& state, size_t n) { dequantize_in_turn(state, scheme, n); });
    }
  return true;
}();

}  // namespace
}  // namespace plimsoll::numerics
