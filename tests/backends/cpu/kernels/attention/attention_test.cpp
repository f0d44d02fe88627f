// Attention against a plain fp64 reference over a table of shapes and masks, on every instruction set of this
// CPU; finite differences; the same bits for any number of threads and any batch; nothing written outside the
// outputs.
#include "backends/cpu/kernels/attention/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "hwy/targets.h"
#include "ops/philox.h"

namespace plimsoll::cpu {
namespace {

constexpr float kOutputGuard = 12345.678f;
constexpr size_t kGuardFloats = 64;

enum class Documents { kNone, kSome };

struct Case {
  AttentionShape shape;
  bool causal = true;
  int64_t window = 0;
  Documents documents = Documents::kNone;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << "B" << c.shape.batch << " T" << c.shape.tokens << " H" << c.shape.num_heads << "/"
       << c.shape.num_kv_heads << " D" << c.shape.head_dim << (c.causal ? " causal" : " full") << " window "
       << c.window << (c.documents == Documents::kSome ? " documents" : "");
}

// A tensor [batch, tokens, row] within rows of `stride`, everything else filled with a guard value.
struct Tensor {
  int64_t rows = 0, row = 0, stride = 0;
  std::vector<float> buffer;

  Tensor() = default;
  Tensor(int64_t rows_, int64_t row_, int64_t stride_)
      : rows(rows_),
        row(row_),
        stride(stride_),
        buffer(kGuardFloats * 2 + static_cast<size_t>(rows_ * stride_), kOutputGuard) {}
  float* data() { return buffer.data() + kGuardFloats; }
  float& at(int64_t r, int64_t c) { return data()[r * stride + c]; }
  void fill_random(std::mt19937& random, float size) {
    std::normal_distribution<float> normal(0.0f, size);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < row; ++c) at(r, c) = normal(random);
  }
  // True while everything but the tensor's own elements still holds the guard value.
  bool guards_intact() {
    for (size_t i = 0; i < buffer.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - static_cast<int64_t>(kGuardFloats);
      const bool own = at >= 0 && at < rows * stride && at % stride < row;
      if (!own && buffer[i] != kOutputGuard) return false;
    }
    return true;
  }
};

struct AttentionProblem {
  Case c;
  float scale = 1.0f;
  std::vector<int32_t> doc_start;
  Tensor qkv, out, dout, dqkv, lse;  // q, k, v lie in one row, as do dq, dk, dv

  int64_t k_offset() const { return c.shape.num_heads * c.shape.head_dim; }
  int64_t v_offset() const { return (c.shape.num_heads + c.shape.num_kv_heads) * c.shape.head_dim; }

  explicit AttentionProblem(const Case& case_, unsigned seed = 1) : c(case_) {
    const AttentionShape& s = c.shape;
    const int64_t rows = s.batch * s.tokens, row = (s.num_heads + 2 * s.num_kv_heads) * s.head_dim;
    scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
    qkv = Tensor(rows, row, row + 3);
    dqkv = Tensor(rows, row, row + 5);
    out = Tensor(rows, s.num_heads * s.head_dim, s.num_heads * s.head_dim + 1);
    dout = Tensor(rows, s.num_heads * s.head_dim, s.num_heads * s.head_dim + 2);
    lse = Tensor(s.batch * s.num_heads, s.tokens, s.tokens);
    std::mt19937 random(seed);
    qkv.fill_random(random, 1.5f);
    dout.fill_random(random, 1.0f);
    if (c.documents == Documents::kSome)
      for (int64_t b = 0; b < s.batch; ++b)
        for (int32_t t = 0, start = 0; t < s.tokens; ++t) {
          if (random() % 37 == 0) start = t;
          doc_start.push_back(start);
        }
  }
  AttentionArgs args() {
    return {.shape = c.shape,
            .q = qkv.data(),
            .k = qkv.data() + k_offset(),
            .v = qkv.data() + v_offset(),
            .q_token_stride = qkv.stride,
            .k_token_stride = qkv.stride,
            .v_token_stride = qkv.stride,
            .scale = scale,
            .causal = c.causal,
            .window = c.window,
            .doc_start = doc_start.empty() ? nullptr : doc_start.data(),
            .out = out.data(),
            .out_token_stride = out.stride,
            .lse = lse.data()};
  }
  AttentionBackwardArgs backward_args() {
    return {.forward = args(),
            .dout = dout.data(),
            .dout_token_stride = dout.stride,
            .dq = dqkv.data(),
            .dk = dqkv.data() + k_offset(),
            .dv = dqkv.data() + v_offset(),
            .dq_token_stride = dqkv.stride,
            .dk_token_stride = dqkv.stride,
            .dv_token_stride = dqkv.stride};
  }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    if (c.causal && j > i) return false;
    if (c.window > 0 && (j <= i - c.window || j >= i + c.window)) return false;
    if (doc_start.empty()) return true;
    const int32_t* doc = doc_start.data() + b * c.shape.tokens;
    return doc[i] == doc[j];
  }
  void run(int threads) {
    ThreadPool pool(threads);
    const auto aligned = [](std::vector<std::byte>& memory, int64_t bytes) {
      memory.assign(static_cast<size_t>(bytes) + 64 + 64, std::byte{0x5A});
      auto* p = memory.data();
      while (reinterpret_cast<uintptr_t>(p) % 64 != 0) ++p;
      return std::span<std::byte>(p, static_cast<size_t>(bytes));
    };
    const auto check_guard = [](std::vector<std::byte>& memory, std::span<std::byte> used) {
      for (auto* p = used.data() + used.size(); p < memory.data() + memory.size(); ++p)
        ASSERT_EQ(*p, std::byte{0x5A}) << "written behind the workspace";
      for (auto* p = memory.data(); p < used.data(); ++p) ASSERT_EQ(*p, std::byte{0x5A});
    };
    std::vector<std::byte> memory;
    const auto forward = aligned(memory, attention_forward_workspace_bytes(c.shape, threads));
    attention_forward(args(), pool, forward);
    check_guard(memory, forward);
    const auto backward = aligned(memory, attention_backward_workspace_bytes(c.shape, threads));
    attention_backward(backward_args(), pool, backward);
    check_guard(memory, backward);
  }
};

struct Reference {
  std::vector<double> out, lse, dqkv;
};

// Softmax by its definition, its gradient by the full Jacobian product.
Reference reference(AttentionProblem& p) {
  const AttentionShape& s = p.c.shape;
  Reference r;
  const int64_t row = p.qkv.row, D = s.head_dim;
  r.out.assign(static_cast<size_t>(s.batch * s.tokens * s.num_heads * D), 0.0);
  r.lse.assign(static_cast<size_t>(s.batch * s.num_heads * s.tokens), 0.0);
  r.dqkv.assign(static_cast<size_t>(s.batch * s.tokens * row), 0.0);
  std::vector<double> prob(static_cast<size_t>(s.tokens)), dprob(prob.size());
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.num_heads; ++h)
      for (int64_t i = 0; i < s.tokens; ++i) {
        const int64_t kv = h / (s.num_heads / s.num_kv_heads);
        const int64_t qc = h * D, kc = p.k_offset() + kv * D, vc = p.v_offset() + kv * D, base = b * s.tokens;
        double sum = 0, largest = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j < s.tokens; ++j) {
          double score = 0;
          for (int64_t d = 0; d < D; ++d)
            score += static_cast<double>(p.qkv.at(base + i, qc + d)) *
                     static_cast<double>(p.qkv.at(base + j, kc + d));
          prob[static_cast<size_t>(j)] = p.sees(b, i, j) ? score * static_cast<double>(p.scale)
                                                         : -std::numeric_limits<double>::infinity();
          largest = std::max(largest, prob[static_cast<size_t>(j)]);
        }
        for (double& x : prob) sum += x = std::exp(x - largest);
        for (double& x : prob) x /= sum;
        r.lse[static_cast<size_t>((b * s.num_heads + h) * s.tokens + i)] = largest + std::log(sum);
        double delta = 0;
        for (int64_t j = 0; j < s.tokens; ++j) {
          if (prob[static_cast<size_t>(j)] == 0) continue;
          double dp = 0;
          for (int64_t d = 0; d < D; ++d) {
            const double v = static_cast<double>(p.qkv.at(base + j, vc + d));
            const double g = static_cast<double>(p.dout.at(base + i, qc + d));
            r.out[static_cast<size_t>((base + i) * s.num_heads * D + qc + d)] +=
                prob[static_cast<size_t>(j)] * v;
            r.dqkv[static_cast<size_t>((base + j) * row + vc + d)] += prob[static_cast<size_t>(j)] * g;
            dp += g * v;
          }
          dprob[static_cast<size_t>(j)] = dp;
          delta += prob[static_cast<size_t>(j)] * dp;
        }
        for (int64_t j = 0; j < s.tokens; ++j) {
          if (prob[static_cast<size_t>(j)] == 0) continue;
          const double ds = prob[static_cast<size_t>(j)] * (dprob[static_cast<size_t>(j)] - delta) *
                            static_cast<double>(p.scale);
          for (int64_t d = 0; d < D; ++d) {
            r.dqkv[static_cast<size_t>((base + i) * row + qc + d)] +=
                ds * static_cast<double>(p.qkv.at(base + j, kc + d));
            r.dqkv[static_cast<size_t>((base + j) * row + kc + d)] +=
                ds * static_cast<double>(p.qkv.at(base + i, qc + d));
          }
        }
      }
  return r;
}

// ||got - want|| over columns [begin, end), relative to ||want|| there plus a fifth of that over all columns:
// some gradients are zero but for rounding.
double relative_error(Tensor& got, const std::vector<double>& want, int64_t begin, int64_t end) {
  double difference = 0, norm = 0, all = 0;
  for (int64_t r = 0; r < got.rows; ++r)
    for (int64_t c = 0; c < got.row; ++c) {
      const double w = want[static_cast<size_t>(r * got.row + c)], g = static_cast<double>(got.at(r, c));
      all += w * w;
      if (c < begin || c >= end) continue;
      difference += (g - w) * (g - w);
      norm += w * w;
    }
  return std::sqrt(difference) / (std::sqrt(norm) + 0.2 * std::sqrt(all));
}

// Calls body(name) with each instruction set of this CPU chosen in turn.
template <typename F>
void for_each_target(F body) {
  for (int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if ((target & (HWY_AVX3 | HWY_AVX2 | HWY_EMU128 | HWY_SCALAR)) == 0) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body(std::string(hwy::TargetName(target)));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

class Attention : public testing::TestWithParam<Case> {};

TEST_P(Attention, AgreesWithTheReference) {
  AttentionProblem problem(GetParam());
  const Reference want = reference(problem);
  for_each_target([&](const std::string& target) {
    AttentionProblem p(GetParam());
    p.run(2);
    EXPECT_LT(relative_error(p.out, want.out, 0, p.out.row), 2e-6) << target;
    EXPECT_LT(relative_error(p.lse, want.lse, 0, p.lse.row), 1e-6) << target;
    EXPECT_LT(relative_error(p.dqkv, want.dqkv, 0, p.k_offset()), 5e-6) << target << " dq";
    EXPECT_LT(relative_error(p.dqkv, want.dqkv, p.k_offset(), p.v_offset()), 5e-6) << target << " dk";
    EXPECT_LT(relative_error(p.dqkv, want.dqkv, p.v_offset(), p.dqkv.row), 5e-6) << target << " dv";
    for (Tensor* t : {&p.qkv, &p.out, &p.dout, &p.dqkv, &p.lse}) EXPECT_TRUE(t->guards_intact()) << target;
  });
}

TEST_P(Attention, GivesTheSameBitsForAnyThreads) {
  AttentionProblem one(GetParam());
  one.run(1);
  for (const int threads : {2, 3, 8}) {
    AttentionProblem many(GetParam());
    many.run(threads);
    EXPECT_EQ(one.out.buffer, many.out.buffer) << threads;
    EXPECT_EQ(one.lse.buffer, many.lse.buffer) << threads;
    EXPECT_EQ(one.dqkv.buffer, many.dqkv.buffer) << threads;
  }
}

TEST_P(Attention, GivesASequenceTheSameBitsAlone) {
  AttentionProblem many(GetParam());
  many.run(2);
  Case single = GetParam();
  single.shape.batch = 1;
  const AttentionShape& s = single.shape;
  for (int64_t b = 0; b < GetParam().shape.batch; ++b) {
    AttentionProblem one(single);
    const auto copy_rows = [&](Tensor& to, Tensor& from) {
      for (int64_t t = 0; t < to.rows; ++t) std::copy_n(&from.at(b * to.rows + t, 0), to.row, &to.at(t, 0));
    };
    copy_rows(one.qkv, many.qkv);
    copy_rows(one.dout, many.dout);
    for (size_t t = 0; t < one.doc_start.size(); ++t)
      one.doc_start[t] = many.doc_start[static_cast<size_t>(b * s.tokens) + t];
    one.run(2);
    AttentionProblem expected(single);
    copy_rows(expected.out, many.out);
    copy_rows(expected.dqkv, many.dqkv);
    copy_rows(expected.lse, many.lse);
    EXPECT_EQ(one.out.buffer, expected.out.buffer) << b;
    EXPECT_EQ(one.lse.buffer, expected.lse.buffer) << b;
    EXPECT_EQ(one.dqkv.buffer, expected.dqkv.buffer) << b;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(Case{{1, 1, 1, 1, 64}}, Case{{3, 1, 2, 1, 7}}, Case{{2, 5, 3, 1, 20}},
                    Case{{2, 64, 2, 2, 48}}, Case{{1, 65, 2, 1, 80}}, Case{{2, 127, 6, 2, 7}},
                    Case{{1, 130, 1, 1, 128}}, Case{{1, 513, 3, 1, 20}}, Case{{1, 300, 2, 2, 64}},
                    Case{{2, 100, 2, 2, 1}}, Case{{2, 77, 4, 2, 20}, false}, Case{{1, 300, 2, 1, 48}, false},
                    Case{{2, 200, 2, 1, 20}, true, 1}, Case{{1, 400, 2, 1, 20}, true, 70},
                    Case{{1, 200, 2, 1, 16}, false, 33}, Case{{1, 200, 1, 1, 16}, true, 1000},
                    Case{{1, 900, 2, 1, 16}, false, 65}, Case{{2, 70, 2, 1, 16}, false, 1},
                    Case{{1, 300, 1, 1, 16}, false, 1000},
                    Case{{2, 300, 4, 2, 20}, true, 0, Documents::kSome},
                    Case{{2, 300, 2, 1, 33}, false, 0, Documents::kSome},
                    Case{{1, 400, 2, 1, 64}, true, 50, Documents::kSome},
                    Case{{1, 700, 2, 1, 20}, false, 50, Documents::kSome}));

TEST(AttentionGradient, AgreesWithFiniteDifferences) {
  AttentionProblem p(Case{{1, 9, 2, 1, 5}, true, 6, Documents::kSome});
  p.run(1);
  Tensor gradient = p.dqkv;
  const auto loss = [&] {
    const Reference r = reference(p);
    double sum = 0;
    for (int64_t t = 0; t < p.out.rows; ++t)
      for (int64_t c = 0; c < p.out.row; ++c)
        sum += r.out[static_cast<size_t>(t * p.out.row + c)] * static_cast<double>(p.dout.at(t, c));
    return sum;
  };
  for (int64_t t = 0; t < p.qkv.rows; ++t)
    for (int64_t c = 0; c < p.qkv.row; ++c) {
      const float kept = p.qkv.at(t, c), up = kept + 1e-3f, down = kept - 1e-3f;
      p.qkv.at(t, c) = up;
      const double above = loss();
      p.qkv.at(t, c) = down;
      const double below = loss();
      p.qkv.at(t, c) = kept;
      const double slope = (above - below) / (static_cast<double>(up) - static_cast<double>(down));
      EXPECT_NEAR(static_cast<double>(gradient.at(t, c)), slope, 1e-4 * std::max(1.0, std::fabs(slope)))
          << t << " " << c;
    }
}

TEST(AttentionNumerics, KeepsWhatAMaskHidesOut) {
  // Values of other documents and of later tokens may be anything at all.
  AttentionProblem clean(Case{{1, 150, 2, 1, 20}, true, 0, Documents::kSome});
  for (size_t t = 0; t < clean.doc_start.size(); ++t) clean.doc_start[t] = t < 70 ? 0 : 70;
  AttentionProblem dirty = clean;
  for (int64_t t = 0; t < 70; ++t) dirty.qkv.at(t, dirty.v_offset()) = std::numeric_limits<float>::max();
  clean.run(2);
  dirty.run(2);
  for (int64_t t = 70; t < 150; ++t)
    for (int64_t c = 0; c < clean.out.row; ++c) ASSERT_EQ(clean.out.at(t, c), dirty.out.at(t, c)) << t;
}

TEST(AttentionNumerics, StandsLargeScores) {
  AttentionProblem p(Case{{1, 140, 1, 1, 16}});
  for (int64_t t = 0; t < p.qkv.rows; ++t)
    for (int64_t c = 0; c < p.v_offset(); ++c) p.qkv.at(t, c) *= 30.0f;
  const Reference want = reference(p);
  p.run(2);
  EXPECT_LT(relative_error(p.out, want.out, 0, p.out.row),
            1e-3);  // the scores themselves round at 1e3 * 2^-24
  EXPECT_LT(relative_error(p.lse, want.lse, 0, p.lse.row), 1e-6);
}

// Queries see four keys, each of which has a column of v to itself: what comes out is the mask.
TEST(AttentionDropout, DoesNotRepeatInLongSequences) {
  constexpr int64_t kTokens = 140'000, kWindow = 4;
  const AttentionShape shape{
      .batch = 1, .tokens = kTokens, .num_heads = 1, .num_kv_heads = 1, .head_dim = kWindow};
  const std::vector<float> zeros(static_cast<size_t>(kTokens * kWindow), 0.0f);
  std::vector<float> v = zeros, out = zeros;
  for (int64_t t = 0; t < kTokens; ++t) v[static_cast<size_t>(t * kWindow + t % kWindow)] = 1;
  AttentionArgs args{.shape = shape, .q = zeros.data(), .k = zeros.data(), .v = v.data()};
  args.q_token_stride = args.k_token_stride = args.v_token_stride = args.out_token_stride = kWindow;
  args.window = kWindow;
  args.dropout = {.on = true, .threshold = 0x80000000U, .inverse_keep = 2, .stream = {1, 2, 3, 4, 5}};
  args.out = out.data();
  ThreadPool pool(2);
  std::vector<std::byte> room(static_cast<size_t>(attention_forward_workspace_bytes(shape, 2)) + 64);
  void* begin = room.data();
  size_t size = room.size();
  std::align(64, size - 64, begin, size);
  attention_forward(args, pool, {static_cast<std::byte*>(begin), room.size() - 64});
  int64_t behind = 0, wrong = 0, as_before = 0;
  for (int64_t i = kWindow; i < kTokens; ++i)
    for (int64_t j = i - kWindow + 1; j <= i; ++j) {
      const uint64_t block = ops::attention_block(i, j, kTokens);
      const auto keeps = [&](const numerics::PhiloxCounter& words) {
        return words[static_cast<size_t>(j % 4)] >= args.dropout.threshold;
      };
      const bool kept = out[static_cast<size_t>(i * kWindow + j % kWindow)] != 0;
      wrong += kept != keeps(ops::attention_words(args.dropout.stream, block)) ? 1 : 0;
      if (block >> 32 == 0) continue;
      ++behind;
      as_before += kept == keeps(ops::attention_words(args.dropout.stream, block & 0xffffffffU)) ? 1 : 0;
    }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(behind, 60'000);
  EXPECT_NEAR(static_cast<double>(as_before) / static_cast<double>(behind), 0.5, 0.02) << "a near key's mask";
}

}  // namespace
}  // namespace plimsoll::cpu
