// Softmax and its slope against the reference.
#include <dlfcn.h>

#include <string>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Softmax, AgainstReference) {
  for (const bool log : {false, true})
    for (const Shape& s : {Shape{1}, Shape{3, 7}, Shape{2, 5, 400}, Shape{2, 5000}}) {
      const Attrs attrs{{"log", log}};
      expect_op({"softmax", {normal(s, 1, 4.0F)}, attrs}, 3e-6);
      // Of the logarithm the sum of cotangents, which cancel, is multiplied with exp(y).
      expect_op({"softmax_grad", {normal(s, 1), normal(s, 2)}, attrs}, log ? 1e-4 : 3e-6);
    }
}

TEST(Softmax, StoredDtypes) {
  const Shape s{6, 77};
  for (const DType dtype : {DType::kBf16, DType::kF16}) {
    const double step = dtype == DType::kBf16 ? kBf16Step : kF16Step;
    for (const bool log : {false, true}) {
      Attrs attrs{{"log", log}};
      expect_op({"softmax", {as(dtype, normal(s, 1))}, attrs}, 3e-6);
      attrs.set("out", std::string(ir::name(dtype)));
      expect_op({"softmax", {as(dtype, normal(s, 1))}, attrs}, step);
      expect_op({"softmax_grad", {normal(s, 1), as(dtype, normal(s, 2))}, attrs}, step);
    }
  }
}

TEST(Softmax, LargeAndMaskedLogits) {
  const Tensor x = floats({2, 4}, {1000, 999, -1000, -INFINITY, -INFINITY, 3, 3, -INFINITY});
  expect_op({"softmax", {x}}, 1e-6);
}

// The fake card counts launches that may begin before the work before them has ended.

/// -1 where the driver is another.
int64_t early_launches() {
  void* library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (library == nullptr) return -1;
  const auto count = reinterpret_cast<int64_t (*)()>(dlsym(library, "plimsollFakeEarlyLaunches"));
  return count == nullptr ? -1 : count();
}

TEST(CardLaunches, BeginEarlyWhereTheCardLetsThem) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card == nullptr || early_launches() < 0) GTEST_SKIP() << "no fake card";
  const int capability = std::stoi(std::string(card->target().instruction_set()).substr(3));
  const int64_t before = early_launches();
  run_on_card(*card, {"softmax", {normal(Shape{3, 5}, 1)}, {{"log", false}}});
  EXPECT_EQ(early_launches() > before, capability >= 90);
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
