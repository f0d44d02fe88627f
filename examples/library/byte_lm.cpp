// A language model over bytes, two transformer blocks, trained on a file (by default on this source).
#include <plimsoll/plimsoll.h>

#include <cstdio>
#include <fstream>
#include <iterator>
namespace pl = plimsoll;
constexpr int64_t kBatch = 4, kTokens = 64, kDim = 64, kHeads = 4;

struct Block : pl::Module {
  pl::RMSNorm norm1{*this, "norm1", kDim}, norm2{*this, "norm2", kDim};
  pl::Linear qkv{*this, "qkv", kDim, 3 * kDim, {.bias = false}},
      out{*this, "out", kDim, kDim, {.bias = false}};
  pl::Linear up{*this, "up", kDim, 4 * kDim}, down{*this, "down", 4 * kDim, kDim};
  pl::Value forward(pl::Value x) {
    std::vector<pl::Value> parts = pl::split(qkv(norm1(x)), {kDim, kDim, kDim});
    for (pl::Value& part : parts) part = pl::reshape(part, {kBatch, kTokens, kHeads, kDim / kHeads});
    pl::Value mixed = pl::attention(parts[0], parts[1], parts[2], {.layout = pl::HeadLayout::tokens_first});
    x = x + out(pl::reshape(mixed, {kBatch, kTokens, kDim}));
    return x + down(pl::silu(up(norm2(x))));
  }
};
struct Net : pl::Module {
  pl::Embedding tokens{*this, "tokens", 256, kDim}, places{*this, "places", kTokens, kDim};
  pl::ModuleList<Block> layers{*this, "layers", 2};
  pl::Linear head{*this, "head", kDim, 256, {.bias = false}};
  pl::Value forward(pl::Value ids) {
    return head(pl::checkpoint_sequential(layers, 2, tokens(ids) + pl::Value(places.weight)));
  }
};
struct Corpus {
  std::vector<unsigned char> text;
  size_t size() const { return text.size() / kTokens - 1; }
  pl::Row operator[](size_t row) const {
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(row * kTokens);
    const std::vector<int32_t> ids(first, first + kTokens), labels(first + 1, first + kTokens + 1);
    return {{"ids", pl::Tensor(ids)}, {"labels", pl::Tensor(labels)}};
  }
};
int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : __FILE__);
  const Corpus corpus{{std::istreambuf_iterator<char>(file), {}}};
  Net net;
  pl::Session session(pl::plan(
      {.inputs = {{"ids", pl::i32, {kBatch, kTokens}}, {"labels", pl::i32, {kBatch, kTokens}}},
       .loss = [&](pl::Inputs in) { return pl::cross_entropy(net.forward(in["ids"]), in["labels"]); },
       .optimizer = pl::AdamW{.lr = 2e-3}.group("norm|bias", {.weight_decay = 0.0})}));
  pl::DataLoader loader(corpus, {.batch_size = kBatch, .shuffle = true});
  for (const pl::Batch& batch : loader.until(100)) std::printf("%.4f\n", session.step(batch).loss);
}
