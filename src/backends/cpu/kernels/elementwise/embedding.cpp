// Rows of a table by id, and the sums of rows' gradients. Backward sorts the tokens by id, in their order
// among equals; a tile then owns a block of the table's rows, or of the ids that occur.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/embedding.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vectors-inl.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_EMBEDDING_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_EMBEDDING_ARGS_
namespace plimsoll::cpu {
namespace {

// Rows of elements of whatever dtype, and the tokens of one of the table's rows.
struct TokenRows {
  RowsOfAny dy;
  ir::DType dtype;  // of dy
  const uint64_t* keys;
  int64_t count;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using stored::load;
using stored::store;
using stored::with_element;
using vectors::for_vectors;
using vectors::set;
using vectors::V;

// A sorted token: its id in the upper, its index in the lower half.
HWY_INLINE int64_t token_of(uint64_t key) { return static_cast<int64_t>(key & 0xFFFFFFFFU); }

template <class T>
const T* dy_row(const TokenRows& t, int64_t k) {
  return static_cast<const T*>(t.dy.row(token_of(t.keys[k])));
}

// f(dy's element, the table's element)
template <class F>
HWY_INLINE void with_elements(ir::DType dy, ir::DType table, F f) {
  with_element(dy, [&](auto a) HWY_ATTR { with_element(table, [&](auto b) HWY_ATTR { f(a, b); }); });
}

// out = ((from + dy of the first token) + dy of the second) + ...; `from` null stands for -0.0.
void sum_tokens(const TokenRows& t, ir::DType table, const void* from, void* out) {
  with_elements(t.dtype, table, [&](auto dy, auto element) HWY_ATTR {
    using Dy = decltype(dy);
    using T = decltype(element);
    for_vectors(t.dy.cols(), [&](int64_t i, auto part) HWY_ATTR {
      V sum = from == nullptr ? set(-0.0f) : load(static_cast<const T*>(from) + i, part);
      for (int64_t k = 0; k < t.count; ++k) sum = hn::Add(sum, load(dy_row<Dy>(t, k) + i, part));
      store(sum, static_cast<T*>(out) + i, part);
    });
  });
}

// out = total + (the tokens' sum, from -0.0).
void add_token_sum(const TokenRows& t, ir::DType table, const void* total, void* out) {
  with_elements(t.dtype, table, [&](auto dy, auto element) HWY_ATTR {
    using Dy = decltype(dy);
    using T = decltype(element);
    for_vectors(t.dy.cols(), [&](int64_t i, auto part) HWY_ATTR {
      V sum = set(-0.0f);
      for (int64_t k = 0; k < t.count; ++k) sum = hn::Add(sum, load(dy_row<Dy>(t, k) + i, part));
      store(hn::Add(load(static_cast<const T*>(total) + i, part), sum), static_cast<T*>(out) + i, part);
    });
  });
}

void copy_row(ir::DType from_dtype, const void* from, ir::DType to_dtype, void* to, int64_t n) {
  with_elements(from_dtype, to_dtype, [&](auto x, auto y) HWY_ATTR {
    for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
      store(load(static_cast<const decltype(x)*>(from) + i, part), static_cast<decltype(y)*>(to) + i, part);
    });
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(copy_row);
HWY_EXPORT(sum_tokens);
HWY_EXPORT(add_token_sum);

void embedding(const KernelCall& call, ThreadPool& pool) {
  const ir::DType from = call.inputs[0].type.dtype, to = call.outputs[0].type.dtype;
  const RowsOfAny table(call.inputs[0]), y(call.outputs[0]);
  const auto* ids = call.inputs[1].as<const int32_t>();
  const auto row_bytes = static_cast<size_t>(y.cols() * y.element_bytes());
  for_row_blocks(pool, y.rows(), y.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      if (from == to)
        std::memcpy(y.row(r), table.row(ids[r]), row_bytes);
      else
        HWY_DYNAMIC_DISPATCH(copy_row)(from, table.row(ids[r]), to, y.row(r), y.cols());
  });
}

int64_t keys_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return types.inputs[types.op == "embedding_grad" ? 1 : 2].num_elements() *
         static_cast<int64_t>(sizeof(uint64_t));
}

// Tokens of the padding id, which train nothing, are left out.
std::span<const uint64_t> sorted_keys(const KernelCall& call, size_t operand) {
  const TensorRef& ids = call.inputs[operand];
  auto* keys = reinterpret_cast<uint64_t*>(call.workspace.data());
  const auto* id = ids.as<const int32_t>();
  const bool padded = call.op->attrs.find("padding") != nullptr;
  const int64_t padding = padded ? call.op->attrs.i64("padding") : -1;
  size_t count = 0;
  for (size_t i = 0; i < static_cast<size_t>(ids.num_elements()); ++i)
    if (id[i] != padding) keys[count++] = uint64_t{static_cast<uint32_t>(id[i])} << 32 | i;
  std::sort(keys, keys + count);  // in place, and all keys differ
  return {keys, count};
}

int64_t id_of(uint64_t key) { return static_cast<int64_t>(key >> 32); }

// One past the tokens that share the id of keys[first].
size_t run_end(std::span<const uint64_t> keys, size_t first) {
  size_t end = first + 1;
  while (end < keys.size() && id_of(keys[end]) == id_of(keys[first])) ++end;
  return end;
}

void embedding_grad(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny dy(call.inputs[0]), out(call.outputs[0]);
  const ir::DType dtype = call.outputs[0].type.dtype;
  const TensorRef acc = input_or_none(call, 2);
  const auto keys = sorted_keys(call, 1);
  const bool kept = acc && acc.data == call.outputs[0].data;
  for_row_blocks(pool, out.rows(), out.cols(), [&](int64_t begin, int64_t end) {
    auto at = static_cast<size_t>(
        std::lower_bound(keys.begin(), keys.end(), static_cast<uint64_t>(begin) << 32) - keys.begin());
    for (int64_t row = begin; row < end; ++row) {
      const size_t last = at < keys.size() && id_of(keys[at]) == row ? run_end(keys, at) : at;
      if (last == at && kept) continue;
      const TokenRows tokens{dy, call.inputs[0].type.dtype, keys.data() + at,
                             static_cast<int64_t>(last - at)};
      HWY_DYNAMIC_DISPATCH(sum_tokens)
      (tokens, dtype, acc ? acc.data + row * out.cols() * out.element_bytes() : nullptr, out.row(row));
      at = last;
    }
  });
}

void embedding_grad_add(const KernelCall& call, ThreadPool& pool) {
  const TensorRef &total = call.inputs[0], &result = call.outputs[0];
  const RowsOfAny dy(call.inputs[1]), out(result);
  const auto keys = sorted_keys(call, 2);
  if (total.data != result.data)
    std::memcpy(result.data, total.data, static_cast<size_t>(result.type.bytes().count));
  for_row_blocks(pool, static_cast<int64_t>(keys.size()), out.cols(), [&](int64_t begin, int64_t end) {
    auto at = static_cast<size_t>(begin);
    // A run belongs to the tile in which it begins.
    while (at > 0 && at < static_cast<size_t>(end) && id_of(keys[at]) == id_of(keys[at - 1])) ++at;
    while (at < static_cast<size_t>(end)) {
      const size_t last = run_end(keys, at);
      void* row = out.row(id_of(keys[at]));
      const TokenRows tokens{dy, call.inputs[1].type.dtype, keys.data() + at,
                             static_cast<int64_t>(last - at)};
      HWY_DYNAMIC_DISPATCH(add_token_sum)(tokens, result.type.dtype, row, row);
      at = last;
    }
  });
}

}  // namespace

std::span<const Kernel> embedding_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "embedding", .run = embedding, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "embedding_grad",
       .run = embedding_grad,
       .workspace_bytes = keys_bytes,
       .strided_inputs = 0b1,
       .stored_dtypes = true},
      {.op = "embedding_grad_add",
       .run = embedding_grad_add,
       .workspace_bytes = keys_bytes,
       .strided_inputs = 0b10,
       .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
