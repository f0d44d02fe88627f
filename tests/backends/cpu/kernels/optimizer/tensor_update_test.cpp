// The kernels of the rules that look beyond one element, against their references.
#include "backends/cpu/kernel_harness.h"
#include "numerics/dynamic_map.h"
#include "ops/tensor_rules.h"

namespace plimsoll::cpu::fixtures {
namespace {

/// Hyper-parameters of a step that any rule makes sense of; two groups.
Tensor table_of(const ops::TensorRule& rule) {
  std::vector<float> row(static_cast<size_t>(rule.num_fields), 0.5F);
  const float adamw[] = {0.99F, 0.9F, 0.1F, 0.99F, 0.01F, 1e-3F, 0.02F, 0.3F};
  std::copy(std::begin(adamw), std::end(adamw), row.begin());
  std::vector<float> both(row.begin(), row.end());
  both.insert(both.end(), row.begin(), row.end());
  both.back() = 0.4F;
  return floats({2, rule.num_fields}, both);
}

Tensor state_of(const ops::RuleState& state, const ops::RuledTensor& tensor, unsigned seed) {
  Tensor t = normal(state.shape_of(tensor), seed);
  std::mt19937 random(seed);
  for (uint32_t& bits : t.bits)
    bits = state.dtype == DType::kU8 ? random() % 256
                                     : std::bit_cast<uint32_t>(std::abs(std::bit_cast<float>(bits)));
  if (state.dtype == DType::kF16) return as(DType::kF16, t);
  if (state.dtype) t.type.dtype = *state.dtype;
  return t;
}

/// Parameter, gradient, states, clip, groups.
std::vector<Tensor> operands_of(const ops::TensorRule& rule, const ops::RuledTensor& tensor,
                                float clip = 0.7F) {
  std::vector<Tensor> in = {normal(tensor.shape, 1), normal(tensor.shape, 2)};
  for (const ops::RuleState& state : rule.states)
    in.push_back(state_of(state, tensor, static_cast<unsigned>(in.size() + 1)));
  const bool is_fp8 = rule.name == ops::fp8_rule_name(false) || rule.name == ops::fp8_rule_name(true);
  for (Tensor& t : in)  // E4M3: numbers that are not negative, as v is
    for (uint32_t& bits : t.bits)
      if (is_fp8 && t.type.dtype == DType::kU8) bits %= 127;
  in.insert(in.end(), {scalar(clip), table_of(rule)});
  return in;
}

Attrs attrs_of(const ops::RuledTensor& tensor, int64_t group = 1) {
  Attrs attrs = {{"group", group}, {"parts", tensor.parts}};
  if (tensor.steps != ops::kMuonSteps) attrs.set("steps", tensor.steps);
  return attrs;
}

const ops::RuledTensor kTensors[] = {{{1, 1}, {1}},       {{257, 1}, {257}},     {{33, 70}, {20, 5, 8}},
                                     {{70, 33}, {70}},    {{3, 17000}, {2, 1}},  {{33, 70}, {20, 13}, 2},
                                     {{9, 3, 5, 7}, {9}}, {{3, 1, 1, 300}, {3}}, {{40, 7, 7, 1}, {40}}};

TEST(TensorRules, AgainstTheirReferences) {
  for (const ops::TensorRule& rule : ops::tensor_rules())
    for (const ops::RuledTensor& tensor : kTensors)
      expect_op({std::string(rule.name), operands_of(rule, tensor), attrs_of(tensor)}, 2e-6);
}

TEST(TensorRules, AFactorThatIsNoNumberSkipsTheStep) {
  for (const ops::TensorRule& rule : ops::tensor_rules()) {
    const auto in = operands_of(rule, kTensors[2], std::nanf(""));
    Attrs attrs = attrs_of(kTensors[2]);
    attrs.set("copy", std::string("bf16"));
    for_each_backend({std::string(rule.name), in, attrs},
                     [&](const std::vector<Tensor>& out, const std::string& where) {
                       expect_same_bits(out[0], in[0], where);
                       for (size_t s = 0; s < rule.states.size(); ++s)
                         expect_same_bits(out[1 + s], in[2 + s], where);
                       expect_same_bits(out.back(), bf16(in[0]), where);
                     });
  }
}

/// Gradients and parameters of 16 bits, a master's copy, draws: the reference's to a rounding.
/// Other words would round half of the parameter's elements otherwise.
void expect_same_words(const OpRun& run) {
  const Tensor card = run_on_card(*cuda::fixtures::card(), run)[0], cpu = run_cpu(run)[0];
  size_t apart = 0;
  for (size_t e = 0; e < cpu.bits.size(); ++e) apart += card.bits[e] != cpu.bits[e];
  EXPECT_LE(apart, cpu.bits.size() / 50 + 1) << run.op;
}

TEST(TensorRules, AsTheyAreStored) {
  struct Row {
    DType param, grad;
    const char *copy, *rounded;
    bool draws;
  };
  for (const Row& r :
       {Row{DType::kF32, DType::kBf16, "bf16", "", false}, Row{DType::kF32, DType::kF32, "f16", "f16", false},
        Row{DType::kBf16, DType::kBf16, "", "", true}, Row{DType::kBf16, DType::kF16, "", "", false}})
    for (const ops::TensorRule& rule : ops::tensor_rules()) {
      auto in = operands_of(rule, kTensors[2]);
      if (r.param != DType::kF32) in[0] = as(r.param, in[0]);
      if (r.grad != DType::kF32) in[1] = as(r.grad, in[1]);
      Attrs attrs = attrs_of(kTensors[2]);
      if (*r.copy != '\0') attrs.set("copy", std::string(r.copy));
      if (*r.rounded != '\0') attrs.set("rounded", std::string(r.rounded));
      if (r.draws) {
        attrs.set("key", int64_t{0x1234567});
        in.push_back(ints({4}, {11, -3, 7, 0}));
      }
      const OpRun run{std::string(rule.name), in, attrs};
      expect_op(run, r.draws ? 0x1p-7 : 0x1p-8);
      if (r.draws && cuda::fixtures::card() != nullptr) expect_same_words(run);
    }
}

/// Gradients on, beside and between the bounds of both maps; the moments are the gradients and their squares.
TEST(TensorRules, Adamw8bitsCodesAreTheMapsOwn) {
  std::vector<float> g;
  for (const auto* map : {&numerics::signed_dynamic_map(), &numerics::unsigned_dynamic_map()})
    for (size_t i = 0; i + 1 < 256; ++i) {
      const float value = map->values[i], bound = (value + map->values[i + 1]) / 2;
      for (const float x : {bound, map->is_signed ? bound : std::sqrt(bound), value})
        g.insert(g.end(), {std::nextafter(x, -1.0F), x, std::nextafter(x, 1.0F)});
    }
  for (size_t i = 0; i < g.size(); i += 256) g[i] = 1;  // the largest of its block
  const auto n = static_cast<int64_t>(g.size());
  const ops::TensorRule& rule = *ops::find_tensor_rule("adamw_8bit");
  const ops::RuledTensor tensor{{n}, {n}};
  auto in = operands_of(rule, tensor, 1.0F);
  in[1] = floats({n}, g);
  in.back() = floats({1, ops::kAdamwFields}, {1, 0, 1, 0, 1, 1e-3F, 0.02F, 1});
  for_each_backend({"adamw_8bit", in, attrs_of(tensor, 0)}, [&](const std::vector<Tensor>& out,
                                                                const std::string& where) {
    for (size_t i = 0; i < g.size(); ++i) {
      ASSERT_EQ(out[1].bits[i], numerics::signed_dynamic_map().code(g[i])) << where << ", " << g[i];
      ASSERT_EQ(out[2].bits[i], numerics::unsigned_dynamic_map().code(g[i] * g[i])) << where << ", " << g[i];
    }
  });
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
