// Head and loss as one: against the reference, and against its parts for any chunk.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/kernels/loss/loss_operands.h"
#include "ops/rounding.h"

namespace plimsoll::cpu::fixtures {
namespace {

struct Head {
  int64_t batch, tokens, width, classes, chunk;
  bool transposed = false;
  Shape rows() const { return {batch, tokens}; }
  Tensor x() const { return normal({batch, tokens, width}, 1); }
  Tensor weight() const {
    return normal(transposed ? Shape{width, classes} : Shape{classes, width}, 2, 0.5f);
  }
  Tensor labels() const { return targets(rows(), static_cast<int32_t>(classes)); }
  Attrs attrs(bool grad = true) const {
    return {{"grad", grad}, {"transposed", transposed}, {"chunk_tokens", chunk}};
  }
};

const Head kHeadSizes[] = {{2, 9, 20, 33, 256},  {5, 100, 20, 37, 256, true}, {2, 600, 8, 50, 256},
                           {2, 600, 8, 50, 512}, {3, 300, 8, 50, 768},        {2, 600, 8, 50, 4096, true}};

TEST(HeadLoss, AgainstReference) {
  for (const Head& h : kHeadSizes) {
    expect_op({"head_loss", {h.x(), h.weight(), h.labels(), scalar(0.01f)}, h.attrs()}, 5e-6);
    expect_op(
        {"head_loss", {h.x(), h.weight(), h.labels(), scalar(0.01f), scalar(3.0f), h.weight()}, h.attrs()},
        5e-6);
    expect_op({"head_loss", {h.x(), h.weight(), h.labels(), scalar(0.01f), scalar(3.0f)}, h.attrs(false)},
              5e-6);
  }
}

TEST(HeadLoss, GivesTheBitsOfItsPartsForAnyChunk) {
  const Tensor scale = scalar(0.01f);
  for (const Head& h : kHeadSizes)
    for_each_isa([&](const std::string& isa) {
      const Attrs layout{{"transposed", h.transposed}}, flipped{{"transposed", !h.transposed}};
      const Tensor x = h.x(), weight = h.weight(), labels = h.labels(), acc_loss = scalar(2.0f),
                   acc_dw = h.weight();
      const Tensor logits = run_cpu({"linear", {x, weight}, layout})[0];
      const auto loss = run_cpu({"cross_entropy", {logits, labels, scale, acc_loss}});
      const Tensor d = run_cpu({"cross_entropy_grad", {logits, labels, loss[1], scale}})[0];
      const Tensor dx = run_cpu({"linear", {d, weight}, flipped})[0];
      const Tensor dw = run_cpu({"linear_dw", {x, d, acc_dw}, layout})[0];
      expect_same_bits(run_cpu({"head_loss", {x, weight, labels, scale, acc_loss, acc_dw}, h.attrs()}),
                       {loss[0], dx, dw}, isa);
    });
}

/// What a frozen head or a frozen body leaves out changes no bit of the rest.
TEST(HeadLoss, LeavesOutWhatNobodyWants) {
  const Tensor scale = scalar(0.01f), acc_loss = scalar(2.0f);
  for (const Head& h : kHeadSizes) {
    Attrs only_dx = h.attrs(), only_dw{{"transposed", h.transposed}, {"chunk_tokens", h.chunk}};
    only_dx.set("only_dx", true);
    const Tensor x = h.x(), weight = h.weight(), labels = h.labels();
    expect_op({"head_loss", {x, weight, labels, scale}, only_dx}, 5e-6);
    expect_op({"head_loss_dw", {x, weight, labels, scale, acc_loss, weight}, only_dw}, 5e-6);
    for_each_isa([&](const std::string& isa) {
      const auto both = run_cpu({"head_loss", {x, weight, labels, scale, acc_loss, weight}, h.attrs()});
      expect_same_bits(run_cpu({"head_loss", {x, weight, labels, scale, acc_loss}, only_dx}),
                       {both[0], both[1]}, isa + " dx");
      Attrs few = only_dx;
      few.set("chunk_tokens", int64_t{64});
      expect_same_bits(run_cpu({"head_loss", {x, weight, labels, scale, acc_loss}, few}), {both[0], both[1]},
                       isa + " dx, few rows at a time");
      expect_same_bits(run_cpu({"head_loss_dw", {x, weight, labels, scale, acc_loss, weight}, only_dw}),
                       {both[0], both[2]}, isa + " dw");
    });
  }
}

/// The slopes are rounded as well, so a result lies a rounding of them away from the reference's.
TEST(Precision, HeadAndLoss) {
  const Tensor x = normal(Shape{2, 300, 24}, 1), weight = normal(Shape{70, 24}, 2);
  const Tensor targets = indices(Shape{2, 300}, 70, 3), scale = scalar(1.0F / 600);
  const auto attrs = [](const char* name) {
    Attrs a{{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}};
    if (*name != '\0') a.set("precision", std::string(name));
    return a;
  };
  for (const char* name : {"tf32", "bf16", "f16"})
    expect_op({"head_loss", {x, weight, targets, scale}, attrs(name)}, 4e-3);
  expect_op({"head_loss", {bf16(x), weight, targets, scale}, attrs("bf16")}, 8e-3);
  expect_op({"head_loss", {bf16(x), bf16(weight), targets, scale}, attrs("")}, 8e-3);
  Attrs wide = attrs("bf16");
  wide.set("dx", std::string("f32"));
  expect_op({"head_loss", {bf16(x), weight, targets, scale}, wide}, 4e-3);
  for (const int64_t chunk : {256, 1024}) {  // from chunk to chunk in f32, and a single one as it is stored
    Attrs low = attrs("bf16"), sums_as = attrs("bf16");
    for (Attrs* a : {&low, &sums_as}) a->set("chunk_tokens", chunk);
    low.set("dw", std::string("bf16"));
    expect_op({"head_loss", {bf16(x), bf16(weight), targets, scale}, low}, 8e-3);
    sums_as.set("dw", std::string("f32"));
    const OpRun sums{"head_loss", {bf16(x), bf16(weight), targets, scale}, sums_as};
    expect_same_bits(run_cpu({"head_loss", sums.inputs, low})[2], as(DType::kBf16, run_cpu(sums)[2]), "dw");
  }
  expect_op({"head_loss",
             {x, weight, targets, scale, scalar(2.0F), normal(Shape{70, 24}, 5, 0.01F)},
             attrs("bf16")},
            4e-3);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
