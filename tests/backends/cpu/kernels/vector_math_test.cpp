// Every function of vector_math-inl.h against libm in double, over the whole range of f32 and densely near
// zero, on every instruction set that this CPU has.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/vector_math_test.cpp"  // seen from tests/
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstddef>

#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

template <typename F>
void map(const float* x, float* y, size_t n, F f) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
}
void map_exp(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
}
void map_exp_non_positive(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return ExpNonPositive(d, v); });
}
void map_exp2_non_positive(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return Exp2NonPositive(d, v); });
}
void map_log(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return Log(d, v); });
}
void map_sigmoid(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
}
void map_tanh(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
}
void map_erf(const float* x, float* y, size_t n) {
  map(x, y, n, [](auto d, auto v) HWY_ATTR { return Erf(d, v); });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace plimsoll::cpu {
namespace {

HWY_EXPORT(map_exp);
HWY_EXPORT(map_exp_non_positive);
HWY_EXPORT(map_exp2_non_positive);
HWY_EXPORT(map_log);
HWY_EXPORT(map_sigmoid);
HWY_EXPORT(map_tanh);
HWY_EXPORT(map_erf);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = 1e-40f;
constexpr float kSmallestDenormal = 1.4e-45f;

// Calls body(name) with each instruction set of this CPU chosen in turn.
template <typename F>
void for_each_target(F body) {
  const int64_t supported = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(std::string(hwy::TargetName(target)), target);
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

// Bit patterns in steps of a prime over all of f32, [-12, 12] densely, and the special values; a multiple
// of 16.
std::vector<float> inputs() {
  std::vector<float> x = {0.0f,
                          -0.0f,
                          kInfinity,
                          -kInfinity,
                          kNan,
                          kDenormal,
                          -kDenormal,
                          kSmallestDenormal,
                          -kSmallestDenormal,
                          1.0f,
                          -1.0f,
                          88.72284f,
                          88.7229f,
                          -87.4f,
                          -103.9f,
                          -104.1f};
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 19997)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = -120000; i < 120000; ++i) x.push_back(static_cast<float>(i) * 1e-4f);
  while (x.size() % 16 != 0) x.push_back(1.0f);
  return x;
}

// Distance of y to the exact value in units of the last place of a float near it.
double ulps(float y, double exact) {
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : kInfinity;
  const float rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(y)) return rounded == y ? 0 : kInfinity;
  const int exponent = std::max(std::ilogb(exact == 0 ? 1e-300 : exact), -126);
  return std::fabs(static_cast<double>(y) - exact) / std::ldexp(1.0, exponent - 23);
}

struct Row {
  const char* name;
  void (*run)(const float*, float*, size_t);
  double (*exact)(double);
  double max_ulps;           // with fused multiply-add
  double max_ulps_portable;  // without
};

class VectorMath : public testing::TestWithParam<Row> {};

double sigmoid(double x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
// Flushed below the threshold that ExpNonPositive states; callers pass x <= 0.
double exp_non_positive(double x) { return x < static_cast<double>(-87.33f) ? 0 : std::exp(x); }
double exp2_non_positive(double x) { return x < -126 ? 0 : std::exp2(x); }

TEST_P(VectorMath, IsCloseToLibmInDouble) {
  const Row& row = GetParam();
  std::vector<float> x = inputs();
  if (std::string(row.name).ends_with("non_positive"))
    for (float& v : x) v = v > 0 ? -v : v;
  std::vector<double> exact(x.size());
  for (size_t i = 0; i < x.size(); ++i) exact[i] = row.exact(static_cast<double>(x[i]));
  for_each_target([&](const std::string& target, int64_t bit) {
    std::vector<float> y(x.size());
    row.run(x.data(), y.data(), x.size());
    double worst = 0;
    float at = 0;
    for (size_t i = 0; i < x.size(); ++i)
      if (const double u = ulps(y[i], exact[i]); u > worst) worst = u, at = x[i];
    const bool fused = bit == HWY_AVX2 || bit == HWY_AVX3;
    EXPECT_LE(worst, fused ? row.max_ulps : row.max_ulps_portable) << target << " at x = " << at;
    RecordProperty(target, std::to_string(worst));
  });
}

#define ROW(f, exact, ulps, portable)                                                                  \
  Row {                                                                                                \
#f, [](const float* x, float* y, size_t n) { HWY_DYNAMIC_DISPATCH(map_##f)                           \
                                                 (x, y, n); }, exact, ulps, \
                                                                                         portable \
  }
INSTANTIATE_TEST_SUITE_P(Functions, VectorMath,
                         testing::Values(ROW(exp, static_cast<double (*)(double)>(std::exp), 1.0, 2.0),
                                         ROW(exp_non_positive, exp_non_positive, 1.0, 2.0),
                                         ROW(exp2_non_positive, exp2_non_positive, 2.1, 2.5),
                                         ROW(log, static_cast<double (*)(double)>(std::log), 1.0, 2.0),
                                         ROW(sigmoid, sigmoid, 2.5, 3.5),
                                         ROW(tanh, static_cast<double (*)(double)>(std::tanh), 3.0, 4.0),
                                         ROW(erf, static_cast<double (*)(double)>(std::erf), 2.0, 3.0)),
                         [](const auto& test) { return std::string(test.param.name); });
#undef ROW

TEST(VectorMath, KeepsTheSignOfZero) {
  for_each_target([&](const std::string& target, int64_t) {
    std::vector<float> x(16, -0.0f), y(16);
    HWY_DYNAMIC_DISPATCH(map_tanh)(x.data(), y.data(), x.size());
    EXPECT_TRUE(std::signbit(y[0])) << target;
    HWY_DYNAMIC_DISPATCH(map_erf)(x.data(), y.data(), x.size());
    EXPECT_TRUE(std::signbit(y[0])) << target;
  });
}

}  // namespace
}  // namespace plimsoll::cpu
#endif
