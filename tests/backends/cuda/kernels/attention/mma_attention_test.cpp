// Attention on matrix units, on this machine's card or the fake one: against the definition in double within
// the roundings of operands and weights to 16 bits or to TF32, in every form of the kernels; which operands
// go there.
#include "backends/cuda/kernels/attention/mma_attention.h"

#include <cmath>
#include <ostream>

#include "backends/cpu/kernels/attention/packed_problem.h"
#include "backends/cpu/on_card.h"

namespace plimsoll::cuda {
namespace {

using cpu::fixtures::OpRun;
using cpu::fixtures::run_on_card;
using cpu::fixtures::Tensor;
using ir::DType;

struct Case {
  int64_t batch, tokens, heads, kv_heads, head_dim;
  DType dtype = DType::kBf16;  ///< f32: multiplied in TF32
  bool causal = true;
  int64_t window = 0;
  int64_t document = 0;  ///< mean length; 0: one
  double dropout = -1;   ///< below 0: none
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << "B" << c.batch << " T" << c.tokens << " H" << c.heads << "/" << c.kv_heads << " D" << c.head_dim
       << " " << ir::name(c.dtype) << (c.causal ? " causal" : " full") << " window " << c.window
       << " documents " << c.document << " dropout " << c.dropout;
}

class MmaAttention : public ::testing::TestWithParam<Case> {};

TEST_P(MmaAttention, AgreesWithTheDefinition) {
  if (fixtures::card() == nullptr) GTEST_SKIP() << "no card";
  const Case& c = GetParam();
  cpu::fixtures::PackedProblem p(c, c.dtype, 1 / std::sqrt(static_cast<double>(c.head_dim)));
  const bool is_tf32 = c.dtype == DType::kF32;
  if (is_tf32) p.attrs.set("precision", std::string("tf32"));
  // TF32 has as many bits as f16; its operands are rounded too.
  const double step = c.dtype == DType::kBf16 ? cpu::fixtures::kBf16Step : cpu::fixtures::kF16Step;
  const std::vector<Tensor> y = run_on_card(*fixtures::card(), p.forward());
  for (const OpRun& run : {p.forward(), p.backward(y)}) {
    const std::vector<ir::RefTensor> expected = run_reference(run);
    const std::vector<Tensor> got = run_on_card(*fixtures::card(), run);
    const double distance = cpu::fixtures::distance(got[0], expected[0]);
    EXPECT_LT(distance, (is_tf32 ? 2 : 1.5) * step) << run.op;
    if (is_tf32 && c.tokens > 1) {
      EXPECT_GT(distance, 0.1 * step) << run.op << " is not computed in TF32";
    }
    cpu::fixtures::expect_close(got[0], expected[0], 20 * step, run.op);
    if (got.size() > 1) cpu::fixtures::expect_close(got[1], expected[1], is_tf32 ? 4 * step : 1e-6, "lse");
    cpu::fixtures::expect_same_bits(got, run_on_card(*fixtures::card(), run), run.op + ", again");
  }
}

/// Widths, and what lies below; each mask; grouped heads, in parts and in one (the last two rows).
INSTANTIATE_TEST_SUITE_P(
    Tf32, MmaAttention,
    ::testing::Values(Case{1, 150, 2, 1, 64, DType::kF32}, Case{1, 140, 1, 1, 128, DType::kF32},
                      Case{1, 75, 2, 1, 256, DType::kF32}, Case{2, 70, 2, 2, 40, DType::kF32},
                      Case{1, 100, 1, 1, 90, DType::kF32, false}, Case{1, 70, 1, 1, 251, DType::kF32},
                      Case{1, 200, 2, 1, 33, DType::kF32, true, 50},
                      Case{2, 140, 2, 1, 64, DType::kF32, true, 0, 37},
                      Case{1, 130, 2, 1, 64, DType::kF32, true, 0, 0, 0.3},
                      Case{1, 100, 1, 1, 128, DType::kF32, true, 30, 40, 0.2},
                      Case{1, 70, 1, 1, 200, DType::kF32, false, 0, 0, 0.4},
                      Case{2, 100, 6, 2, 16, DType::kF32}, Case{128, 9, 2, 1, 16, DType::kF32},
                      Case{3, 1, 2, 1, 64, DType::kF32}, Case{1, 250, 2, 1, 64, DType::kF32, false, 50}));
INSTANTIATE_TEST_SUITE_P(
    Forms, MmaAttention,
    ::testing::Values(
        Case{1, 150, 2, 1, 64}, Case{1, 130, 1, 1, 128}, Case{1, 130, 2, 1, 256},
        Case{2, 70, 2, 2, 40, DType::kF16}, Case{1, 100, 1, 1, 96, DType::kF16, false},
        Case{1, 70, 1, 1, 251, DType::kF16}, Case{1, 200, 2, 1, 33, DType::kBf16, true, 50},
        Case{2, 140, 2, 1, 64, DType::kBf16, true, 0, 37}, Case{1, 200, 1, 1, 64, DType::kBf16, false, 0, 37},
        Case{1, 130, 2, 1, 64, DType::kBf16, true, 0, 0, 0.3},
        Case{1, 100, 1, 1, 128, DType::kF16, true, 30, 40, 0.2},
        Case{1, 70, 1, 1, 200, DType::kBf16, false, 0, 0, 0.4}, Case{2, 100, 6, 2, 16},
        Case{128, 9, 2, 1, 16}, Case{3, 1, 2, 1, 64}, Case{1, 300, 2, 1, 64, DType::kBf16, false, 50},
        Case{1, 200, 1, 1, 128, DType::kF16, false, 65}, Case{1, 150, 1, 1, 40, DType::kBf16, false, 1},
        Case{1, 200, 1, 1, 64, DType::kBf16, false, 30, 40, 0.2}));

Attention bf16_operands() {
  Attention a;
  static float somewhere = 0;
  for (Operand* x : {&a.q, &a.k, &a.v, &a.out}) *x = operand_at(&somewhere, DType::kBf16);
  a.tokens = 100, a.head_dim = 64, a.heads = a.kv_heads = 1;
  return a;
}

TEST(MmaAttentionChoice, MatrixUnitsTakeOneShortTypeOrTf32FromAmpereOn) {
  Attention a = bf16_operands();
  EXPECT_TRUE(runs_on_matrix_units(a, 80));
  EXPECT_TRUE(runs_on_matrix_units(a, 120));
  EXPECT_FALSE(runs_on_matrix_units(a, 75)) << "Turing";
  a.v.dtype = kF16;
  EXPECT_FALSE(runs_on_matrix_units(a, 90)) << "two dtypes";
  a.q.dtype = a.k.dtype = a.out.dtype = kF16;
  EXPECT_TRUE(runs_on_matrix_units(a, 90));
  a.dout = operand_at(a.q.data, DType::kF32);
  EXPECT_FALSE(runs_on_matrix_units(a, 90)) << "of the gradient";
  a = bf16_operands();
  for (Operand* x : {&a.q, &a.k, &a.v, &a.out}) x->dtype = kF32;
  EXPECT_FALSE(runs_on_matrix_units(a, 90)) << "exact";
  a.tf32 = 1;
  EXPECT_TRUE(runs_on_matrix_units(a, 80));
  EXPECT_FALSE(runs_on_matrix_units(a, 75));
  a.k.dtype = kBf16;
  EXPECT_FALSE(runs_on_matrix_units(a, 90)) << "f32 and bf16";
  a = bf16_operands();
  a.scale = -1;
  EXPECT_FALSE(runs_on_matrix_units(a, 90)) << "the highest score is of the others";
}

TEST(MmaAttentionChoice, GroupsAreDealtIntoPartsWhereBlocksAreFew) {
  EXPECT_EQ(num_parts(4, 512, 9, 3), 3) << "96 tiles of keys";
  EXPECT_EQ(num_parts(1, 1024, 32, 8), 1) << "128";
  EXPECT_EQ(num_parts(1, 512, 32, 8), 4) << "64";
  EXPECT_EQ(num_parts(1, 64, 14, 2), 7) << "no more than heads of a group";
  EXPECT_EQ(num_parts(1, 64, 2, 2), 1);
}

}  // namespace
}  // namespace plimsoll::cuda
