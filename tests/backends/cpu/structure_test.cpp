// Copies, embeddings, rotary positions, random ops: against the references, and fused against unfused.
#include <cmath>

#include "kernel_harness.h"
#include "ops/philox.h"

namespace plimsoll::cpu::testing {
namespace {

TEST(Structure, Copies) {
  for (const Shape& s : {Shape{1}, Shape{2, 5, 33}, Shape{2, 3, 3, 20}}) {
    expect_op({"copy", {normal(s, 1)}}, 0.0);
    expect_op({"copy", {indices(s, 1000, 1)}}, 0.0);
  }
  expect_op({"concat", {normal({2, 5, 33}, 1), normal({2, 5, 1}, 2), normal({2, 5, 64}, 3)}}, 0.0);
  expect_op({"concat_rows", {normal({2, 33}, 1), normal({1, 33}, 2), normal({600, 33}, 3)}}, 0.0);
  expect_op({"concat_rows", {normal({5}, 1), normal({2}, 2)}}, 0.0);
  expect_op({"concat_rows", {as(DType::kBf16, normal({3, 5}, 1)), as(DType::kBf16, normal({2, 5}, 2))}}, 0.0);
  expect_op({"fill", {}, {{"shape", std::vector<int64_t>{3, 7000}}, {"value", -1.5}}}, 0.0);
}

TEST(Structure, Positions) {
  expect_op({"positions", {}, {{"batch", int64_t{2}}, {"tokens", int64_t{300}}}}, 0.0);
  expect_op({"document_positions", {indices({2, 300}, 200, 1)}}, 0.0);
}

TEST(Embedding, AgainstReference) {
  const Tensor ids = indices({2, 300}, 40, 1), dy = normal({2, 300, 33}, 2);
  expect_op({"embedding", {normal({40, 33}, 3), ids}}, 0.0);
  expect_op({"embedding_grad", {dy, ids}, {{"rows", int64_t{40}}}}, 2e-6);
  expect_op({"embedding_grad", {dy, ids, normal({40, 33}, 4)}, {{"rows", int64_t{40}}}}, 2e-6);
  expect_op({"embedding_grad_add", {normal({40, 33}, 4), dy, ids}}, 2e-6);
  const Attrs padding{{"padding", int64_t{7}}};
  Attrs rows = padding;
  rows.set("rows", int64_t{40});
  expect_op({"embedding_grad", {dy, ids}, rows}, 2e-6);
  expect_op({"embedding_grad", {dy, ids, normal({40, 33}, 4)}, rows}, 2e-6);
  expect_op({"embedding_grad_add", {normal({40, 33}, 4), dy, ids}, padding}, 2e-6);
  expect_op({"embedding_grad", {dy, ids}, {{"rows", int64_t{5000}}}}, 2e-6);
  expect_op({"embedding_grad_add", {normal({5000, 33}, 4), dy, indices({2, 300}, 5000, 2)}}, 2e-6);
}

TEST(Embedding, FusedGivesTheBitsOfItsParts) {
  const Tensor ids = indices({2, 300}, 40, 1), dy = normal({2, 300, 33}, 2), total = normal({60, 33}, 3);
  for_each_isa([&](const std::string& isa) {
    const Tensor grad = run_cpu({"embedding_grad", {dy, ids}, {{"rows", int64_t{60}}}})[0];
    EXPECT_TRUE(std::signbit(grad.f32(50 * 33))) << "a row without tokens is the neutral -0.0";
    expect_same_bits(run_cpu({"embedding_grad_add", {total, dy, ids}}), run_cpu({"add", {total, grad}}), isa);
  });
}

TEST(Embedding, GradientContinuesOverMicroBatches) {
  const Tensor ids = indices({2, 30}, 9, 1), dy = normal({2, 30, 20}, 2);
  const auto half = [](const Tensor& t, int64_t which) {
    const auto n = static_cast<int64_t>(t.bits.size() / 2);
    Tensor part{t.type, {t.bits.begin() + which * n, t.bits.begin() + (which + 1) * n}};
    part.type.shape.set_dim(0, 1);
    return part;
  };
  const Attrs rows{{"rows", int64_t{9}}};
  const Tensor first = run_cpu({"embedding_grad", {half(dy, 0), half(ids, 0)}, rows})[0];
  expect_same_bits(run_cpu({"embedding_grad", {half(dy, 1), half(ids, 1), first}, rows}),
                   run_cpu({"embedding_grad", {dy, ids}, rows}), "two micro-batches");
}

Tensor table(int64_t batch, int64_t tokens, int64_t head_dim) {
  std::vector<float> inv_freq;
  for (int64_t i = 0; i < head_dim / 2; ++i)
    inv_freq.push_back(std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(head_dim)));
  std::vector<Tensor> in{floats({head_dim / 2}, inv_freq)};
  if (batch > 1) in.push_back(indices({batch, tokens}, 5000, 7));
  return run_cpu({"rope_table", in, {{"tokens", tokens}, {"factor", 1.0}}})[0];
}

TEST(Rope, Table) {
  const Tensor inv_freq = floats({5}, {1.0f, 0.3f, 0.1f, 0.01f, 1e-4f});
  expect_op({"rope_table", {inv_freq}, {{"tokens", int64_t{300}}, {"factor", 1.0}}}, 1e-7);
  expect_op(
      {"rope_table", {inv_freq, indices({3, 300}, 100000, 1)}, {{"tokens", int64_t{300}}, {"factor", 1.2}}},
      1e-7);
}

TEST(Rope, AgainstReference) {
  for (const int64_t d : {2, 20, 64})
    for (const int64_t batch : {1, 2})
      for (const bool inverse : {false, true}) {
        expect_op({"rope", {normal({2, 9, 3, d}, 1), table(batch, 9, d)}, {{"inverse", inverse}}}, 1e-6);
        const Attrs packed{{"heads", int64_t{3}}, {"head_dim", d}, {"inverse", inverse}};
        expect_op({"rope_packed", {normal({2, 9, 5 * d}, 1), table(batch, 9, d)}, packed}, 1e-6);
      }
}

TEST(Rope, PackedGivesTheBitsOfRopeOnItsHeads) {
  const int64_t d = 20, heads = 3, tokens = 9;
  const Tensor x = normal({2, tokens, 5 * d}, 1), t = table(1, tokens, d);
  for_each_isa([&](const std::string& isa) {
    const Tensor packed =
        run_cpu({"rope_packed", {x, t}, {{"heads", heads}, {"head_dim", d}, {"inverse", false}}})[0];
    Tensor all = x;
    all.type.shape = Shape{2, tokens, 5, d};
    const Tensor turned = run_cpu({"rope", {all, t}, {{"inverse", false}}})[0];
    Tensor expected = x;
    for (int64_t r = 0; r < 2 * tokens; ++r)
      std::copy_n(turned.bits.begin() + r * 5 * d, heads * d, expected.bits.begin() + r * 5 * d);
    expect_same_bits(packed, expected, isa);
  });
}

const Tensor kRandom = ints({4}, {12345, -6789, 3, 1000});

TEST(Random, DropoutMaskIsThatOfTheReference) {
  for (const double p : {0.0, 0.1, 0.5, 0.999})
    for (const Shape& s : {Shape{3, 7}, Shape{2, 5, 33}, Shape{2, 70, 64}}) {
      const OpRun run{"dropout", {normal(s, 1), kRandom}, {{"p", p}, {"key", int64_t{0x123456789}}}};
      expect_op(run, 1e-6);
      const auto expected = run_reference(run)[0];
      const auto got = run_cpu(run)[0];
      for (size_t i = 0; i < expected.data.size(); ++i)
        ASSERT_EQ(got.f32(i) == 0.0f, expected.data[i] == 0.0) << "p " << p << ", element " << i;
    }
}

TEST(Random, DropoutDrawsTheSameForAnySplitOfTheBatch) {
  const Tensor x = normal({4, 9, 5}, 1);
  Tensor second{{DType::kF32, Shape{2, 9, 5}}, {x.bits.begin() + 90, x.bits.end()}};
  const Attrs attrs{{"p", 0.5}, {"key", int64_t{7}}};
  const Tensor whole = run_cpu({"dropout", {x, kRandom}, attrs})[0];
  const Tensor part = run_cpu({"dropout", {second, ints({4}, {12345, -6789, 3, 1002})}, attrs})[0];
  expect_same_bits(part, Tensor{part.type, {whole.bits.begin() + 90, whole.bits.end()}}, "second half");
}

TEST(Random, NormalsAreThoseOfTheReference) {
  for (const int64_t n : {1, 6, 97, 40001}) {
    const OpRun run{"random_normal",
                    {kRandom},
                    {{"shape", std::vector<int64_t>{n}}, {"mean", 0.5}, {"std", 2.0}, {"key", int64_t{99}}}};
    const auto expected = run_reference(run)[0];
    for_each_isa([&](const std::string& isa) {
      const Tensor got = run_cpu(run, {.threads = 1})[0];
      for (size_t i = 0; i < expected.data.size(); ++i)
        ASSERT_NEAR(got.f32(i), expected.data[i], 2.0 * 1e-6) << isa << ", element " << i;
      expect_same_bits(run_cpu(run, {.threads = 3})[0], got, isa);
    });
  }
}

}  // namespace
}  // namespace plimsoll::cpu::testing
