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

void encode_in_turn(benchmark::State& state, numerics::Format format, size_t n, numerics::Rounding rounding) {
  Arrays a(n);
  const auto codes =
      std::span(a.codes).first(static_cast<size_t>(numerics::encoded_bytes(format, static_cast<int64_t>(n))));
  in_turn(state, a, static_cast<double>(4 * n + codes.size()),
          [&] { numerics::encode(format, a.x, codes, {.rounding = rounding}); });
}

void decode_in_turn(benchmark::State& state, numerics::Format format, size_t n) {
  Arrays a(n);
  const auto codes =
      std::span(a.codes).first(static_cast<size_t>(numerics::encoded_bytes(format, static_cast<int64_t>(n))));
  numerics::encode(format, a.x, codes);
  in_turn(state, a, static_cast<double>(4 * n + codes.size()), [&] { numerics::decode(format, codes, a.y); });
}

void quantize_in_turn(benchmark::State& state, numerics::Scheme scheme, size_t n) {
  Arrays a(n);
  const int64_t cols = 1024, rows = static_cast<int64_t>(n) / cols;
  const auto codes =
      std::span(a.codes).first(static_cast<size_t>(rows * numerics::code_row_bytes(scheme, cols)));
  const auto scales = std::span(a.scales).first(
      static_cast<size_t>(numerics::scale_rows(scheme, rows) * numerics::scale_cols(scheme, cols) *
                          numerics::scale_bytes(scheme)));
  in_turn(state, a, static_cast<double>(4 * n + codes.size() + scales.size()), [&] {
    const auto tensor = numerics::tensor_scale(
        scheme, numerics::info(scheme).has_tensor_scale ? numerics::largest_magnitude(a.x) : 0);
    numerics::quantize(scheme, tensor, a.x, rows, cols, codes, scales);
  });
}

void dequantize_in_turn(benchmark::State& state, numerics::Scheme scheme, size_t n) {
  Arrays a(n);
  const int64_t cols = 1024, rows = static_cast<int64_t>(n) / cols;
  const auto codes =
      std::span(a.codes).first(static_cast<size_t>(rows * numerics::code_row_bytes(scheme, cols)));
  const auto scales = std::span(a.scales).first(
      static_cast<size_t>(numerics::scale_rows(scheme, rows) * numerics::scale_cols(scheme, cols) *
                          numerics::scale_bytes(scheme)));
  const auto tensor = numerics::tensor_scale(
      scheme, numerics::info(scheme).has_tensor_scale ? numerics::largest_magnitude(a.x) : 0);
  numerics::quantize(scheme, tensor, a.x, rows, cols, codes, scales);
  in_turn(state, a, static_cast<double>(4 * n + codes.size() + scales.size()),
          [&] { numerics::dequantize(scheme, tensor, codes, scales, rows, cols, a.y); });
}

void add(const std::string& name, const auto& body) {
  for (const auto& size : {std::pair{"large", kLarge}, std::pair{"small", kSmall}})
    benchmark::RegisterBenchmark(("convert/" + name + "/" + size.first).c_str(),
                                 [body, n = size.second](benchmark::State& state) { body(state, n); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->MinTime(0.1);
}

const bool kRegistered = [] {
  for (const numerics::FormatInfo& f : numerics::formats()) {
    const std::string name(f.name);
    const numerics::Format format = f.format;
    add(name + "/encode", [format](benchmark::State& state, size_t n) {
      encode_in_turn(state, format, n, numerics::Rounding::kNearestEven);
    });
    add(name + "/decode", [format](benchmark::State& state, size_t n) { decode_in_turn(state, format, n); });
    if (format == numerics::Format::kBf16 || format == numerics::Format::kE4m3)
      add(name + "/stochastic", [format](benchmark::State& state, size_t n) {
        encode_in_turn(state, format, n, numerics::Rounding::kStochastic);
      });
  }
  for (const numerics::SchemeInfo& s : numerics::schemes())
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
