#include "backends/cuda/kernels/embedding/token_sums.h"

#include <bit>

#include "backends/cuda/kernels/embedding/embedding_args.h"

namespace plimsoll::cuda {
namespace {

constexpr uint32_t kTokenColumns = 128;  // of a block

int64_t num_keys(int64_t tokens) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(tokens, 2))));
}

/// Tokens of the padding id, which train nothing, come last.
Status sort_tokens(const KernelCall& call, const TensorRef& ids, uint64_t* keys, Stream& stream) {
  const int64_t tokens = ids.num_elements(), count = num_keys(tokens), no_id = -1;
  const int64_t padding = call.op->attrs.find("padding") != nullptr ? call.op->attrs.i64("padding") : no_id;
  PLIMSOLL_TRY(stream.launch(
      kTokenKeys, blocks(count, 256), {256}, 0,
      {.ids = ids.as<const int32_t>(), .tokens = tokens, .count = count, .padding = padding, .keys = keys}));
  SortTokens sort{
      .keys = keys, .count = count, .size = std::min<int64_t>(count, kSortedWithin), .all_sizes = 1};
  PLIMSOLL_TRY(stream.launch(kSortTokensWithin, blocks(count, kSortedWithin), {1024}, 0, sort));
  sort.all_sizes = 0;
  for (sort.size *= 2; sort.size <= count; sort.size *= 2) {
    for (sort.step = sort.size / 2; sort.step >= kSortedWithin; sort.step /= 2)
      PLIMSOLL_TRY(stream.launch(kSortTokensAcross, blocks(count / 2, 256), {256}, 0, sort));
    PLIMSOLL_TRY(stream.launch(kSortTokensWithin, blocks(count, kSortedWithin), {1024}, 0, sort));
  }
  return Ok{};
}

}  // namespace

int64_t token_sums_bytes(int64_t tokens) {
  Scratch scratch;
  scratch.take<uint64_t>(num_keys(tokens));
  return scratch.bytes();
}

Status begin_token_sums(const TensorRef& acc, const TensorRef& out, Stream& stream) {
  const int64_t bytes = out.type.bytes().count;
  if (acc) return acc.data == out.data ? Status(Ok{}) : stream.copy(out.data, acc.data, bytes);
  if (bytes % 4 == 0)
    return stream.fill(out.data, bytes, ir::is_half_precision(out.type.dtype) ? 0x80008000U : 0x80000000U);
  return stream.launch(kFillShort, blocks(out.num_elements(), 256), {256}, 0,
                       {.out = out.data, .n = out.num_elements(), .bits = 0x8000});
}

Status add_tokens(const KernelCall& call, const TensorRef& dy, const TensorRef& ids, const TensorRef& out,
                  const TokenTable& table, bool from_zero, Stream& stream) {
  auto* keys = Scratch(call).take<uint64_t>(num_keys(ids.num_elements()));
  PLIMSOLL_TRY(sort_tokens(call, ids, keys, stream));
  const Dim grid{static_cast<uint32_t>(ids.num_elements()),
                 static_cast<uint32_t>(ceil_div(table.cols, int64_t{kTokenColumns}))};
  return stream.launch(kAddTokens, grid, {kTokenColumns}, 0,
                       {.dy = operand(dy),
                        .stride = row_stride(dy),
                        .keys = keys,
                        .tokens = ids.num_elements(),
                        .out = operand(out),
                        .cols = table.cols,
                        .id_stride = table.id_stride,
                        .col_stride = table.col_stride,
                        .from_zero = from_zero ? 1 : 0});
}

}  // namespace plimsoll::cuda
