#include "backends/cpu/kernels/optimizer/adafactor_filters.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/optimizer/adafactor_vectors.h"

namespace plimsoll::cpu {

double AdafactorFilters::measure(int64_t filter) const {
  alignas(64) float g[kRun];
  alignas(64) float factor[kRun];
  const int64_t first = filter * f_.height * f_.width * f_.in;
  double squares = 0;
  for (int64_t c = 0; c < f_.in; c += kRun) {
    const int64_t n = std::min(kRun, f_.in - c), line = f_.width * f_.in;
    for (int64_t h = 0; h < f_.height; ++h)
      next_moments(0, place(filter, f_.height, h, c), first + h * line + c, f_.in, f_.width, n);
    for (int64_t w = 0; w < f_.width; ++w)
      next_moments(1, place(filter, f_.width, w, c), first + w * f_.in + c, line, f_.height, n);
    for (int64_t h = 0; h < f_.height; ++h)
      for (int64_t w = 0; w < f_.width; ++w) {
        load_gradient(call_, first + h * line + w * f_.in + c, n, g);
        factors(filter, h, w, c, n, factor);
        squares += static_cast<double>(adafactor_vectors::sum_of_scaled(g, factor, n));
      }
  }
  return squares;
}

void AdafactorFilters::next_moments(size_t state, int64_t place, int64_t first, int64_t stride, int64_t terms,
                                    int64_t count) const {
  alignas(64) float g[kRun];
  alignas(64) float sums[kRun];
  alignas(64) float unused[kRun];
  std::fill(sums, sums + count, 0.0F);
  for (int64_t t = 0; t < terms; ++t) {
    load_gradient(call_, first + t * stride, count, g);
    adafactor_vectors::add_squares(g, sums, count);
  }
  adafactor_vectors::next_moment(call_.new_states[state].as<float>() + place,
                                 call_.states[state].as<const float>() + place, sums,
                                 1.0F / static_cast<float>(terms), call_.group, unused, count);
}

void AdafactorFilters::factors(int64_t filter, int64_t h, int64_t w, int64_t input, int64_t count,
                               float* to) const {
  const float* rows = call_.new_states[0].as<const float>();
  alignas(64) float mean[kRun];
  std::fill(mean, mean + count, 0.0F);
  for (int64_t at = 0; at < f_.height; ++at)
    adafactor_vectors::add(rows + place(filter, f_.height, at, input), mean, count);
  adafactor_vectors::inverse_root(call_.new_states[1].as<const float>() + place(filter, f_.width, w, input),
                                  to, count);
  const float* row = rows + place(filter, f_.height, h, input);
  const auto height = static_cast<float>(f_.height);
  for (int64_t i = 0; i < count; ++i) to[i] *= std::sqrt(mean[i] / height / row[i]);
}

void AdafactorFilters::scale(int64_t at, int64_t n, float rate, float* values) const {
  alignas(64) float factor[kRun];
  const int64_t size = f_.height * f_.width * f_.in;
  for (int64_t i = 0, count = 0; i < n; i += count) {
    const int64_t filter = (at + i) / size, within = (at + i) % size, input = within % f_.in;
    count = std::min({kRun, n - i, f_.in - input});
    factors(filter, within / f_.in / f_.width, within / f_.in % f_.width, input, count, factor);
    adafactor_vectors::scale(values + i, factor, rate, count);
  }
}

}  // namespace plimsoll::cpu
