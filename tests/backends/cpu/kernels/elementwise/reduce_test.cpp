// Sums over rows against the reference.
#include "backends/cpu/kernel_harness.h"
#include "backends/cpu/sequences.h"

namespace plimsoll::cpu::fixtures {
namespace {

TEST(Reduce, SumRows) {
  for (const Shape& s : {Shape{3, 5}, Shape{2, 300, 33}, Shape{2, 400, 200}}) {
    expect_op({"sum_rows", {normal(s, 1)}}, 3e-6);
    expect_op({"sum_rows", {normal(s, 1), normal(Shape{s.dim(-1)}, 2)}}, 3e-6);
  }
  const Tensor x = normal({2, 300, 33}, 1);
  for_each_isa([&](const std::string& isa) {
    const Tensor first = run_cpu({"sum_rows", {sequences(x, 0, 1)}})[0];
    expect_same_bits(run_cpu({"sum_rows", {sequences(x, 1, 2), first}}), run_cpu({"sum_rows", {x}}), isa);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
