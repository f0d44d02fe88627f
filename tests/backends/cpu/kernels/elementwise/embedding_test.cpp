// Embeddings: against the references, fused against unfused, continued over micro-batches.
#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

/// Rows of a bf16 table into f32, gradients into bf16.
TEST(StoredEmbedding, RowsAndSumsInAnyDtype) {
  const Tensor ids = indices({2, 40}, 50, 1), table = as(DType::kBf16, normal({50, 33}, 2)),
               dy = normal({2, 40, 33}, 3);
  const Attrs f32{{"out", std::string("f32")}}, rows{{"rows", int64_t{50}}, {"out", std::string("bf16")}};
  expect_op({"embedding", {table, ids}}, 0);
  expect_op({"embedding", {table, ids}, f32}, 0);
  expect_op({"embedding_grad", {dy, ids}, rows}, 0x1p-8);
  expect_op({"embedding_grad", {as(DType::kBf16, dy), ids}, rows}, 0x1p-8);
  expect_op({"embedding_grad_add", {table, dy, ids}}, 0x1p-8);
  expect_op({"embedding_grad_add", {normal({50, 33}, 4), as(DType::kBf16, dy), ids}}, 1e-5);
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

}  // namespace
}  // namespace plimsoll::cpu::fixtures
