// The optimizers' kernels: against the references, sweeps against their parts.
#include "backends/cpu/kernel_harness.h"
#include "ops/philox.h"
#include "ops/ranks.h"
#include "ops/rounding.h"
#include "ops/shard.h"
#include "ops/update_rules.h"

namespace plimsoll::cpu::fixtures {
namespace {

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

/// More tensors than a launch on a card takes, of unlike sizes.
TEST(Optimizer, SweepsAgainstTheirReferences) {
  for (const ops::UpdateRule& rule : ops::update_rules()) {
    std::vector<Tensor> in{scalar(0.7f), groups(rule)};
    std::vector<int64_t> group;
    for (int64_t t = 0; t < 35; ++t) {
      const auto each = operands(rule, Shape{t % 5 == 0 ? 2049 : 3 + t}, static_cast<unsigned>(10 * t));
      in.insert(in.end(), each.begin(), each.end());
      group.push_back(t % 2);
    }
    expect_op({std::string(rule.multi_tensor), in, {{"group", group}}}, 1e-6);
  }
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
        expect_same_bits(
            run_cpu({std::string(rule.multi_tensor), in, {{"group", group}}}, {.threads = threads}), expected,
            isa + " " + std::string(rule.name));
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

/// Elements [begin, begin + count) of a row of numbers; zeros stand behind its end.
Tensor window(const Tensor& x, int64_t begin, int64_t count) {
  Tensor part = x;
  part.type.shape = Shape{count};
  part.bits.assign(static_cast<size_t>(count), 0);
  for (int64_t i = 0; i < count && begin + i < x.type.num_elements(); ++i)
    part.bits[static_cast<size_t>(i)] = x.bits[static_cast<size_t>(begin + i)];
  return part;
}

/// What `chunk_squares` gives on a rank that holds the whole gradients, or its pieces of those that have any.
Tensor squares_on(int64_t rank, int64_t ranks, const std::vector<Tensor>& gradients, bool as_pieces) {
  std::vector<int32_t> words;
  std::vector<int64_t> elements;
  std::vector<Tensor> held;
  for (const Tensor& g : gradients) {
    elements.push_back(g.type.num_elements());
    const int64_t piece = ops::piece_elements(elements.back(), ranks);
    held.push_back(as_pieces && piece < elements.back() ? window(g, rank * piece, piece) : g);
    const ops::OwnChunks own =
        ops::own_chunks_of(elements.back(), held.back().type.num_elements(), ranks, rank);
    words.insert(words.end(), {own.first, own.count, own.last_elements});
  }
  held.insert(held.begin(), ints({std::ssize(gradients), ops::kChunkWords}, words));
  return run_cpu({"chunk_squares", held, {{"ranks", ranks}, {"elements", elements}}}, {.threads = 3})[0];
}

TEST(GradNorm, SquaresOverRanksAreThoseOfOne) {
  const std::vector<Tensor> gradients = {normal({51'000}, 1), normal({5}, 2), normal({16384}, 3),
                                         as(DType::kBf16, normal({70'001}, 4))};
  for_each_isa([&](const std::string& isa) {
    const Tensor expected = run_cpu({"sum_squares_sweep", gradients})[0];
    for (const int64_t ranks : {1, 2, 3, 7})
      for (const bool as_pieces : {false, true}) {
        std::vector<int64_t> pieces;
        for (const Tensor& g : gradients)
          pieces.push_back(ops::piece_elements(g.type.num_elements(), ranks) / ops::kPieceGrain);
        Tensor all;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const Tensor own = squares_on(rank, ranks, gradients, as_pieces);
          all.bits.insert(all.bits.end(), own.bits.begin(), own.bits.end());
          all.type = {own.type.dtype, Shape{ranks, own.type.shape.dim(0), 2}};
        }
        expect_same_bits(run_cpu({"sum_chunk_squares", {all}, {{"pieces", pieces}}})[0], expected, isa);
      }
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

/// Operands at which no rule jumps: a sign is of two that agree, however they are rounded.
std::vector<Tensor> smooth_operands(const ops::UpdateRule& rule, const Shape& s) {
  std::vector<Tensor> in = operands(rule, s, 1);
  for (size_t i = 0; rule.name == "lion" && i < in[1].bits.size(); ++i)
    in[2].bits[i] = std::bit_cast<uint32_t>(std::copysign(in[2].f32(i), in[1].f32(i)));
  return in;
}

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
        std::vector<Tensor> in = smooth_operands(rule, s);
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

/// Other words would round half of the elements otherwise.
TEST(StoredOptimizer, DrawsOnACardTheWordsOfTheCpu) {
  if (cuda::fixtures::card() == nullptr) GTEST_SKIP() << "no card";
  const auto in = stored_operands(*ops::find_update_rule("adamw"), {3, 6001}, kBf16, kBf16, kBf16, true);
  const OpRun run{"adamw", in, form("", "", true)};
  const auto card = run_on_card(*cuda::fixtures::card(), run), cpu = run_cpu(run);
  for (size_t r = 0; r < 3; ++r) {
    size_t apart = 0;
    for (size_t e = 0; e < cpu[r].bits.size(); ++e) apart += card[r].bits[e] != cpu[r].bits[e];
    EXPECT_LE(apart, cpu[r].bits.size() / 50) << "result " << r;
  }
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

}  // namespace
}  // namespace plimsoll::cpu::fixtures
