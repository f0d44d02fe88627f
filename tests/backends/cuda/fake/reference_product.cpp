#include "reference_product.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include "narrow_product.h"

namespace fake {
namespace {

float f32_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float load(const void* data, int type, int64_t i) {
  if (type == kF32) return static_cast<const float*>(data)[i];
  if (is_narrow(type)) return narrow_value(data, type, i);
  const uint16_t bits = static_cast<const uint16_t*>(data)[i];
  if (type == kBf16) return f32_of(uint32_t{bits} << 16);
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}
void store(void* data, int type, int64_t i, float value) {
  if (type == kF32) {
    static_cast<float*>(data)[i] = value;
    return;
  }
  uint16_t bits = 0x7fff;
  if (type == kF16) {
    const auto half = static_cast<_Float16>(value);
    std::memcpy(&bits, &half, sizeof bits);
  } else if (value == value) {
    const uint32_t word = bits_of(value);
    bits = static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  }
  static_cast<uint16_t*>(data)[i] = bits;
}

/// Memory that the program's count of allocations does not see: a card's library has none of it.
template <typename T>
struct Uncounted {
  using value_type = T;
  Uncounted() = default;
  template <typename Other>
  Uncounted(const Uncounted<Other>&) {}
  static T* allocate(size_t count) { return static_cast<T*>(std::malloc(count * sizeof(T))); }
  static void deallocate(T* memory, size_t) { std::free(memory); }
  bool operator==(const Uncounted&) const { return true; }
};
using Numbers = std::vector<float, Uncounted<float>>;

/// op(x) as rows x columns of floats, row by row.
Numbers dense(const Matrix& x, const void* data, int64_t first, bool transposed, bool tf32) {
  const auto rows = static_cast<int64_t>(transposed ? x.columns : x.rows);
  const auto columns = static_cast<int64_t>(transposed ? x.rows : x.columns);
  Numbers all(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const float value = load(data, x.type, first + (transposed ? r * x.pitch + c : c * x.pitch + r));
      // The units read the upper bits and drop the rest.
      all[static_cast<size_t>(r * columns + c)] = tf32 ? f32_of(bits_of(value) & 0xffffe000u) : value;
    }
  return all;
}

/// Numbers [rows, columns] of an operand times their scales; its lines are rows or columns.
void scale(Numbers& numbers, const Scales& scales, int64_t rows, int64_t columns, bool lines_are_rows) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      numbers[static_cast<size_t>(r * columns + c)] *=
          lines_are_rows ? scale_of(scales, r, c, rows, columns) : scale_of(scales, c, r, columns, rows);
}

/// sums[m][n], k by k.
Numbers sums(const Numbers& a, const Numbers& b, size_t m, size_t n, size_t k, bool backwards) {
  Numbers all(m * n);
  for (size_t i = 0; i < m; ++i)
    for (size_t step = 0; step < k; ++step) {
      const size_t l = backwards ? k - 1 - step : step;
      const float x = a[i * k + l];
      for (size_t j = 0; j < n; ++j) all[i * n + j] += x * b[l * n + j];
    }
  return all;
}

void multiply(const MatrixProduct& p, int32_t batch) {
  const auto m = static_cast<size_t>(p.d.rows), n = static_cast<size_t>(p.d.columns);
  const auto k = static_cast<size_t>(p.a_transposed ? p.a.rows : p.a.columns);
  auto a = dense(p.a, p.a_data, batch * p.a.batch_stride, p.a_transposed, p.rounds_to_tf32);
  auto b = dense(p.b, p.b_data, batch * p.b.batch_stride, p.b_transposed, p.rounds_to_tf32);
  if (is_narrow(p.a.type)) {
    scale(a, p.a_scales, static_cast<int64_t>(m), static_cast<int64_t>(k), true);
    scale(b, p.b_scales, static_cast<int64_t>(k), static_cast<int64_t>(n), false);
  }
  const auto all = sums(a, b, m, n, k, p.sums_backwards);
  const int64_t c0 = batch * p.c.batch_stride, d0 = batch * p.d.batch_stride;
  for (size_t j = 0; j < n; ++j)
    for (size_t i = 0; i < m; ++i) {
      const auto row = static_cast<int64_t>(i), column = static_cast<int64_t>(j);
      float value = p.alpha * all[i * n + j];
      if (p.beta != 0) value += p.beta * load(p.c_data, p.c.type, c0 + column * p.c.pitch + row);
      if (p.epilogue == kBias) value += load(p.bias, p.bias_type, row);
      store(p.d_data, p.d.type, d0 + column * p.d.pitch + row, value);
    }
  for (size_t i = 0; p.epilogue == kSumRowsOfA && i < m; ++i) {
    float sum = 0;
    for (size_t l = 0; l < k; ++l) sum += a[i * k + l];
    store(p.bias, p.bias_type, static_cast<int64_t>(i), sum);
  }
  for (size_t j = 0; p.epilogue == kSumColumnsOfB && j < n; ++j) {
    float sum = 0;
    for (size_t l = 0; l < k; ++l) sum += b[l * n + j];
    store(p.bias, p.bias_type, static_cast<int64_t>(j), sum);
  }
}

}  // namespace

void multiply(const MatrixProduct& product) {
  for (int32_t batch = 0; batch < product.d.batch; ++batch) multiply(product, batch);
}

}  // namespace fake
