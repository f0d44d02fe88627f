// Attention's ops put into terms of attention.h: four operands of their own, or slices of one packed
// projection.
#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/operands.h"
#include "ops/philox.h"

namespace plimsoll::cpu {
namespace {

// [q heads | k heads | v heads] of one token lie side by side.
struct Packing {
  int64_t heads, kv_heads, head_dim;
  explicit Packing(const ir::Attrs& attrs)
      : heads(attrs.i64("heads")), kv_heads(attrs.i64("kv_heads")), head_dim(attrs.i64("head_dim")) {}
  [[nodiscard]] int64_t k_offset() const { return heads * head_dim; }
  [[nodiscard]] int64_t v_offset() const { return (heads + kv_heads) * head_dim; }
  [[nodiscard]] AttentionShape shape(const ir::Shape& qkv) const {
    return {qkv.dim(0), qkv.dim(1), heads, kv_heads, head_dim};
  }
};

AttentionShape unpacked_shape(const ir::Shape& q, const ir::Shape& k) {
  return {q.dim(0), q.dim(1), q.dim(2), k.dim(2), q.dim(3)};
}

AttentionDropout dropout_of(const KernelCall& call, size_t operand) {
  const TensorRef random = input_or_none(call, operand);
  if (!random) return {};
  const double p = call.op->attrs.f64("p");
  const auto* words = random.as<const int32_t>();
  const auto word = [&](int i) { return static_cast<uint32_t>(words[i]); };
  return {.on = true,
          .threshold = static_cast<uint32_t>(std::min<uint64_t>(ops::dropout_threshold(p), UINT32_MAX)),
          .inverse_keep = static_cast<float>(1.0 / (1.0 - p)),
          .stream = {word(0), word(1), word(2), word(3), static_cast<uint32_t>(call.op->attrs.i64("key"))}};
}

void set_options(AttentionArgs& a, const KernelCall& call, size_t doc_start) {
  a.scale = static_cast<float>(call.op->attrs.f64("scale"));
  a.causal = call.op->attrs.flag("causal");
  a.window = call.op->attrs.i64("window");
  a.doc_start = input_or_none(call, doc_start).as<const int32_t>();
  a.dropout = dropout_of(call, doc_start + 1);
}

AttentionArgs unpacked_args(const KernelCall& call, size_t doc_start) {
  AttentionArgs a;
  a.shape = unpacked_shape(call.inputs[0].shape(), call.inputs[1].shape());
  const auto q = matrix_of<const float>(call.inputs[0], 2), k = matrix_of<const float>(call.inputs[1], 2),
             v = matrix_of<const float>(call.inputs[2], 2);
  a.q = q.data, a.k = k.data, a.v = v.data;
  a.q_token_stride = q.stride, a.k_token_stride = k.stride, a.v_token_stride = v.stride;
  set_options(a, call, doc_start);
  return a;
}

AttentionArgs packed_args(const KernelCall& call, size_t doc_start) {
  AttentionArgs a;
  const Packing p(call.op->attrs);
  const auto qkv = matrix_of<const float>(call.inputs[0]);
  a.shape = p.shape(call.inputs[0].shape());
  a.q = qkv.data, a.k = qkv.data + p.k_offset(), a.v = qkv.data + p.v_offset();
  a.q_token_stride = a.k_token_stride = a.v_token_stride = qkv.stride;
  set_options(a, call, doc_start);
  return a;
}

void forward(AttentionArgs a, const KernelCall& call, ThreadPool& pool) {
  a.out = call.outputs[0].as<float>();
  a.out_token_stride = a.shape.num_heads * a.shape.head_dim;
  a.lse = call.outputs[1].as<float>();
  attention_forward(a, pool, call.workspace);
}

// `out` is the input that the forward pass gave; lse and dout follow it.
AttentionBackwardArgs backward_args(AttentionArgs a, const KernelCall& call, size_t out) {
  const int row_axes = call.inputs[out].shape().rank() - 2;
  const auto o = matrix_of<float>(call.inputs[out], row_axes),
             d = matrix_of<float>(call.inputs[out + 2], row_axes);
  a.out = o.data;
  a.out_token_stride = o.stride;
  a.lse = call.inputs[out + 1].as<float>();
  AttentionBackwardArgs b;
  b.forward = a;
  b.dout = d.data;
  b.dout_token_stride = d.stride;
  return b;
}

void attention(const KernelCall& call, ThreadPool& pool) { forward(unpacked_args(call, 3), call, pool); }
void attention_packed(const KernelCall& call, ThreadPool& pool) { forward(packed_args(call, 1), call, pool); }

void attention_grad(const KernelCall& call, ThreadPool& pool) {
  AttentionBackwardArgs b = backward_args(unpacked_args(call, 6), call, 3);
  const auto dq = matrix_of<float>(call.outputs[0], 2), dk = matrix_of<float>(call.outputs[1], 2),
             dv = matrix_of<float>(call.outputs[2], 2);
  b.dq = dq.data, b.dk = dk.data, b.dv = dv.data;
  b.dq_token_stride = dq.stride, b.dk_token_stride = dk.stride, b.dv_token_stride = dv.stride;
  attention_backward(b, pool, call.workspace);
}

void attention_packed_grad(const KernelCall& call, ThreadPool& pool) {
  AttentionBackwardArgs b = backward_args(packed_args(call, 4), call, 1);
  const Packing p(call.op->attrs);
  const auto d = matrix_of<float>(call.outputs[0]);
  b.dq = d.data, b.dk = d.data + p.k_offset(), b.dv = d.data + p.v_offset();
  b.dq_token_stride = b.dk_token_stride = b.dv_token_stride = d.stride;
  attention_backward(b, pool, call.workspace);
}

template <bool kPacked>
AttentionShape shape_of(const ir::OpTypes& types) {
  if constexpr (kPacked)
    return Packing(types.attrs).shape(types.inputs[0].shape);
  else
    return unpacked_shape(types.inputs[0].shape, types.inputs[1].shape);
}
template <bool kPacked>
int64_t forward_bytes(const ir::OpTypes& types, int num_threads) {
  return attention_forward_workspace_bytes(shape_of<kPacked>(types), num_threads);
}
template <bool kPacked>
int64_t backward_bytes(const ir::OpTypes& types, int num_threads) {
  return attention_backward_workspace_bytes(shape_of<kPacked>(types), num_threads);
}

}  // namespace

std::span<const Kernel> attention_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention", .run = attention, .workspace_bytes = forward_bytes<false>, .strided_inputs = 0b111},
      {.op = "attention_grad",
       .run = attention_grad,
       .workspace_bytes = backward_bytes<false>,
       .strided_inputs = 0b101111},
      {.op = "attention_packed",
       .run = attention_packed,
       .workspace_bytes = forward_bytes<true>,
       .strided_inputs = 0b1},
      {.op = "attention_packed_grad",
       .run = attention_packed_grad,
       .workspace_bytes = backward_bytes<true>,
       .strided_inputs = 0b1011},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
