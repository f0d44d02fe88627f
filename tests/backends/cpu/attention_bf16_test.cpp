// Attention of bf16 operands on every instruction set: against the reference in double, within roundings to
// bf16; the same bits for any number of threads, strided or dense; what masks hide, and what rows see
// nothing.
#include "backends/cpu/kernels/attention_bf16.h"

#include <limits>
#include <ostream>

#include "kernel_harness.h"

namespace plimsoll::cpu::testing {
namespace {

constexpr double kBf16Step = 0x1p-8;
// A single element may lie as far off as the rounding of a weight near 1 takes it; all of them together less
// than the rounding of the result.
constexpr double kElement = 10 * kBf16Step, kNorm = 0.8 * kBf16Step;

Tensor bf16(const Tensor& t) { return as(DType::kBf16, t); }

struct Case {
  int64_t batch, tokens, heads, kv_heads, head_dim;
  bool causal = true;
  int64_t window = 0;
  int64_t document = 0;  ///< mean length; 0: one
  double dropout = -1;   ///< below 0: none
  double scale = 0.2;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << "B" << c.batch << " T" << c.tokens << " H" << c.heads << "/" << c.kv_heads << " D" << c.head_dim
       << (c.causal ? " causal" : " full") << " window " << c.window << " documents " << c.document
       << " dropout " << c.dropout << " scale " << c.scale;
}

Tensor documents(const Case& c) {
  if (c.document == 0) return absent();
  std::mt19937 random(5);
  std::vector<int32_t> starts;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int32_t t = 0, start = 0; t < c.tokens; ++t) {
      if (static_cast<int64_t>(random()) % c.document == 0) start = t;
      starts.push_back(start);
    }
  return ints({c.batch, c.tokens}, starts);
}

struct Problem {
  Attrs attrs;
  Tensor qkv, dout, doc_start, random;

  explicit Problem(const Case& c)
      : attrs{{"heads", c.heads}, {"kv_heads", c.kv_heads}, {"head_dim", c.head_dim},
              {"scale", c.scale}, {"causal", c.causal},     {"window", c.window}},
        qkv(bf16(normal({c.batch, c.tokens, (c.heads + 2 * c.kv_heads) * c.head_dim}, 1))),
        dout(bf16(normal({c.batch, c.tokens, c.heads * c.head_dim}, 2))),
        doc_start(documents(c)) {
    if (c.dropout < 0) return;
    attrs.set("p", c.dropout);
    attrs.set("key", int64_t{77});
    random = ints({4}, {5, -6, 7, 8});
  }
  [[nodiscard]] OpRun forward() const { return {"attention_packed", {qkv, doc_start, random}, attrs}; }
  [[nodiscard]] OpRun backward(const std::vector<Tensor>& y) const {
    return {"attention_packed_grad", {qkv, y[0], y[1], dout, doc_start, random}, attrs};
  }
};

/// In norm, relative to the expected.
double distance(const Tensor& got, const ir::RefTensor& expected) {
  double squares = 0, of_difference = 0;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    squares += expected.data[i] * expected.data[i];
    of_difference += (got.value(i) - expected.data[i]) * (got.value(i) - expected.data[i]);
  }
  return std::sqrt(of_difference) / std::sqrt(squares);
}

class AttentionBf16 : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionBf16, AgreesWithTheReference) {
  const Problem p(GetParam());
  const OpRun forward = p.forward(), backward = p.backward(run_cpu(forward));
  expect_op(forward, kElement);
  expect_op(backward, kElement);
  for (const OpRun& run : {forward, backward}) {
    const ir::RefTensor expected = run_reference(run)[0];
    for_each_isa([&](const std::string& isa) {
      EXPECT_LT(distance(run_cpu(run)[0], expected), kNorm) << run.op << " (" << isa << ")";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionBf16,
    ::testing::Values(Case{2, 1, 1, 1, 64}, Case{1, 16, 2, 1, 13}, Case{2, 70, 3, 1, 20},
                      Case{1, 150, 2, 2, 48}, Case{1, 300, 3, 1, 64}, Case{1, 530, 2, 1, 96},
                      Case{1, 290, 1, 1, 128}, Case{1, 100, 2, 2, 1}, Case{1, 290, 2, 1, 32, false},
                      Case{1, 300, 2, 1, 16, true, 1}, Case{1, 400, 2, 1, 20, true, 70},
                      Case{2, 300, 4, 2, 20, true, 0, 37}, Case{1, 300, 2, 1, 33, false, 0, 37},
                      Case{1, 400, 1, 1, 64, true, 50, 90}, Case{2, 150, 4, 2, 24, true, 0, 0, 0.3},
                      Case{1, 270, 2, 1, 16, false, 0, 0, 0.2}, Case{1, 200, 2, 1, 16, true, 50, 60, 0.2},
                      Case{1, 150, 2, 1, 16, true, 0, 0, -1, -0.3},
                      Case{1, 90, 1, 1, 16, true, 0, 0, -1, 0.0}));

}  // namespace
}  // namespace plimsoll::cpu::testing
