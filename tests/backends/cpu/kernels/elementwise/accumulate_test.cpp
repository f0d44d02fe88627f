// Gradients on accumulators of bf16: the reference's bits, and right on average.
#include <cmath>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

const Attrs kAccumulateKey{{"key", int64_t{0x123456789}}};

/// What a backend gives is what the reference says, to the bit.
void expect_bits(const OpRun& run, const std::vector<Tensor>& got, const std::string& where) {
  const auto expected = run_reference(run)[0];
  for (size_t i = 0; i < expected.data.size(); ++i)
    ASSERT_EQ(got[0].value(i), expected.data[i]) << where << ", element " << i;
}

TEST(Accumulate, IsTheReferenceExactly) {
  const Tensor random = ints({4}, {12345, -6789, 3, 1000});
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 41}, Shape{2, 20000}})
    for (const Tensor& g : {normal(shape, 1), bf16(normal(shape, 1))})
      for (const Tensor& acc : {absent(), bf16(normal(shape, 2, 30.0F))}) {
        const OpRun run{"accumulate", {g, random, acc}, kAccumulateKey};
        expect_op_on_card(run, run_reference(run), 1e-6);
        for_each_backend(run,
                         [&](const auto& got, const std::string& where) { expect_bits(run, got, where); });
        expect_same_bits(run_cpu(run, {.threads = 1}), run_cpu(run, {.threads = 3}), "threads");
      }
}

/// 256 additions of a quarter of a step: nearest rounding would lose each.
TEST(Accumulate, ManySmallTermsAreNotLost) {
  constexpr int64_t kElements = 4096;
  const Shape shape{kElements};
  Tensor acc = bf16(floats(shape, std::vector<float>(kElements, 1.0F)));
  const Tensor g = floats(shape, std::vector<float>(kElements, 0x1p-9F));
  for (int32_t batch = 0; batch < 256; ++batch)
    acc = run_cpu({"accumulate", {g, ints({4}, {5, 6, 7, batch}), acc}, kAccumulateKey})[0];
  double mean = 0;
  for (size_t i = 0; i < kElements; ++i) mean += acc.value(i) / kElements;
  EXPECT_NEAR(mean, 1.5, 0.005);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
