// What classifies a sequence as a whole: the pooled row, its head, the losses over labels; against the
// references, and continued over micro-batches with the bits of one batch.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/loss/loss_operands.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(GatherRows, AgainstReference) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    const Tensor index = ints({3}, {6, 0, 3});
    expect_op({"gather_rows", {as(dtype, normal({3, 7, 33}, 1)), index}}, 0);
    expect_op({"gather_rows_grad", {as(dtype, normal({3, 1, 33}, 1)), index}, {{"rows", int64_t{7}}}}, 0);
    const Tensor some = ints({3, 4}, {0, 2, 5, 6, 1, 3, -1, -1, -1, -1, -1, -1});
    expect_op({"gather_rows", {as(dtype, normal({3, 7, 33}, 1)), some}}, 0);
    expect_op({"gather_rows_grad", {as(dtype, normal({3, 4, 33}, 1)), some}, {{"rows", int64_t{7}}}}, 0);
  }
}

struct Batch {
  Tensor stream, last, norm, head, labels, scale = scalar(0.125F);
};

/// Loss, and the gradients of head and final norm: what accumulates. `acc` is empty at the beginning.
std::vector<Tensor> step(const Batch& batch, const std::string& loss, std::vector<Tensor> acc) {
  if (acc.empty()) acc = {scalar(-0.0F), absent(), absent()};
  const Attrs eps{{"eps", 1e-5}}, plain{{"transposed", false}}, flipped{{"transposed", true}};
  const Tensor pooled = run_cpu({"gather_rows", {batch.stream, batch.last}})[0];
  const auto norm = run_cpu({"rms_norm", {pooled, batch.norm}, eps});
  const Tensor logits = run_cpu({"linear", {norm[0], batch.head}, plain})[0];
  const auto sum = run_cpu({loss, {logits, batch.labels, batch.scale, acc[0]}});
  const Tensor d = loss == "cross_entropy"
                       ? run_cpu({"cross_entropy_grad", {logits, batch.labels, sum[1], batch.scale}})[0]
                       : run_cpu({loss + "_grad", {logits, batch.labels, batch.scale}})[0];
  const Tensor dhead = run_cpu({"linear_dw", {norm[0], d, acc[1]}, plain})[0];
  const Tensor dy = run_cpu({"linear", {d, batch.head}, flipped})[0];
  const auto dnorm = run_cpu({"rms_norm_grad", {dy, pooled, batch.norm, norm[1], acc[2]}, eps});
  return {sum[0], dhead, dnorm[1]};
}

TEST(PooledHead, TheSplitIntoMicroBatchesDoesNotChangeABit) {
  constexpr int64_t kBatch = 12, kTokens = 9, kWidth = 40, kLabels = 5;
  Batch whole{normal({kBatch, kTokens, kWidth}, 1),
              indices({kBatch}, kTokens, 2),
              normal({kWidth}, 3),
              normal({kLabels, kWidth}, 4),
              {}};
  for (const std::string loss : {"cross_entropy", "bce_with_logits", "squared_error"})
    for_each_isa([&](const std::string& isa) {
      whole.labels =
          loss == "cross_entropy" ? indices({kBatch, 1}, kLabels, 5) : labels({kBatch, 1, kLabels}, 5);
      const auto expected = step(whole, loss, {});
      for (const int64_t micro : {1, 2, 3, 6}) {
        std::vector<Tensor> acc;
        for (int64_t b = 0; b < kBatch; b += micro) {
          Batch part = whole;
          for (Tensor* t : {&part.stream, &part.last, &part.labels}) *t = sequences(*t, b, b + micro);
          acc = step(part, loss, std::move(acc));
        }
        expect_same_bits(acc, expected, isa + ", " + loss + " by " + std::to_string(micro));
      }
    });
}

/// Norm and head see the pooled rows alone: the same bits as of all rows, pooled behind.
TEST(PooledHead, PoolingBeforeTheNormKeepsItsBits) {
  const Tensor x = normal({4, 9, 40}, 1), weight = normal({40}, 2), last = ints({4}, {8, 3, 0, 5});
  const Attrs eps{{"eps", 1e-5}};
  for_each_isa([&](const std::string& isa) {
    const Tensor before = run_cpu({"rms_norm", {run_cpu({"gather_rows", {x, last}})[0], weight}, eps})[0];
    const Tensor behind = run_cpu({"gather_rows", {run_cpu({"rms_norm", {x, weight}, eps})[0], last}})[0];
    expect_same_bits(before, behind, isa);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
