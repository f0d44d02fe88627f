// Columns of a table by token and rows in place of a table's, with their gradients: few tokens or few rows,
// so plain loops, each tile the owner of what it adds to, in the order of the tokens.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

constexpr int64_t kTokensOfTile = 64;
constexpr int64_t kWidthOfTile = 256;

void embedding_columns(const KernelCall& call, ThreadPool& pool) {
  const float* table = call.inputs[0].as<const float>();
  const auto* ids = call.inputs[1].as<const int32_t>();
  float* y = call.outputs[0].as<float>();
  const int64_t rows = call.inputs[0].shape().dim(0), columns = call.inputs[0].shape().dim(1);
  for_blocks(pool, call.inputs[1].num_elements(), kTokensOfTile, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t k = 0; k < rows; ++k) y[t * rows + k] = table[k * columns + ids[t]];
  });
}

/// What a sum goes on from: the accumulator, or zeros that add nothing, not even a sign.
void begin_sum(const KernelCall& call, int64_t first, int64_t count) {
  float* total = call.outputs[0].as<float>() + first;
  const TensorRef acc = input_or_none(call, 2);
  if (!acc)
    std::fill_n(total, count, -0.0F);
  else if (acc.data != call.outputs[0].data)
    std::memcpy(total, acc.as<const float>() + first, static_cast<size_t>(count) * 4);
}

void embedding_columns_grad(const KernelCall& call, ThreadPool& pool) {
  const float* dy = call.inputs[0].as<const float>();
  const auto* ids = call.inputs[1].as<const int32_t>();
  float* total = call.outputs[0].as<float>();
  const int64_t rows = call.outputs[0].shape().dim(0), columns = call.outputs[0].shape().dim(1);
  const int64_t tokens = call.inputs[1].num_elements();
  const int64_t padding =
      call.op->attrs.find("padding") != nullptr ? call.op->attrs.i64("padding") : int64_t{-1};
  pool.run(rows, [&](int64_t k, int) {
    begin_sum(call, k * columns, columns);
    for (int64_t t = 0; t < tokens; ++t)
      if (ids[t] != padding) total[k * columns + ids[t]] += dy[t * rows + k];
  });
}

/// The row of a token, or -1.
int64_t row_of(const std::vector<int64_t>& tokens, int32_t id) {
  const auto found = std::lower_bound(tokens.begin(), tokens.end(), int64_t{id});
  return found == tokens.end() || *found != id ? -1 : found - tokens.begin();
}

void token_rows(const KernelCall& call, ThreadPool& pool) {
  const float *x = call.inputs[0].as<const float>(), *rows = call.inputs[1].as<const float>();
  const auto* ids = call.inputs[2].as<const int32_t>();
  float* y = call.outputs[0].as<float>();
  const int64_t width = call.inputs[1].shape().dim(1);
  const std::vector<int64_t>& tokens = call.op->attrs.ints("tokens");
  for_blocks(pool, call.inputs[2].num_elements(), kTokensOfTile, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = row_of(tokens, ids[t]);
      const float* from = row < 0 ? x + t * width : rows + row * width;
      if (from != y + t * width) std::memcpy(y + t * width, from, static_cast<size_t>(width) * 4);
    }
  });
}

void token_rows_grad(const KernelCall& call, ThreadPool& pool) {
  const float* dy = call.inputs[0].as<const float>();
  const auto* ids = call.inputs[1].as<const int32_t>();
  float* total = call.outputs[0].as<float>();
  const int64_t width = call.outputs[0].shape().dim(1), rows = call.outputs[0].shape().dim(0);
  const std::vector<int64_t>& tokens = call.op->attrs.ints("tokens");
  for_blocks(pool, width, kWidthOfTile, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < rows; ++row) begin_sum(call, row * width + begin, end - begin);
    for (int64_t t = 0; t < call.inputs[1].num_elements(); ++t)
      if (const int64_t row = row_of(tokens, ids[t]); row >= 0)
        for (int64_t i = begin; i < end; ++i) total[row * width + i] += dy[t * width + i];
  });
}

}  // namespace

std::span<const Kernel> embedding_adapters_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "embedding_columns", .run = embedding_columns},
      {.op = "embedding_columns_grad", .run = embedding_columns_grad},
      {.op = "token_rows", .run = token_rows},
      {.op = "token_rows_grad", .run = token_rows_grad},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
