// Arguments of embedding.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Keys that a block sorts.
constexpr int kSortedWithin = 2048;

struct Embedding {
  Operand table;
  i64 stride = 0;
  const int* ids = nullptr;
  Operand out;
  i64 cols = 0;
};
/// A token's id in the upper, its index in the lower half; all ones for padding and behind the end.
struct TokenKeys {
  const int* ids = nullptr;
  i64 tokens = 0, count = 0, padding = 0;
  u64* keys = nullptr;
};
/// `count` is a power of two. Steps of `size`, by `step` and less; with all_sizes those of all sizes up to
/// `size`.
struct SortTokens {
  u64* keys = nullptr;
  i64 count = 0, size = 0, step = 0;
  int all_sizes = 0;
};
/// Tokens' rows of dy by sorted keys onto out, or `from_zero` summed from -0.0 first, which is then added.
/// Column c of the row of an id lies at id * id_stride + c * col_stride.
struct AddTokens {
  Operand dy;
  i64 stride = 0;
  const u64* keys = nullptr;
  i64 tokens = 0;
  Operand out;
  i64 cols = 0, id_stride = 0, col_stride = 1;
  int from_zero = 0;
};
struct FillShort {
  void* out = nullptr;
  i64 n = 0;
  u32 bits = 0;
};

inline constexpr DeviceKernel<Embedding> kEmbedding{"embedding/embedding", "embedding"};
inline constexpr DeviceKernel<TokenKeys> kTokenKeys{"embedding/embedding", "token_keys"};
inline constexpr DeviceKernel<SortTokens> kSortTokensWithin{"embedding/embedding", "sort_tokens_within"};
inline constexpr DeviceKernel<SortTokens> kSortTokensAcross{"embedding/embedding", "sort_tokens_across"};
inline constexpr DeviceKernel<AddTokens> kAddTokens{"embedding/embedding", "add_tokens"};
inline constexpr DeviceKernel<FillShort> kFillShort{"embedding/embedding", "fill_short"};

}  // namespace plimsoll::cuda
