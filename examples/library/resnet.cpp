// A residual network that tells in which direction the stripes of a picture run.
#include <plimsoll/plimsoll.h>

#include <cmath>
#include <cstdio>
#include <vector>

namespace pl = plimsoll;

struct Block : pl::Module {
  using Module::Module;
  pl::Conv2d conv1{*this, "conv1", 16, 16, 3, {.padding = 1, .bias = false}};
  pl::Conv2d conv2{*this, "conv2", 16, 16, 3, {.padding = 1, .bias = false}};
  pl::BatchNorm2d bn1{*this, "bn1", 16}, bn2{*this, "bn2", 16};
  pl::Value forward(pl::Value x) { return pl::relu(x + bn2(conv2(pl::relu(bn1(conv1(x)))))); }
};

struct Net : pl::Module {
  pl::Conv2d stem{*this, "stem", 1, 16, {5, 5}, {.stride = 2, .padding = 2}};
  pl::ModuleList<Block> layers{*this, "layers", 2};
  pl::Linear head{*this, "head", 16, 2};
  pl::Value forward(pl::Value images) {
    pl::Value x = pl::max_pool2d(pl::relu(stem(images)), 2);
    for (Block& layer : layers) x = layer.forward(x);
    return head(pl::mean(x, {.axes = {2, 3}}));
  }
};

int main() {
  Net net;
  const pl::Plan plan = pl::plan({
      .inputs = {{"images", pl::f32, {16, 1, 16, 16}}, {"labels", pl::i32, {16}}},
      .loss = [&](pl::Inputs in) { return pl::cross_entropy(net.forward(in["images"]), in["labels"]); },
      .optimizer = pl::AdamW{.lr = 3e-3},
      .memory_budget = "64MiB",
  });
  pl::Session session(plan, {.seed = 1});
  std::vector<float> images(size_t{16} * 256);
  std::vector<int32_t> labels(16);
  for (size_t i = 0; i < images.size(); ++i) {  // picture i / 256: stripes along or across
    labels[i / 256] = static_cast<int32_t>(i / 256 % 2);
    images[i] = std::sin(static_cast<float>(i / 256 + (labels[i / 256] == 1 ? i % 16 : i / 16 % 16)));
  }
  const pl::Batch batch{{"images", pl::array(images.data(), {16, 1, 16, 16})},
                        {"labels", pl::array(labels.data(), {16})}};
  for (int i = 0; i < 30; ++i)
    if (const pl::Step step = session.step(batch); step.index % 5 == 0)
      std::printf("%lld %.4f\n", step.index, step.loss);
  std::printf("%.4f in evaluation, by %s\n", session.evaluate(batch), session.names().back().c_str());
}
