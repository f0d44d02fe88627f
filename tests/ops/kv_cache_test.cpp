// The cache of generation: filled in chunks it gives what attention over the whole sequence gives; operands
// that do not fit.
#include <gtest/gtest.h>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {
namespace {

/// Tokens [begin, end) of x [B, T, N, D].
RefTensor tokens_of(const RefTensor& x, int64_t begin, int64_t end) {
  const Shape& s = x.type.shape;
  const int64_t width = s.dim(2) * s.dim(3);
  std::vector<double> data;
  for (int64_t b = 0; b < s.dim(0); ++b)
    data.insert(data.end(), x.data.begin() + (b * s.dim(1) + begin) * width,
                x.data.begin() + (b * s.dim(1) + end) * width);
  return values({s.dim(0), end - begin, s.dim(2), s.dim(3)}, std::move(data));
}

TEST(KvCache, ChunksGiveWhatTheWholeSequenceGives) {
  const RefTensor q = normal({2, 9, 4, 3}, 1), k = normal({2, 9, 2, 3}, 2), v = normal({2, 9, 2, 3}, 3);
  for (const int64_t window : {0, 3})
    for (const int64_t chunk : {1, 2, 5, 9}) {
      const RefTensor whole =
          evaluate("attention", {q, k, v}, {{"scale", 0.7}, {"causal", true}, {"window", window}})[0];
      // What an earlier batch left behind is never seen.
      RefTensor keys = normal({2, 11, 2, 3}, 4), values = normal({2, 11, 2, 3}, 5);
      for (int64_t begin = 0; begin < 9; begin += chunk) {
        const int64_t end = std::min<int64_t>(begin + chunk, 9);
        const auto at = static_cast<double>(begin);
        const RefTensor start = ints({2}, {at, at});
        keys = evaluate("cache_update", {keys, tokens_of(k, begin, end), start})[0];
        values = evaluate("cache_update", {values, tokens_of(v, begin, end), start})[0];
        const RefTensor out = evaluate("attention_cached", {tokens_of(q, begin, end), keys, values, start},
                                       {{"scale", 0.7}, {"window", window}})[0];
        EXPECT_LT(distance(out, tokens_of(whole, begin, end)), 1e-13) << window << " " << begin;
      }
    }
}

TEST(KvCache, RowsStandWhereTheyStart) {
  const RefTensor cache = values({2, 3, 1, 1}, {1, 2, 3, 4, 5, 6}),
                  x = values({2, 2, 1, 1}, {10, 20, 30, 40});
  EXPECT_EQ(evaluate("cache_update", {cache, x, ints({2}, {0, 1})})[0].data,
            (std::vector<double>{10, 20, 3, 4, 30, 40}));
  EXPECT_EQ(evaluate("cache_update", {cache, x, ints({2}, {2, 3})})[0].data,
            (std::vector<double>{1, 2, 10, 4, 5, 6}))
      << "rows behind the end are dropped";
}

TEST(LinearFew, IsLinear) {
  const RefTensor x = normal({2, 1, 5}, 1), bias = normal({3}, 3);
  for (const bool transposed : {false, true}) {
    const RefTensor weight = normal(transposed ? Shape{5, 3} : Shape{3, 5}, 2);
    const Attrs attrs{{"transposed", transposed}};
    EXPECT_EQ(evaluate("linear_few", {x, weight, bias}, attrs)[0].data,
              evaluate("linear", {x, weight, bias}, attrs)[0].data);
  }
}

TEST(KvCache, SaysWhichOperandsDoNotFit) {
  const Attrs cached{{"scale", 1.0}, {"window", int64_t{0}}};
  const std::vector<ErrorCase> cases = {
      {"cache_update",
       {f32({2, 9, 2, 3}), f32({2, 1, 2, 4}), i32({2})},
       {},
       "x must be [B,T,kv_heads,head_dim]"},
      {"cache_update",
       {f32({2, 9, 2, 3}), f32({1, 1, 2, 3}), i32({2})},
       {},
       "x must be [B,T,kv_heads,head_dim]"},
      {"cache_update", {f32({2, 9, 6}), f32({2, 1, 2, 3}), i32({2})}, {}, "cache must be"},
      {"cache_update", {f32({2, 9, 2, 3}), f32({2, 1, 2, 3}), i32({3})}, {}, "start"},
      {"cache_update", {f32({2, 9, 2, 3}), f32({2, 1, 2, 3}), f32({2})}, {}, "start"},
      {"attention_cached",
       {f32({2, 1, 3, 4}), f32({2, 9, 2, 4}), f32({2, 9, 2, 4}), i32({2})},
       cached,
       "3 heads are no multiple of 2 kv heads"},
      {"attention_cached", {f32({2, 1, 4, 4}), f32({2, 9, 2, 4}), f32({2, 8, 2, 4}), i32({2})}, cached, "v"},
      {"attention_cached",
       {f32({2, 1, 4, 4}), f32({2, 9, 2, 5}), f32({2, 9, 2, 5}), i32({2})},
       cached,
       "k must be"},
      {"attention_cached",
       {f32({2, 1, 4, 4}), f32({2, 9, 2, 4}), f32({2, 9, 2, 4}), i32({2})},
       {{"scale", 1.0}, {"window", int64_t{-1}}},
       "window"},
  };
  for (const ErrorCase& c : cases) {
    const std::string error = operand_error(c);
    EXPECT_TRUE(error.starts_with(c.op + ": ")) << error;
    EXPECT_NE(error.find(c.what), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace plimsoll::ops_testing
