// An own loop: mixed precision, gradients accumulated over four parts, a checkpoint that the next start
// continues from.
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <random>

namespace pl = plimsoll;

struct Net : pl::Module {
  pl::Linear first{*this, "first", 32, 128};
  pl::Dropout drop{*this, "drop", 0.1};
  pl::Linear second{*this, "second", 128, 10};
  pl::Value forward(pl::Value x) {
    const pl::Scope low = pl::autocast(pl::bf16);  // to the end of this function
    return second(drop(pl::relu(first(x))));
  }
};

int main(int argc, char** argv) try {
  const char* folder = argc > 1 ? argv[1] : "own-loop";
  Net net;
  const pl::Plan plan =
      pl::plan({.inputs = {{"x", pl::f32, {16, 32}}, {"label", pl::i32, {16}}},
                .loss = [&](pl::Inputs in) { return pl::cross_entropy(net.forward(in["x"]), in["label"]); },
                .optimizer = pl::SGD{.lr = 0.1, .momentum = 0.9, .nesterov = true},
                .clip_norm = 1.0});
  pl::Session session(plan, {.seed = 1, .resume = folder});
  for (int round = 0; round < 100; ++round) {
    std::mt19937 random(static_cast<unsigned>(session.steps()));
    std::vector<float> x(64 * 32);
    std::vector<int32_t> label(64);
    for (size_t i = 0; i < 64; ++i) {
      label[i] = static_cast<int32_t>(random() % 10);
      for (size_t j = 0; j < 32; ++j)
        x[i * 32 + j] = (j % 10 == static_cast<size_t>(label[i]) ? 1.0F : 0.0F) +
                        static_cast<float>(random() % 100) / 100;
    }
    const pl::Batch batch{{"x", pl::array(x.data(), {64, 32})}, {"label", pl::array(label.data(), {64})}};
    const pl::Step step = session.step(batch, {.accumulate = 4});
    if (step.index % 20 == 0) std::printf("%lld %.4f norm %.3f\n", step.index, step.loss, step.grad_norm);
  }
  session.save(folder);
} catch (const pl::DoesNotFit& error) {
  std::fprintf(stderr, "%s\n%s\nleast: %lld bytes\n", error.what(), error.hint(),
               static_cast<long long>(error.least_bytes()));
  return 69;
}
