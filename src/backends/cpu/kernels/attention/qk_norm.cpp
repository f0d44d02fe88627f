// Norms of the heads of q and k, and their turn, on packed rows. Backward, each of the two norms goes granule
// by granule over its own heads' rows, as if it were an op of its own: turned back, differentiated, and the
// weight's share of each granule added in order.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attention/qk_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cstring>

#include "backends/cpu/kernels/attention/rope_rows-inl.h"
#include "backends/cpu/kernels/elementwise/reduce.h"
#include "backends/cpu/kernels/norm/norm_rows-inl.h"
#include "backends/cpu/kernels/operands.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_QK_NORM_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_QK_NORM_ARGS_
namespace plimsoll::cpu {
namespace {

// The heads of q or of k in the packed rows: row i is head i % group of token i / group.
struct HeadNorm {
  RowsOf<const float> x, dy;  // dy in the backward pass
  RowsOf<float> y;            // or dx
  RowsOf<const float> table;  // by token, repeating
  const float* weight;
  float* rstd;
  float eps;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

void norm_and_turn(const HeadNorm& a, int64_t begin, int64_t end) {
  const int64_t n = a.x.cols;
  for (int64_t r = begin; r < end; ++r) {
    float* y = a.y.row(r);
    a.rstd[r] =
        norms::rms_norm_row(norms::PlainRow<const float*>{a.x.row(r)}, a.x.row(r), a.weight, y, n, a.eps);
    ropes::rotate<false>(y, a.table.row(r / a.x.group % a.table.rows), y, 1, n / 2);
  }
}

// dw [cols] is the granule's own.
void turn_back_and_differentiate(const HeadNorm& a, int64_t begin, int64_t end, float* dw) {
  const int64_t n = a.x.cols;
  std::memset(dw, 0, static_cast<size_t>(n) * sizeof(float));
  for (int64_t r = begin; r < end; ++r) {
    float* dx = a.y.row(r);
    ropes::rotate<true>(a.dy.row(r), a.table.row(r / a.x.group % a.table.rows), dx, 1, n / 2);
    norms::rms_norm_grad_row(dx, a.x.row(r), a.weight, a.rstd[r], norms::StoreDx<float*>{dx}, dw, n);
  }
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(norm_and_turn);
HWY_EXPORT(turn_back_and_differentiate);

struct Packing {
  int64_t heads, kv_heads, head_dim;
  explicit Packing(const ir::Attrs& attrs)
      : heads(attrs.i64("heads")), kv_heads(attrs.i64("kv_heads")), head_dim(attrs.i64("head_dim")) {}
  [[nodiscard]] int64_t count(bool keys) const { return keys ? kv_heads : heads; }
  [[nodiscard]] int64_t v_offset() const { return (heads + kv_heads) * head_dim; }

  /// Rows of the heads of q or k within packed `rows`.
  template <typename T>
  [[nodiscard]] RowsOf<T> heads_of(const RowsOf<T>& rows, bool keys) const {
    return {.data = rows.data + (keys ? heads * head_dim : 0),
            .rows = rows.rows * count(keys),
            .cols = head_dim,
            .stride = head_dim,
            .group = count(keys),
            .group_stride = rows.stride};
  }
  /// The granules of a norm on [B, T, heads, head_dim].
  [[nodiscard]] Granules granules(const ir::Shape& qkv, bool keys) const {
    return Granules(ir::Shape{qkv.dim(0), qkv.dim(1), count(keys), head_dim});
  }
};

// v as it is, where it does not lie there already.
void copy_values(const RowsOf<const float>& from, const RowsOf<float>& to, const Packing& p,
                 ThreadPool& pool) {
  if (from.data == to.data) return;
  const auto bytes = static_cast<size_t>(p.kv_heads * p.head_dim) * sizeof(float);
  for_row_blocks(pool, from.rows, p.kv_heads * p.head_dim, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      std::memcpy(to.row(r) + p.v_offset(), from.row(r) + p.v_offset(), bytes);
  });
}

void qk_norm_rope(const KernelCall& call, ThreadPool& pool) {
  const Packing p(call.op->attrs);
  const auto x = matrix_of<const float>(call.inputs[0]);
  const auto y = matrix_of<float>(call.outputs[0]);
  const auto norm = [&](bool keys) {
    return HeadNorm{.x = p.heads_of(x, keys),
                    .dy = {},
                    .y = p.heads_of(y, keys),
                    .table = rows_of<const float>(call.inputs[3]),
                    .weight = call.inputs[keys ? 2 : 1].as<const float>(),
                    .rstd = call.outputs[keys ? 2 : 1].as<float>(),
                    .eps = static_cast<float>(call.op->attrs.f64("eps"))};
  };
  const HeadNorm q = norm(false), k = norm(true);
  const size_t value_bytes = static_cast<size_t>(p.kv_heads * p.head_dim) * sizeof(float);
  for_row_blocks(pool, x.rows, x.cols, [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(norm_and_turn)(q, begin * p.heads, end * p.heads);
    HWY_DYNAMIC_DISPATCH(norm_and_turn)(k, begin * p.kv_heads, end * p.kv_heads);
    for (int64_t r = begin; r < end && x.data != y.data; ++r)
      std::memcpy(y.row(r) + p.v_offset(), x.row(r) + p.v_offset(), value_bytes);
  });
}

int64_t grad_workspace_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const Packing p(types.attrs);
  const ir::Shape& qkv = types.inputs[1].shape;
  return (p.granules(qkv, false).count() + p.granules(qkv, true).count()) * p.head_dim *
         static_cast<int64_t>(sizeof(float));
}

void qk_norm_rope_grad(const KernelCall& call, ThreadPool& pool) {
  const Packing p(call.op->attrs);
  const auto dy = matrix_of<const float>(call.inputs[0]), x = matrix_of<const float>(call.inputs[1]);
  const auto dx = matrix_of<float>(call.outputs[0]);
  const auto norm = [&](bool keys) {
    return HeadNorm{.x = p.heads_of(x, keys),
                    .dy = p.heads_of(dy, keys),
                    .y = p.heads_of(dx, keys),
                    .table = rows_of<const float>(call.inputs[4]),
                    .weight = call.inputs[keys ? 3 : 2].as<const float>(),
                    .rstd = call.inputs[keys ? 6 : 5].as<float>(),
                    .eps = 0};
  };
  const HeadNorm norms[] = {norm(false), norm(true)};
  const Granules granules[] = {p.granules(call.inputs[1].shape(), false),
                               p.granules(call.inputs[1].shape(), true)};
  auto* dw = reinterpret_cast<float*>(call.workspace.data());
  const int64_t first_of_keys = granules[0].count();
  const auto tile = [&](int64_t t, int) {
    const bool keys = t >= first_of_keys;
    const int64_t g = keys ? t - first_of_keys : t;
    const Granules& of = granules[keys ? 1 : 0];
    HWY_DYNAMIC_DISPATCH(turn_back_and_differentiate)
    (norms[keys ? 1 : 0], of.begin(g), of.end(g), dw + t * p.head_dim);
  };
  const int64_t tiles = first_of_keys + granules[1].count();
  if (x.rows * x.cols > kBlockElements)
    pool.run(tiles, tile);
  else
    for (int64_t t = 0; t < tiles; ++t) tile(t, 0);  // too little to wake anyone
  copy_values(dy, dx, p, pool);
  add_granules(dw, first_of_keys, p.head_dim, input_or_none(call, 7).as<const float>(),
               call.outputs[1].as<float>(), pool);
  add_granules(dw + first_of_keys * p.head_dim, granules[1].count(), p.head_dim,
               input_or_none(call, 8).as<const float>(), call.outputs[2].as<float>(), pool);
}

}  // namespace

std::span<const Kernel> qk_norm_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "qk_norm_rope", .run = qk_norm_rope, .strided_inputs = 0b1},
      {.op = "qk_norm_rope_grad",
       .run = qk_norm_rope_grad,
       .workspace_bytes = grad_workspace_bytes,
       .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
