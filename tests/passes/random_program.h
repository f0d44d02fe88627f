// Random trainable networks over all ops that a model may use: for the fuzzer and for "the same numbers
// before and after". Everything is a function of the seed.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "backends/reference/interpreter.h"
#include "ir/builder.h"
#include "ops/batch_norm.h"
#include "ops/conv2d.h"
#include "ops/group_norm.h"
#include "ops/layer_scale.h"
#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/pooling.h"

namespace plimsoll::fixtures {

using ir::Builder;
using ir::DType;
using ir::Graph;
using ir::Shape;
using ir::StateClass;
using ir::ValueId;

/// Every tenth seed is of a size that the reference interpreter is too slow for.
inline bool is_large(uint64_t seed) { return seed % 10 == 0; }

/// The id whose row of the table some networks do not train.
inline constexpr int64_t kPaddingId = 2;

/// Numbers in a range, from a generator whose sequence the standard fixes.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  int64_t range(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return range(1, 100) <= percent; }
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

/// The forward part of a program and what its states hold at the start.
struct RandomProgram {
  Graph graph;
  ValueId loss;
  std::vector<std::string> names;  ///< of the parameters
  std::vector<ValueId> params;     ///< their reads, parallel
  std::map<std::string, ir::RefTensor> states;
};

class RandomProgramMaker {
 public:
  /// `batch`: sequences in the batch, 0: as the seed has it. The network is the same for any.
  RandomProgramMaker(uint64_t seed, int64_t batch)
      : dice_(seed),
        data_dice_(~seed),
        own_dice_(seed ^ 0x5eed),
        image_dice_(seed ^ 0x1a6e),
        b_(program_.graph, ops::find_op) {
    kv_heads_ = dice_.range(1, 2);
    heads_ = kv_heads_ * dice_.range(1, 2);
    head_dim_ = 2 * dice_.range(1, 5);
    hidden_ = dice_.chance(50) ? heads_ * head_dim_ : dice_.range(3, 20);
    batch_ = dice_.range(1, 3);
    tokens_ = dice_.range(2, 9);
    vocabulary_ = dice_.range(5, 23);
    if (is_large(seed)) enlarge();
    if (batch > 0) batch_ = batch;
  }

  /// Beyond a granule of rows, several tiles of a GEMM, and no multiple of anything.
  void enlarge() {
    batch_ = dice_.range(1, 2);
    tokens_ = dice_.range(200, 600);
    hidden_ = dice_.range(40, 150);
    vocabulary_ = dice_.range(100, 700);
  }

  RandomProgram make() {
    make_inputs();
    const ValueId table = param("table", Shape{vocabulary_, hidden_});
    ValueId x = ops::embedding(b_, table, ids_, dice_.chance(30) ? std::optional(kPaddingId) : std::nullopt);
    const int64_t layers = dice_.range(1, 4);
    for (int64_t i = 0; i < layers; ++i) {
      auto scope = b_.block(static_cast<int32_t>(i), "layers." + std::to_string(i));
      x = layer(x);
      if (own_dice_.chance(40)) x = own(x);
      if (image_dice_.chance(25)) x = image(x);
    }
    auto scope = b_.scope("head");
    if (dice_.chance(80)) x = norm(x, "norm");
    const bool tied = dice_.chance(50);
    const bool transposed = !tied && dice_.chance(30);
    const ValueId weight =
        tied ? again("table", table)
             : param("weight", transposed ? Shape{hidden_, vocabulary_} : Shape{vocabulary_, hidden_});
    const ValueId bias = dice_.chance(20) ? param("bias", Shape{vocabulary_}) : ValueId{};
    const ValueId logits = ops::linear(b_, x, weight, bias, transposed);
    program_.loss = ops::cross_entropy(b_, logits, targets_, grad_scale_, {}).loss;
    PLIMSOLL_CHECK(b_.status().ok(), b_.status() ? "" : b_.status().error().message());
    return std::move(program_);
  }

 private:
  ValueId declare(const std::string& name, DType dtype, Shape shape, StateClass c, std::vector<double> data) {
    program_.states[name] = reference::tensor({dtype, shape}, std::move(data));
    return b_.state({.name = name, .type = {dtype, shape}, .state_class = c});
  }

  std::vector<double> numbers(int64_t count, double low, double high) {
    std::vector<double> data;
    for (int64_t i = 0; i < count; ++i)
      data.push_back(static_cast<double>(static_cast<float>(low + (high - low) * data_dice_.uniform())));
    return data;
  }
  std::vector<double> integers(int64_t count, int64_t low, int64_t high) {
    std::vector<double> data;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<double>(data_dice_.range(low, high)));
    return data;
  }

  ValueId param(const std::string& name, Shape shape) {
    const std::string full = b_.layer().empty() ? name : b_.layer() + "." + name;
    const double reach = shape.rank() == 1 ? 1.0 : 1.5 / std::sqrt(static_cast<double>(shape.dim(-1)));
    const ValueId v = declare(full, DType::kF32, shape, StateClass::kParameter,
                              numbers(shape.num_elements(), shape.rank() == 1 ? 0.5 : -reach, reach));
    program_.names.push_back(full);
    program_.params.push_back(v);
    return v;
  }

  /// A second use of a parameter: the value itself.
  ValueId again(const std::string&, ValueId v) { return v; }

  void make_inputs() {
    const Shape bt{batch_, tokens_};
    const int64_t n = batch_ * tokens_;
    ids_ = declare("ids", DType::kI32, bt, StateClass::kInput, integers(n, 0, vocabulary_ - 1));
    auto targets = integers(n, 0, vocabulary_ - 1);
    for (double& t : targets)
      if (data_dice_.chance(10)) t = ops::kIgnoreTarget;
    targets_ = declare("targets", DType::kI32, bt, StateClass::kInput, std::move(targets));
    grad_scale_ = declare("grad_scale", DType::kF32, Shape{1}, StateClass::kScalars, {0.125});
    random_ = declare("random", DType::kI32, Shape{4}, StateClass::kScalars, {7, 11, 3, 5});
    inv_freq_ = declare("inv_freq", DType::kF32, Shape{head_dim_ / 2}, StateClass::kConstant,
                        numbers(head_dim_ / 2, 0.01, 1.0));
    std::vector<double> starts;
    for (int64_t b = 0; b < batch_; ++b)
      for (int64_t t = 0, start = 0; t < tokens_; ++t) {
        if (data_dice_.chance(20)) start = t;
        starts.push_back(static_cast<double>(start));
      }
    doc_start_ = declare("doc_start", DType::kI32, bt, StateClass::kInput, std::move(starts));
  }

  ValueId norm(ValueId x, const std::string& name) {
    const Shape row{b_.type(x).shape.dim(-1)};
    if (dice_.chance(60)) return ops::rms_norm(b_, x, param(name + ".weight", row), 1e-5).y;
    const ValueId weight = param(name + ".weight", row);
    return ops::layer_norm(b_, x, weight, param(name + ".bias", row), 1e-5).y;
  }

  ValueId linear(ValueId x, int64_t out, const std::string& name, int bias_percent) {
    const int64_t in = b_.type(x).shape.dim(-1);
    const bool transposed = dice_.chance(30);
    const ValueId weight = param(name + ".weight", transposed ? Shape{in, out} : Shape{out, in});
    const ValueId bias = dice_.chance(bias_percent) ? param(name + ".bias", Shape{out}) : ValueId{};
    return ops::linear(b_, x, weight, bias, transposed);
  }

  ValueId layer(ValueId x) {
    switch (dice_.range(0, 3)) {
      case 0:
        return residual(x, attention(norm(x, "attention_norm")));
      case 1:
        return residual(x, mlp(norm(x, "mlp_norm")));
      case 2: {
        const ValueId middle = residual(x, attention(norm(x, "attention_norm")));
        return residual(middle, mlp(norm(middle, "mlp_norm")));
      }
      default:
        return odd(x);
    }
  }

  ValueId residual(ValueId x, ValueId branch) {
    if (dice_.chance(15))
      branch = ops::dropout(b_, branch, random_, 0.25, ops::random_key(b_.layer(), "dropout"));
    return dice_.chance(50) ? ops::add(b_, x, branch) : ops::add(b_, branch, x);
  }

  ValueId attention(ValueId x) {
    auto scope = b_.scope("attention");
    const int64_t q = heads_ * head_dim_;
    const int64_t kv = kv_heads_ * head_dim_;
    std::vector<ValueId> parts;
    if (dice_.chance(70))
      parts = ops::split(b_, linear(x, q + 2 * kv, "qkv", 40), {q, kv, kv});
    else
      parts = {linear(x, q, "q", 40), linear(x, kv, "k", 40), linear(x, kv, "v", 40)};
    ValueId qh = ops::reshape(b_, parts[0], {batch_, tokens_, heads_, head_dim_});
    ValueId kh = ops::reshape(b_, parts[1], {batch_, tokens_, kv_heads_, head_dim_});
    const ValueId vh = ops::reshape(b_, parts[2], {batch_, tokens_, kv_heads_, head_dim_});
    const bool norms = dice_.chance(35);
    if (norms || dice_.chance(10)) qh = ops::rms_norm(b_, qh, param("q_norm", Shape{head_dim_}), 1e-5).y;
    if (norms)
      kh = ops::rms_norm(b_, kh, param("k_norm", Shape{head_dim_}), dice_.chance(80) ? 1e-5 : 1e-4).y;
    if (dice_.chance(60)) {
      const ValueId cos_sin = ops::rope_table(b_, inv_freq_, {}, tokens_);
      qh = ops::rope(b_, qh, cos_sin);
      kh = ops::rope(b_, kh, ops::rope_table(b_, inv_freq_, {}, tokens_));
    }
    const bool causal = dice_.chance(80);
    const ops::AttentionOptions options{.scale = 0.3,
                                        .causal = causal,
                                        .window = causal && dice_.chance(30) ? 3 : 0,
                                        .dropout = dice_.chance(25) ? 0.25 : 0,
                                        .key = ops::random_key(b_.layer(), "attention")};
    const ValueId documents = causal && dice_.chance(30) ? doc_start_ : ValueId{};
    const ValueId out = ops::attention(b_, qh, kh, vh, documents, options, random_).out;
    return linear(ops::reshape(b_, out, {batch_, tokens_, q}), hidden_, "out", 40);
  }

  ValueId mlp(ValueId x) {
    auto scope = b_.scope("mlp");
    const int64_t width = dice_.range(2, 24);
    ValueId h;
    switch (dice_.range(0, 3)) {
      case 0: {
        const auto halves = ops::split(b_, linear(x, 2 * width, "gate_up", 30), {width, width});
        const ValueId gate = ops::silu(b_, halves[0]);
        h = dice_.chance(50) ? ops::mul(b_, gate, halves[1]) : ops::mul(b_, halves[1], gate);
        break;
      }
      case 1:
        h = ops::mul(b_, ops::silu(b_, linear(x, width, "gate", 0)), linear(x, width, "up", 0));
        break;
      case 2:
        h = ops::gelu(b_, linear(x, width, "fc", 70), dice_.chance(50) ? ops::Gelu::kTanh : ops::Gelu::kErf);
        break;
      default:
        h = ops::gelu(b_, ops::bias_add(b_, linear(x, width, "fc", 0), param("fc.bias", Shape{width})),
                      ops::Gelu::kTanh);
    }
    return linear(h, hidden_, "down", 30);
  }

  /// Shapes of computation that no fusion expects.
  ValueId odd(ValueId x) {
    auto scope = b_.scope("odd");
    switch (dice_.range(0, 5)) {
      case 0: {
        const int64_t cut = dice_.range(1, hidden_ - 1);
        const auto parts = ops::split(b_, x, {cut, hidden_ - cut});
        return ops::concat(b_, {ops::silu(b_, parts[1]), parts[0]});
      }
      case 1:
        return ops::mul(b_, x, ops::copy(b_, x));
      case 2:
        return ops::add(b_, x, ops::scale(b_, ops::silu(b_, x), grad_scale_));
      case 3: {
        const ValueId flat = ops::reshape(b_, x, {batch_ * tokens_, hidden_});
        return ops::reshape(b_, ops::gelu(b_, flat, ops::Gelu::kErf), {batch_, tokens_, hidden_});
      }
      case 4: {
        const ValueId weight = param("weight", Shape{hidden_, hidden_});  // used twice
        return ops::add(b_, x,
                        ops::linear(b_, ops::silu(b_, ops::linear(b_, x, weight, {})), weight, {}, true));
      }
      default: {
        const ValueId y = norm(x, "norm");
        return ops::add(b_, ops::add(b_, x, y), norm(ops::add(b_, x, y), "again"));
      }
    }
  }

  /// What models of one's own are written with.
  ValueId own(ValueId x) {
    auto scope = b_.scope("own");
    switch (own_dice_.range(0, 3)) {
      case 0:
        return ops::add(b_, x, products_attention(x));
      case 1:
        return norm_by_hand(x);
      case 2: {
        const ValueId highest = ops::reduce(b_, ops::Reduce::kMax, x, {1}, true);
        const ValueId turned = ops::flip(b_, ops::slice(b_, x, 2, 0, hidden_, 1), 1);
        return ops::pointwise(b_, "add(x0,mul(0.5,sub(x2,tanh(x1))))", {x, highest, turned});
      }
      default: {
        const ValueId some = ops::slice(b_, x, 2, hidden_ > 2 ? 1 : 0, 1, 2);
        const ValueId gate =
            ops::expand(b_, ops::pointwise(b_, "sigmoid(x0)", {some}), {batch_, tokens_, hidden_});
        const ValueId bent =
            ops::pointwise(b_, "where(gt(x0,0),x0,mul(x0,x1))", {x, param("bend", Shape{hidden_})});
        return ops::mul(b_, bent, gate);
      }
    }
  }

  /// What image models are made of, on an image of a token a row.
  ValueId image(ValueId x) {
    auto scope = b_.scope("image");
    ValueId y = ops::reshape(b_, x, {batch_, tokens_, 1, hidden_});
    switch (image_dice_.range(0, 2)) {
      case 0:
        for (int64_t i = image_dice_.range(1, 3); i > 0; --i) {
          auto block = b_.scope(std::to_string(i));
          y = batch_norm(convolution(batch_norm(convolution(y, "conv1"), {}, "norm1"), "conv2"), y, "norm2");
        }
        break;
      case 1: {
        const ValueId weight = param("weight", Shape{hidden_}), bias = param("bias", Shape{hidden_});
        const int64_t groups = image_dice_.chance(50) ? 1 : hidden_;
        const ValueId branch = ops::group_norm(b_, convolution(y, "conv"), weight, bias, groups, 1e-3).y;
        const ValueId kept =
            image_dice_.chance(50) ? ops::kept_samples(b_, random_, batch_, 0.25, 5) : ValueId{};
        y = ops::scaled_add(b_, y, branch, param("scale", Shape{hidden_}), kept);
        break;
      }
      default: {
        const ops::Pool2d pool{.kernel = {3, 1}, .stride = {1, 1}, .padding = {1, 0}};
        y = ops::add(b_, ops::max_pool2d(b_, y, pool), ops::avg_pool2d(b_, y, pool, image_dice_.chance(50)));
      }
    }
    return ops::reshape(b_, y, {batch_, tokens_, hidden_});
  }

  ValueId convolution(ValueId x, const std::string& name) {
    const bool is_wide = image_dice_.chance(50);
    const ops::Conv2d how{.padding = {is_wide ? 1 : 0, 0}};
    return ops::conv2d(b_, x, param(name, Shape{hidden_, is_wide ? 3 : 1, 1, hidden_}), {}, how);
  }

  /// With given statistics: those of the batch would depend on its split.
  ValueId batch_norm(ValueId x, ValueId residual, const std::string& name) {
    const Shape row{hidden_};
    const auto given = [&](const char* what, double low, double high) {
      return declare(b_.layer() + "." + name + what, DType::kF32, row, StateClass::kConstant,
                     numbers(hidden_, low, high));
    };
    const ValueId mean = given(".mean", -0.5, 0.5), variance = given(".variance", 0.5, 2);
    const ValueId weight = param(name + ".weight", row), bias = param(name + ".bias", row);
    return ops::batch_norm(b_, x, mean, variance, weight, bias, residual,
                           {.eps = 1e-3, .batch = false, .relu = image_dice_.chance(70)});
  }

  ValueId products_attention(ValueId x) {
    const int64_t q = heads_ * head_dim_;
    const auto parts = ops::split(b_, ops::linear(b_, x, param("qkv", Shape{3 * q, hidden_}), {}), {q, q, q});
    std::vector<ValueId> heads;
    for (const ValueId part : parts)
      heads.push_back(
          ops::permute(b_, ops::reshape(b_, part, {batch_, tokens_, heads_, head_dim_}), {0, 2, 1, 3}));
    const ValueId scores =
        ops::pointwise(b_, "mul(x0,0.3)", {ops::batched_matmul(b_, heads[0], heads[1], false, true)});
    const ValueId mixed = ops::batched_matmul(b_, ops::softmax(b_, scores), heads[2]);
    const ValueId joined = ops::reshape(b_, ops::permute(b_, mixed, {0, 2, 1, 3}), {batch_, tokens_, q});
    return ops::linear(b_, joined, param("out", Shape{hidden_, q}), {});
  }

  ValueId norm_by_hand(ValueId x) {
    const ValueId mean = ops::reduce(b_, ops::Reduce::kMean, x, {2}, true);
    const ValueId centred = ops::pointwise(b_, "sub(x0,x1)", {x, mean});
    const ValueId squares = ops::pointwise(b_, "mul(x0,x0)", {centred});
    const ValueId variance = ops::reduce(b_, ops::Reduce::kMean, squares, {2}, true);
    const ValueId scale = ops::pointwise(b_, "rsqrt(add(x0,1e-5))", {variance});
    const ValueId normed = ops::pointwise(b_, "mul(x0,x1)", {centred, scale});
    return ops::pointwise(b_, "add(mul(x0,x1),x2)",
                          {normed, param("gain", Shape{hidden_}), param("shift", Shape{hidden_})});
  }

  Dice dice_;        // the network
  Dice data_dice_;   // what its states hold
  Dice own_dice_;    // where it has layers of one's own
  Dice image_dice_;  // where it has layers of image models
  RandomProgram program_;
  Builder b_;
  int64_t heads_ = 1, kv_heads_ = 1, head_dim_ = 2, hidden_ = 2, batch_ = 1, tokens_ = 1, vocabulary_ = 2;
  ValueId ids_, targets_, grad_scale_, random_, inv_freq_, doc_start_;
};

inline RandomProgram random_program(uint64_t seed, int64_t batch = 0) {
  return RandomProgramMaker(seed, batch).make();
}

}  // namespace plimsoll::fixtures
