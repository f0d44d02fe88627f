// Linear maps, cross entropy, the fused head, attention's ops and the optimizer: against the references,
// fused against unfused, and continued over micro-batches.
#include "kernel_harness.h"
#include "ops/philox.h"
#include "ops/rounding.h"
#include "ops/update_rules.h"

namespace plimsoll::cpu::testing {
namespace {

TEST(Linear, AgainstReference) {
  for (const Shape& x : {Shape{1, 5}, Shape{2, 9, 33}, Shape{2, 300, 20}}) {
    const int64_t in = x.dim(-1), out = 37;
    Shape y = x;
    y.set_dim(-1, out);
    for (const bool transposed : {false, true}) {
      const Attrs attrs{{"transposed", transposed}};
      const Tensor weight = normal(transposed ? Shape{in, out} : Shape{out, in}, 2);
      expect_op({"linear", {normal(x, 1), weight}, attrs}, 3e-6);
      expect_op({"linear", {normal(x, 1), weight, normal({out}, 3)}, attrs}, 3e-6);
      expect_op({"linear_dw", {normal(x, 1), normal(y, 4)}, attrs}, 3e-6);
      expect_op({"linear_dw", {normal(x, 1), normal(y, 4), weight}, attrs}, 3e-6);
    }
  }
}

// Every seventh target ignored.
Tensor targets(const Shape& shape, int32_t classes) {
  Tensor t = indices(shape, classes, 11);
  for (size_t i = 0; i < t.bits.size(); i += 7) t.bits[i] = static_cast<uint32_t>(ops::kIgnoreTarget);
  return t;
}

TEST(CrossEntropy, AgainstReference) {
  for (const int32_t classes : {1, 5, 33, 1000}) {
    const Tensor logits = normal({2, 300, classes}, 1, 3.0f), t = targets({2, 300}, classes),
                 scale = scalar(0.25f);
    expect_op({"cross_entropy", {logits, t, scale}}, 2e-6);
    expect_op({"cross_entropy", {logits, t, scale, scalar(12.5f)}}, 2e-6);
    const Tensor lse = run_cpu({"cross_entropy", {logits, t, scale}})[1];
    if (classes > 1) expect_op({"cross_entropy_grad", {logits, t, lse, scale}}, 3e-6);
  }
}

TEST(CrossEntropy, FarLogitsAndNan) {
  const Tensor logits = floats({2, 3}, {1000.0f, -1000.0f, 0.0f, 0.0f, std::nanf(""), 1.0f});
  const auto out = run_cpu({"cross_entropy", {logits, ints({2}, {0, ops::kIgnoreTarget}), scalar(1.0f)}});
  EXPECT_EQ(out[0].f32(0), 0.0f);
  EXPECT_EQ(out[1].f32(0), 1000.0f);
  const auto bad = run_cpu({"cross_entropy", {logits, ints({2}, {0, 2}), scalar(1.0f)}});
  EXPECT_TRUE(std::isnan(bad[0].f32(0))) << "a loss that is not a number must show";
}

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

const Head kHeads[] = {{2, 9, 20, 33, 256},  {5, 100, 20, 37, 256, true}, {2, 600, 8, 50, 256},
                       {2, 600, 8, 50, 512}, {3, 300, 8, 50, 768},        {2, 600, 8, 50, 4096, true}};

TEST(HeadLoss, AgainstReference) {
  for (const Head& h : kHeads) {
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
  for (const Head& h : kHeads)
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
  for (const Head& h : kHeads) {
    Attrs only_dx = h.attrs(), only_dw{{"transposed", h.transposed}, {"chunk_tokens", h.chunk}};
    only_dx.set("only_dx", true);
    const Tensor x = h.x(), weight = h.weight(), labels = h.labels();
    expect_op({"head_loss", {x, weight, labels, scale}, only_dx}, 5e-6);
    expect_op({"head_loss_dw", {x, weight, labels, scale, acc_loss, weight}, only_dw}, 5e-6);
    for_each_isa([&](const std::string& isa) {
      const auto both = run_cpu({"head_loss", {x, weight, labels, scale, acc_loss, weight}, h.attrs()});
      expect_same_bits(run_cpu({"head_loss", {x, weight, labels, scale, acc_loss}, only_dx}),
                       {both[0], both[1]}, isa + " dx");
      expect_same_bits(run_cpu({"head_loss_dw", {x, weight, labels, scale, acc_loss, weight}, only_dw}),
                       {both[0], both[2]}, isa + " dw");
    });
  }
}

TEST(Attention, AgainstReference) {
  const Attrs plain{{"scale", 0.3}, {"causal", true}, {"window", int64_t{0}}};
  const Tensor q = normal({2, 17, 4, 20}, 1), k = normal({2, 17, 2, 20}, 2), v = normal({2, 17, 2, 20}, 3);
  Tensor starts = ints({2, 17}, std::vector<int32_t>(34, 0));
  for (size_t i = 8; i < 17; ++i) starts.bits[i] = 8;
  for (const Tensor& doc : {absent(), starts}) {
    expect_op({"attention", {q, k, v, doc}, plain}, 3e-6);
    const auto y = run_cpu({"attention", {q, k, v, doc}, plain});
    expect_op({"attention_grad", {q, k, v, y[0], y[1], normal({2, 17, 4, 20}, 4), doc}, plain}, 1e-5);
  }
}

Tensor join(const std::vector<Tensor>& parts) { return run_cpu({"concat", parts})[0]; }
Tensor reshaped(Tensor t, const Shape& shape) { return t.type.shape = shape, t; }

TEST(Attention, PackedGivesTheBitsOfItsParts) {
  Attrs plain{{"scale", 0.3}, {"causal", true}, {"window", int64_t{5}}}, packed = plain;
  packed.set("heads", int64_t{4});
  packed.set("kv_heads", int64_t{2});
  packed.set("head_dim", int64_t{20});
  const Shape wide{2, 17, 80}, narrow{2, 17, 40}, wide4{2, 17, 4, 20}, narrow4{2, 17, 2, 20};
  const Tensor q = normal(wide4, 1), k = normal(narrow4, 2), v = normal(narrow4, 3), dout = normal(wide4, 4);
  const Tensor qkv = join({reshaped(q, wide), reshaped(k, narrow), reshaped(v, narrow)});
  expect_op({"attention_packed", {qkv}, packed}, 3e-6);
  for_each_isa([&](const std::string& isa) {
    const auto y = run_cpu({"attention", {q, k, v}, plain});
    const auto yp = run_cpu({"attention_packed", {qkv}, packed});
    expect_same_bits(yp, {reshaped(y[0], wide), y[1]}, isa);
    const auto d = run_cpu({"attention_grad", {q, k, v, y[0], y[1], dout}, plain});
    const auto dp = run_cpu({"attention_packed_grad", {qkv, yp[0], yp[1], reshaped(dout, wide)}, packed});
    expect_same_bits(dp[0], join({reshaped(d[0], wide), reshaped(d[1], narrow), reshaped(d[2], narrow)}),
                     isa);
  });
}

// ---- optimizer
// ---------------------------------------------------------------------------------------------------

/// Two groups: fields from 0.3 to 1.0, as hyper-parameters of any rule might be.
Tensor groups(const ops::UpdateRule& rule) {
  std::vector<float> fields;
  for (int64_t i = 0; i < 2 * rule.num_fields; ++i)
    fields.push_back(1.0f - 0.7f * static_cast<float>(i % 7) / 7);
  return floats({2, rule.num_fields}, fields);
}
Tensor squared(Tensor t) {
  for (size_t i = 0; i < t.bits.size(); ++i) t.bits[i] = std::bit_cast<uint32_t>(t.f32(i) * t.f32(i));
  return t;
}
/// Parameter, gradient and states, the last of them positive.
std::vector<Tensor> operands(const ops::UpdateRule& rule, const Shape& s, unsigned seed) {
  std::vector<Tensor> tensors;
  for (unsigned i = 0; i < rule.num_operands(); ++i) tensors.push_back(normal(s, seed + i));
  if (!rule.states.empty()) tensors.back() = squared(tensors.back());
  return tensors;
}

TEST(Optimizer, EveryRuleAgainstItsReference) {
  for (const ops::UpdateRule& rule : ops::update_rules())
    for (const Shape& s : {Shape{1}, Shape{33}, Shape{3, 17000}}) {
      auto in = operands(rule, s, 1);
      in.insert(in.end(), {scalar(0.7f), groups(rule)});
      for (const int64_t group : {0, 1}) expect_op({std::string(rule.name), in, {{"group", group}}}, 1e-6);
    }
}

/// Not one of the two forms in disguise: the column decides.
TEST(Optimizer, NesterovIsAColumn) {
  const Tensor p = normal({40}, 1), g = normal({40}, 2), buffer = normal({40}, 3), one = scalar(1.0f);
  const auto step = [&](float nesterov) {
    return run_cpu({"sgd_momentum",
                    {p, g, buffer, one, floats({1, ops::kSgdFields}, {0.1f, 0.01f, 0.9f, 1.0f, nesterov})},
                    {{"group", int64_t{0}}}});
  };
  const auto plain = step(0), ahead = step(1);
  expect_same_bits(plain[1], ahead[1], "buffer");
  for (size_t i = 0; i < 40; ++i) {
    const double decayed = g.f32(i) + 0.01 * p.f32(i), b = 0.9 * buffer.f32(i) + decayed;
    EXPECT_NEAR(plain[0].f32(i), p.f32(i) - 0.1 * b, 1e-6);
    EXPECT_NEAR(ahead[0].f32(i), p.f32(i) - 0.1 * (decayed + 0.9 * b), 1e-6);
  }
}

TEST(Optimizer, NormAndClipAgainstReference) {
  for (const Shape& s : {Shape{1}, Shape{33}, Shape{3, 17000}})
    expect_op({"sum_squares", {normal(s, 1)}}, 1e-7);
  expect_op({"sum_squares_sweep", {normal({3, 17000}, 1), normal({5}, 2), normal({16384}, 3)}}, 1e-7);
  expect_op({"global_norm", {floats({3}, {1.0f, 2.0f, 3.5f}), scalar(7.0f)}}, 1e-7);
  expect_op({"clip_scale", {scalar(3.0f)}, {{"max_norm", 1.0}}}, 1e-6);
  expect_op({"clip_scale", {scalar(0.5f)}, {{"max_norm", 1.0}}}, 1e-6);
  EXPECT_TRUE(std::isnan(run_cpu({"clip_scale", {scalar(std::nanf(""))}, {{"max_norm", 1.0}}})[0].f32(0)));
}

TEST(Optimizer, LossScaleAgainstReference) {
  const Tensor scaler = floats({3}, {8.0f, 1.0f, 0.0f});
  const ir::Attrs scaling{{"growth_factor", 3.0}, {"backoff_factor", 0.3}, {"growth_interval", int64_t{2}}};
  for (const float norm : {32.0f, 1e-3f, HUGE_VALF}) {
    const Tensor scaled = scalar(norm);
    if (std::isfinite(norm)) {
      expect_op({"unscale", {scaled, scaler}, {{"max_norm", 1.0}}}, 1e-6);
      expect_op({"unscale", {scaled, scaler}}, 1e-6);
    } else {
      EXPECT_TRUE(std::isnan(run_cpu({"unscale", {scaled, scaler}, {{"max_norm", 1.0}}})[1].f32(0)));
    }
    expect_op({"next_scale", {scaler, scaled}, scaling}, 0);
  }
}

TEST(Optimizer, AFactorThatIsNoNumberSkipsTheStep) {
  for_each_isa([&](const std::string& isa) {
    for (const ops::UpdateRule& rule : ops::update_rules()) {
      auto in = operands(rule, {3, 17000}, 1);
      std::vector<Tensor> kept = {in[0]};
      kept.insert(kept.end(), in.begin() + 2, in.end());
      in.insert(in.end(), {scalar(std::nanf("")), groups(rule)});
      const auto out = run_cpu({std::string(rule.name), in, {{"group", int64_t{0}}}});
      for (size_t r = 0; r < kept.size(); ++r) EXPECT_EQ(out[r].bits, kept[r].bits) << isa << rule.name;
    }
  });
}

TEST(Optimizer, SweepGivesTheBitsOfItsParts) {
  const Shape shapes[] = {{3, 17000}, {5}, {16384}, {16385}};
  const std::vector<int64_t> group{0, 1, 1, 0};
  for_each_isa([&](const std::string& isa) {
    for (const ops::UpdateRule& rule : ops::update_rules()) {
      std::vector<Tensor> in{scalar(0.7f), groups(rule)}, expected;
      for (size_t i = 0; i < 4; ++i) {
        auto each = operands(rule, shapes[i], static_cast<unsigned>(10 * i));
        in.insert(in.end(), each.begin(), each.end());
        each.insert(each.end(), {scalar(0.7f), groups(rule)});
        const auto updated = run_cpu({std::string(rule.name), each, {{"group", group[i]}}});
        expected.insert(expected.end(), updated.begin(), updated.end());
      }
      for (const int threads : {1, 2, 3})
        expect_same_bits(run_cpu({std::string(rule.sweep), in, {{"group", group}}}, {.threads = threads}),
                         expected, isa + " " + std::string(rule.name));
    }
    std::vector<Tensor> gradients;
    std::vector<float> squares;
    for (const Shape& s : shapes) {
      gradients.push_back(normal(s, 1));
      squares.push_back(run_cpu({"sum_squares", {gradients.back()}})[0].f32(0));
    }
    expect_same_bits(run_cpu({"sum_squares_sweep", gradients})[0], floats({4}, squares), isa);
  });
}

/// Parameter, gradient and states in these dtypes, clip and groups, random words.
std::vector<Tensor> stored_operands(const ops::UpdateRule& rule, const Shape& s, DType param, DType grad,
                                    DType states, bool draws) {
  std::vector<Tensor> in = operands(rule, s, 1);
  for (size_t i = 0; i < in.size(); ++i) in[i] = as(i == 0 ? param : i == 1 ? grad : states, in[i]);
  in.insert(in.end(), {scalar(0.7f), groups(rule)});
  if (draws) in.push_back(ints({4}, {11, -3, 7, 0}));
  return in;
}
Attrs form(const char* copy, const char* rounded, bool draws) {
  Attrs attrs{{"group", int64_t{1}}};
  if (*copy != '\0') attrs.set("copy", std::string(copy));
  if (*rounded != '\0') attrs.set("rounded", std::string(rounded));
  if (draws) attrs.set("key", int64_t{0x1234567});
  return attrs;
}
constexpr DType kF32 = DType::kF32, kBf16 = DType::kBf16, kF16 = DType::kF16;
Tensor as_f32_or(DType dtype, const Tensor& t) { return dtype == kF32 ? t : as(dtype, t); }

/// Each mixture of dtypes: the reference's values to a rounding of what is stored, the same bits for threads.
TEST(StoredOptimizer, EveryMixtureAgainstItsReference) {
  struct Row {
    DType param, grad, states;
    const char *copy, *rounded;
    bool draws;
  };
  for (const Row& r :
       {Row{kF32, kBf16, kF32, "bf16", "", false}, Row{kF32, kF32, kF32, "bf16", "bf16", false},
        Row{kF32, kF16, kBf16, "f16", "", true}, Row{kBf16, kBf16, kBf16, "", "", true},
        Row{kBf16, kF32, kBf16, "", "f16", false}, Row{kF16, kBf16, kF32, "", "", false}})
    for (const ops::UpdateRule& rule : ops::update_rules())
      for (const Shape& s : {Shape{1}, Shape{33}, Shape{3, 6000}}) {
        std::vector<Tensor> in = operands(rule, s, 1);
        for (size_t i = 0; i < in.size(); ++i)
          in[i] = as_f32_or(i == 0 ? r.param : i == 1 ? r.grad : r.states, in[i]);
        in.insert(in.end(), {scalar(0.7f), groups(rule)});
        if (r.draws) in.push_back(ints({4}, {11, -3, 7, 0}));
        expect_op({std::string(rule.name), in, form(r.copy, r.rounded, r.draws)}, r.draws ? 0x1p-7 : 0x1p-8);
      }
}

/// To the bit: f32 arithmetic of what is stored, then the rounding that rounding.h defines.
TEST(StoredOptimizer, DrawsTheWordsOfItsElements) {
  const ops::UpdateRule& rule = *ops::find_update_rule("adamw");
  const Shape s{3, 6001};
  for_each_isa([&](const std::string& isa) {
    const auto brief = stored_operands(rule, s, kBf16, kBf16, kBf16, true);
    std::vector<Tensor> wide = brief;
    wide.pop_back();
    for (Tensor& t : wide)
      if (t.type.dtype == kBf16) {
        t.type.dtype = kF32;
        for (uint32_t& bits : t.bits) bits <<= 16;
      }
    const auto exact = run_cpu({"adamw", wide, form("", "", false)});
    const auto got = run_cpu({"adamw", brief, form("", "", true)}, {.threads = 3});
    for (size_t r = 0; r < 3; ++r) {
      const ops::RandomStream stream{11, static_cast<uint32_t>(-3), 7, 0, 0x1234567};
      Tensor expected = got[r];
      for (size_t e = 0; e < expected.bits.size(); ++e) {
        const uint32_t word = ops::random_words(stream, e / 4)[e % 4];
        const double v = ops::rounded_stochastically(exact[r].value(e), ops::update_bits(word, r));
        expected.bits[e] = std::bit_cast<uint32_t>(static_cast<float>(v)) >> 16;
      }
      expect_same_bits(got[r], expected, isa + ", result " + std::to_string(r));
    }
  });
}

TEST(StoredOptimizer, SweepGivesTheBitsOfItsParts) {
  const ops::UpdateRule& rule = *ops::find_update_rule("adamw");
  const Shape shapes[] = {{3, 6000}, {5}, {16385}};
  const Tensor random = ints({4}, {11, -3, 7, 0});
  std::vector<Tensor> in{scalar(0.7f), groups(rule), random}, expected;
  const std::vector<int64_t> keys{5, 6, 7}, group{0, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    auto each = operands(rule, shapes[i], static_cast<unsigned>(10 * i));
    for (size_t t = 1; t < each.size(); ++t) each[t] = as(kBf16, each[t]);
    in.insert(in.end(), each.begin(), each.end());
    each.insert(each.end(), {scalar(0.7f), groups(rule), random});
    const auto updated =
        run_cpu({"adamw", each, {{"group", group[i]}, {"key", keys[i]}, {"copy", std::string("bf16")}}});
    expected.insert(expected.end(), updated.begin(), updated.end());
  }
  for (const int threads : {1, 3})
    expect_same_bits(
        run_cpu({"adamw_sweep", in, {{"group", group}, {"key", keys}, {"copy", std::string("bf16")}}},
                {.threads = threads}),
        expected, "adamw_sweep");
}

TEST(StoredOptimizer, SquaresOfWhatIsStored) {
  for (const DType dtype : {kBf16, kF16})
    for (const Shape& s : {Shape{1}, Shape{33}, Shape{3, 6001}}) {
      const Tensor x = as(dtype, normal(s, 1));
      expect_op({"sum_squares", {x}}, 1e-7);
      const Attrs rounded{{"rounded", std::string(dtype == kBf16 ? "bf16" : "f16")}};
      expect_same_bits(run_cpu({"sum_squares", {normal(s, 1)}, rounded}), run_cpu({"sum_squares", {x}}),
                       "rounded");
    }
  expect_op({"sum_squares_sweep", {as(kBf16, normal({3, 6000}, 1)), normal({5}, 2)}}, 1e-7);
}

/// Rows of a bf16 table into f32, gradients into bf16.
TEST(StoredEmbedding, RowsAndSumsInAnyDtype) {
  const Tensor ids = indices({2, 40}, 50, 1), table = as(kBf16, normal({50, 33}, 2)),
               dy = normal({2, 40, 33}, 3);
  const Attrs f32{{"out", std::string("f32")}}, rows{{"rows", int64_t{50}}, {"out", std::string("bf16")}};
  expect_op({"embedding", {table, ids}}, 0);
  expect_op({"embedding", {table, ids}, f32}, 0);
  expect_op({"embedding_grad", {dy, ids}, rows}, 0x1p-8);
  expect_op({"embedding_grad", {as(kBf16, dy), ids}, rows}, 0x1p-8);
  expect_op({"embedding_grad_add", {table, dy, ids}}, 0x1p-8);
  expect_op({"embedding_grad_add", {normal({50, 33}, 4), as(kBf16, dy), ids}}, 1e-5);
}

}  // namespace
}  // namespace plimsoll::cpu::testing
