// A warp that runs a function of device code on matrices, and the matrices. It is included within a file's
// own namespace, behind the device code.
#pragma once

/// What a kernel under test is given: matrices of f32, row by row.
struct Probe {
  const float *a = nullptr, *b = nullptr;
  float* d = nullptr;
};

/// Runs a warp.
template <void (*kFunction)(Probe)>
void run(const Probe& probe) {
  static char none[1];
  const twin::Kernel kernel{"probe", 32,  twin::Call<kFunction>::sizes, twin::Call<kFunction>::run,
                            none,    none};
  void* arguments[] = {const_cast<Probe*>(&probe)};
  ASSERT_EQ(twin::run_grid(kernel, {}, {32}, 32768, arguments, false), "");
}

/// Small whole numbers, which no dtype rounds and whose products' sums are exact.
std::vector<float> numbers(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> v(count);
  for (float& x : v) x = static_cast<float>(static_cast<int>(random() % 17) - 8);
  return v;
}
/// x [m, k] times y [k, n], or the rows of y [n, k] where `rows`.
std::vector<float> product(const std::vector<float>& x, const std::vector<float>& y, size_t m, size_t n,
                           size_t k, bool rows) {
  std::vector<float> d(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j)
      for (size_t c = 0; c < k; ++c) d[i * n + j] += x[i * k + c] * (rows ? y[j * k + c] : y[c * n + j]);
  return d;
}
