// Arguments of adapters.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

constexpr int kAdapterThreads = 256;

/// out [tokens, rows] = columns of table [rows, columns] by id.
struct EmbeddingColumns {
  Operand table;
  const int* ids = nullptr;
  Operand out;
  i64 tokens = 0, rows = 0, columns = 0;
};
/// Of a launch; more tokens than these are taken in turn.
constexpr int kRowTokens = 512;

/// x [tokens, width] is copied, then takes rows [first, first + count) of `rows` at the tokens that these
/// stand for.
struct TokenRows {
  Operand rows, out;
  const int* ids = nullptr;
  i64 tokens = 0, width = 0, first = 0;
  int count = 0;
  int token[kRowTokens];  ///< ascending
};
/// out's rows [first, first + count): acc, where that is given, or -0.0, and dy at the rows' tokens in order.
struct TokenRowsGrad {
  Operand dy, acc, out;
  const int* ids = nullptr;
  i64 tokens = 0, width = 0, first = 0;
  int count = 0;
  int token[kRowTokens];
};
static_assert(sizeof(TokenRowsGrad) <= kMostArgumentBytes);

inline constexpr DeviceKernel<EmbeddingColumns> kEmbeddingColumns{"embedding/adapters", "embedding_columns"};
inline constexpr DeviceKernel<TokenRows> kTokenRows{"embedding/adapters", "token_rows"};
inline constexpr DeviceKernel<TokenRowsGrad> kTokenRowsGrad{"embedding/adapters", "token_rows_grad"};

}  // namespace plimsoll::cuda
