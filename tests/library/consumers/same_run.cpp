// A hundred steps whose twin is same_run.py: argument 1 is the folder that gets the model.
#include <plimsoll/plimsoll.h>

#include <vector>

namespace pl = plimsoll;

struct Block : pl::Module {
  pl::RMSNorm norm{*this, "norm", 32};
  pl::Linear up{*this, "up", 32, 64}, down{*this, "down", 64, 32, {.bias = false}};
  pl::Dropout drop{*this, "drop", 0.1};
  pl::Value forward(pl::Value x) { return x + drop(down(pl::gelu(up(norm(x))))); }
};

struct Net : pl::Module {
  pl::Embedding tokens{*this, "tokens", 50, 32};
  pl::ModuleList<Block> layers{*this, "layers", 3};
  pl::LayerNorm norm{*this, "norm", 32};
  pl::Linear head{*this, "head", 32, 50, {.bias = false}};
  pl::Value forward(pl::Value ids) {
    pl::Value x = tokens(ids);
    for (Block& layer : layers) x = layer.forward(x);
    return head(norm(x));
  }
};

int main(int, char** argv) {
  Net net;
  pl::Session session(
      pl::plan(
          {.inputs = {{"ids", pl::i32, {4, 16}}, {"labels", pl::i32, {4, 16}}},
           .loss = [&](pl::Inputs in) { return pl::cross_entropy(net.forward(in["ids"]), in["labels"]); },
           .optimizer = pl::AdamW{.lr = 1e-2}.group("norm|bias", {.weight_decay = 0.0}),
           .clip_norm = 1.0}),
      {.seed = 7});
  std::vector<int32_t> ids(128), labels(128);
  for (int64_t step = 0; step < 100; ++step) {
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<int32_t>((static_cast<size_t>(step) * 31 + i * 7) % 50);
      labels[i] = (ids[i] * 3 + 1) % 50;
    }
    session.step(
        pl::Batch{{"ids", pl::array(ids.data(), {8, 16})}, {"labels", pl::array(labels.data(), {8, 16})}},
        {.lr = pl::cosine(step, 100, 1e-2, {.warmup = 10, .floor = 1e-3}), .accumulate = 2});
  }
  session.save(argv[1]);
}
