// Random ops against the references, for any split of the batch.
#include <cmath>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

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
    expect_op_on_card(run, {expected}, 1e-6);
    for_each_isa([&](const std::string& isa) {
      const Tensor got = run_cpu(run, {.threads = 1})[0];
      for (size_t i = 0; i < expected.data.size(); ++i)
        ASSERT_NEAR(got.f32(i), expected.data[i], 2.0 * 1e-6) << isa << ", element " << i;
      expect_same_bits(run_cpu(run, {.threads = 3})[0], got, isa);
    });
  }
}

TEST(Random, NormalsOfAnotherDtypeAreThoseOfF32Rounded) {
  for (const int64_t n : {1, 97, 5003, 40001})
    for (const char* dtype : {"bf16", "f16"}) {
      Attrs attrs{{"shape", std::vector<int64_t>{n}}, {"mean", 0.5}, {"std", 2.0}, {"key", int64_t{99}}};
      const OpRun whole{"random_normal", {kRandom}, attrs};
      attrs.set("out", std::string(dtype));
      const OpRun rounded{"random_normal", {kRandom}, attrs};
      for_each_isa([&](const std::string& isa) {
        const Tensor f32 = run_cpu(whole, {.threads = 1})[0];
        const Tensor expected = run_cpu({"cast", {f32}, {{"out", std::string(dtype)}}}, {.threads = 1})[0];
        expect_same_bits(run_cpu(rounded, {.threads = 3})[0], expected, isa + " " + dtype);
      });
    }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
