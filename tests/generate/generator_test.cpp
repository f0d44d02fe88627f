// Generation through the programs: logits are those of a whole forward pass, and what a prompt gives does not
// depend on batch, chunks, cache or threads.
#include "generate/generator.h"

#include <cmath>

#include "generate/generator_rig.h"

namespace plimsoll::generate {
namespace {

Ids some_prompt(int64_t tokens, int seed = 0) {
  Ids ids;
  for (int64_t i = 0; i < tokens; ++i)
    ids.push_back(static_cast<int32_t>((i * i * 7 + i * 31 + seed * 13 + 5) % 97));
  return ids;
}

TEST(Generator, LogitsAreThoseOfAWholeForwardPass) {
  for (const auto& [name, json] : families()) {
    const auto model = models::model_of(json);
    for (const int64_t prompt_tokens : {1, 2, 17, 40}) {
      const Ids prompt = some_prompt(prompt_tokens);
      Rig rig(*model, {.cache = prompt_tokens + 19,
                       .chunk = prompt_tokens > 1 ? std::min<int64_t>(16, prompt_tokens) : 0});
      const Ids generated = rig.generate(prompt, {.max_new_tokens = 20});
      ASSERT_EQ(generated.size(), 20U);
      Ids whole = prompt;
      whole.insert(whole.end(), generated.begin(), generated.end() - 1);
      const auto length = static_cast<int64_t>(whole.size());
      const std::vector<float> expected = models::CpuForward(*model, 1, length)(whole);
      const std::vector<float>& got = rig.logits()[0];
      const size_t offset = expected.size() - got.size();
      double squares = 0;
      for (const float v : got) squares += static_cast<double>(v) * static_cast<double>(v);
      const double rms = std::sqrt(squares / static_cast<double>(got.size()));
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], expected[offset + i], 1e-5 * rms) << name << " after " << prompt_tokens;
    }
  }
}

TEST(Generator, ABatchGivesWhatEachPromptGivesAlone) {
  for (const auto& [name, json] : families()) {
    const auto model = models::model_of(json);
    const std::vector<Ids> prompts{some_prompt(30, 1), some_prompt(1, 2), some_prompt(9, 3),
                                   some_prompt(33, 4), some_prompt(2, 5)};
    Rig together(*model, {.batch = 6, .cache = 33 + 24, .chunk = 32});
    for (const double temperature : {0.0, 1.5}) {
      GeneratorOptions options{.max_new_tokens = 25, .sampling = {.temperature = temperature}};
      const std::vector<Ids> all = together.generate(prompts, options);
      const auto logits = together.logits();
      for (size_t i = 0; i < prompts.size(); ++i) {
        Rig alone(*model, {.cache = static_cast<int64_t>(prompts[i].size()) + 24, .chunk = 0 + 16});
        EXPECT_EQ(alone.generate({prompts[i]}, options, static_cast<uint32_t>(i))[0], all[i]) << name << i;
        EXPECT_EQ(alone.logits()[0], logits[i]) << name << i;
      }
    }
  }
}

TEST(Generator, ChunksAndThreadsChangeNoBit) {
  for (const auto& [name, json] : families()) {
    const auto model = models::model_of(json);
    const Ids prompt = some_prompt(50);
    Rig first(*model, {.cache = 70, .chunk = 64, .threads = 1});
    const Ids expected = first.generate(prompt, {.max_new_tokens = 20});
    for (const Shape& shape :
         {Shape{.cache = 69, .chunk = 64, .threads = 2}, Shape{.cache = 75, .chunk = 17},
          Shape{.cache = 70, .chunk = 50, .threads = 3}, Shape{.cache = 69, .chunk = 2}}) {
      Rig other(*model, shape);
      EXPECT_EQ(other.generate(prompt, {.max_new_tokens = 20}), expected) << name << shape.chunk;
      EXPECT_EQ(other.logits(), first.logits()) << name << shape.chunk;
    }
  }
}

/// Distance of two rows of logits, against the size of the first.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 0, difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<double>(a[i]), d = x - static_cast<double>(b[i]);
    squares += x * x;
    difference += d * d;
  }
  return std::sqrt(difference / squares);
}

// In bf16: half the bytes, the same independence of batch, chunks and threads, logits of bf16's accuracy.
TEST(Generator, InBf16) {
  for (const auto& [name, json] : families()) {
    const auto model = models::model_of(json), whole = models::model_of(json);
    model->keep_in(ir::DType::kBf16);
    constexpr auto kBf16 = ops::Precision::kBf16;
    const Ids prompt = some_prompt(50);
    Rig rig(*model, {.cache = 70, .chunk = 64, .threads = 1, .precision = kBf16});
    const Ids ids = rig.generate(prompt, {.max_new_tokens = 20});
    for (const Shape& shape :
         {Shape{.cache = 75, .chunk = 17, .precision = kBf16},
          Shape{.batch = 3, .cache = 69, .chunk = 50, .threads = 3, .precision = kBf16}}) {
      Rig other(*model, shape);
      EXPECT_EQ(other.generate(prompt, {.max_new_tokens = 20}), ids) << name << shape.chunk;
      EXPECT_EQ(other.logits(), rig.logits()) << name << shape.chunk;
    }
    Rig fp32(*whole, {.cache = 70, .chunk = 64});
    fp32.generate(prompt, {.max_new_tokens = 1});
    const std::vector<float> first(rig.logits()[0].begin(), rig.logits()[0].begin() + 97);
    EXPECT_LT(distance(fp32.logits()[0], first), 0.03) << name;
    for (const auto c : {ir::StateClass::kParameter, ir::StateClass::kCache})
      EXPECT_EQ(2 * rig.session().plan().class_bytes(c), fp32.session().plan().class_bytes(c)) << name;
  }
}

// A session goes on from batch to batch: what the last one left in the cache must not be seen.
TEST(Generator, ASessionServesBatchAfterBatch) {
  const auto model = models::model_of(families().at("llama"));
  Rig rig(*model, {.batch = 2});
  const GeneratorOptions options{.max_new_tokens = 10};
  const auto first = rig.generate({some_prompt(20), some_prompt(5)}, options);
  rig.generate({some_prompt(40, 7), some_prompt(50, 8)}, options);
  rig.generate(some_prompt(3), options);
  EXPECT_EQ(rig.generate({some_prompt(20), some_prompt(5)}, options), first);
}

TEST(Generator, StopsAtAnEndOfSequence) {
  const auto model = models::model_of(families().at("llama"));
  Rig rig(*model, {.batch = 2});
  const std::vector<Ids> prompts{some_prompt(20), some_prompt(5)};
  const auto all = rig.generate(prompts, {.max_new_tokens = 12});
  const int32_t eos = all[0][4];
  const auto stopped = rig.generate(prompts, {.max_new_tokens = 12, .eos_ids = {96, eos}});
  const auto end = std::find(all[0].begin(), all[0].end(), eos) + 1;
  EXPECT_EQ(stopped[0], Ids(all[0].begin(), end));
  const auto other = std::find(all[1].begin(), all[1].end(), eos);
  EXPECT_EQ(stopped[1], Ids(all[1].begin(), other == all[1].end() ? other : other + 1));
}

TEST(Generator, IsInterruptedBetweenTokens) {
  const auto model = models::model_of(families().at("gpt2"));
  Rig rig(*model, {});
  const Ids all = rig.generate(some_prompt(20), {.max_new_tokens = 12});
  Generator generator(const_cast<runtime::Session&>(rig.session()), {.max_new_tokens = 12});
  std::vector<Sequence> sequences{{.ids = some_prompt(20), .prompt_tokens = 20}};
  int tokens = 0, ends = 0;
  const auto count = [&](const Sequence&, int32_t id) {
    id < 0 ? ++ends : ++tokens;
    return true;
  };
  ASSERT_TRUE(generator.run(sequences, count, [&] { return tokens == 5; }).ok());
  EXPECT_EQ(sequences[0].finish, Finish::kInterrupted);
  EXPECT_EQ(ends, 1);
  const auto got = sequences[0].new_ids();
  EXPECT_TRUE(std::equal(got.begin(), got.end(), all.begin(), all.begin() + 5));
}

TEST(Generator, TheCallerEndsASequenceAndTheOthersGoOn) {
  const auto model = models::model_of(families().at("llama"));
  Rig rig(*model, {.batch = 2});
  const auto all = rig.generate({some_prompt(20), some_prompt(5)}, {.max_new_tokens = 12});
  Generator generator(const_cast<runtime::Session&>(rig.session()), {.max_new_tokens = 12});
  std::vector<Sequence> sequences{{.ids = some_prompt(20), .prompt_tokens = 20},
                                  {.ids = some_prompt(5), .prompt_tokens = 5, .room_tokens = 9, .index = 1}};
  const auto until = [](const Sequence& s, int32_t) { return s.index == 1 || s.new_ids().size() < 4; };
  ASSERT_TRUE(generator.run(sequences, until, [] { return false; }).ok());
  EXPECT_EQ(sequences[0].finish, Finish::kStop);
  EXPECT_EQ(sequences[1].finish, Finish::kLength);
  EXPECT_TRUE(std::ranges::equal(sequences[0].new_ids(), std::span(all[0]).first(4)));
  EXPECT_TRUE(std::ranges::equal(sequences[1].new_ids(), std::span(all[1]).first(9)));
}

// A conversation's next turn: what an earlier prefill has left in the cache is not computed again, and the
// bits are those of a cache that was empty.
TEST(Generator, GoesOnFromWhatTheCacheHolds) {
  for (const auto& [name, json] : families()) {
    const auto model = models::model_of(json);
    const Ids longer = some_prompt(45);
    Rig first(*model, {});
    const Ids expected = first.generate(longer, {.max_new_tokens = 10});
    Rig rig(*model, {});
    rig.generate(Ids(longer.begin(), longer.begin() + 30), {.max_new_tokens = 12});
    Generator generator(const_cast<runtime::Session&>(rig.session()), {.max_new_tokens = 10});
    std::vector<Sequence> sequences{{.ids = longer, .prompt_tokens = 45, .cached_tokens = 29}};
    ASSERT_TRUE(generator
                    .run(
                        sequences, [](auto&&...) { return true; }, [] { return false; })
                    .ok());
    EXPECT_TRUE(std::ranges::equal(sequences[0].new_ids(), expected)) << name;
    EXPECT_EQ(generator.rates().prefill_tokens, 45 - 1 - 29);
  }
}

TEST(Generator, ARepetitionPenaltyKeepsFromRepeating) {
  const auto model = models::model_of(families().at("llama"));
  Rig rig(*model, {});
  const Ids ids =
      rig.generate(some_prompt(5), {.max_new_tokens = 40, .sampling = {.repetition_penalty = 1e4}});
  EXPECT_EQ(std::set<int32_t>(ids.begin(), ids.end()).size(), 40U);
}

TEST(Chunks, CoverPromptsInEvenShares) {
  EXPECT_EQ(chunk_tokens(1, 1, 100), 0);
  EXPECT_EQ(chunk_tokens(2, 1, 100), 16);
  EXPECT_EQ(chunk_tokens(2, 1, 9), 9);
  EXPECT_EQ(chunk_tokens(257, 1, 400), 256);
  EXPECT_EQ(chunk_tokens(258, 1, 400), 144);
  EXPECT_EQ(chunk_tokens(1000, 8, 2000), 64);
  EXPECT_EQ(cache_tokens(5, 1), 5);
}

}  // namespace
}  // namespace plimsoll::generate
