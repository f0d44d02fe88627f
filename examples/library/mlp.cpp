// A multilayer perceptron that learns y = sum(x^2) of 7 numbers, within a budget of 16 MiB.
#include <plimsoll/plimsoll.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace pl = plimsoll;

struct Net : pl::Module {
  pl::Linear in{*this, "in", 7, 64};
  pl::RMSNorm norm{*this, "norm", 64};
  pl::Linear up{*this, "up", 64, 160, {.bias = false}}, down{*this, "down", 160, 64},
      out{*this, "out", 64, 1};
  pl::Value forward(pl::Value x) {
    x = in(x);
    return out(x + down(pl::gelu(up(norm(x)))));
  }
};

struct Squares {  // a data set: row i is a function of i
  size_t size() const { return 4096; }
  pl::Row operator[](size_t row) const {
    std::vector<float> x(7), y(1);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(std::sin(static_cast<double>(row * 7 + i) * 12.9898));
      y[0] += x[i] * x[i];
    }
    return {{"x", pl::Tensor(x)}, {"y", pl::Tensor(y)}};
  }
};

int main() try {
  Net net;
  const auto plan = pl::plan({.inputs = {{"x", pl::f32, {64, 7}}, {"y", pl::f32, {64, 1}}},
                              .loss = [&](pl::Inputs in) { return pl::mse(net.forward(in["x"]), in["y"]); },
                              .optimizer = pl::AdamW{.lr = 3e-3, .weight_decay = 0.01},
                              .clip_norm = 1.0,
                              .memory_budget = "16MiB"});
  std::puts(plan.table().c_str());
  pl::Session session(plan, {.seed = 42});
  pl::DataLoader loader(Squares{}, {.batch_size = 64, .shuffle = true, .seed = 42, .workers = 2});
  for (const pl::Batch& batch : loader.until(300)) {
    const pl::Step step = session.step(batch, {.lr = pl::cosine(session.steps(), 300, 3e-3)});
    if (step.index % 50 == 0) std::printf("%lld %.4f\n", step.index, step.loss);
  }
} catch (const pl::Error& error) {
  std::fprintf(stderr, "error: %s\nhint: %s\n", error.what(), error.hint());
  return 1;
}
