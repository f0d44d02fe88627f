// Rotary positions: against the references, and packed against heads of their own.
#include <cmath>

#include "backends/cpu/kernel_harness.h"

namespace plimsoll::cpu::fixtures {
namespace {

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

}  // namespace
}  // namespace plimsoll::cpu::fixtures
