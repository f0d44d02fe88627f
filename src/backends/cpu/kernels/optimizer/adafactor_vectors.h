// Vectorized row operations of Adafactor over n f32 values.
#pragma once

#include <cstdint>

namespace plimsoll::cpu::adafactor_vectors {

/// sum += x
void add(const float* x, float* sum, int64_t n);
/// Adds the squares of g to `columns`; returns their sum.
float add_squares(const float* g, float* columns, int64_t n);
/// factors = 1 / sqrt(x)
void inverse_root(const float* x, float* factors, int64_t n);
/// moment = before * beta2 + (1 - beta2) * (sums * share + epsilon1), of the group's row; factors = 1 /
/// sqrt(moment)
void next_moment(float* moment, const float* before, const float* sums, float share, const float* group,
                 float* factors, int64_t n);
/// g = g * factors * factor
void scale(float* g, const float* factors, float factor, int64_t n);
/// squares = g * g
void square(const float* g, float* squares, int64_t n);
/// The sum of the squares of g * factors.
float sum_of_scaled(const float* g, const float* factors, int64_t n);
float sum_of_squares(const float* x, int64_t n);
/// step = moment * beta1 + rest * step
void take_in(const float* moment, float beta1, float rest, float* step, int64_t n);

}  // namespace plimsoll::cpu::adafactor_vectors
