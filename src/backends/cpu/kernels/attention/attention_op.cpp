// Attention's ops put into terms of attention.h: four operands of their own, or slices of one packed
// projection. What is bf16 throughout goes to attention_bf16.h where the instruction set allows; else the
// short types are widened.
#include "backends/cpu/kernels/attention/attention.h"
#include "backends/cpu/kernels/attention/attention_bf16.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/random_operand.h"
#include "backends/cpu/widened.h"
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
  return {.on = true,
          .threshold = static_cast<uint32_t>(std::min<uint64_t>(ops::dropout_threshold(p), UINT32_MAX)),
          .inverse_keep = static_cast<float>(1.0 / (1.0 - p)),
          .stream = stream_of(random, call.op->attrs)};
}

template <typename Element>
void set_options(AttentionArgsOf<Element>& a, const KernelCall& call, size_t doc_start) {
  a.scale = static_cast<float>(call.op->attrs.f64("scale"));
  a.causal = call.op->attrs.flag("causal");
  a.window = call.op->attrs.i64("window");
  a.doc_start = input_or_none(call, doc_start).as<const int32_t>();
  a.dropout = dropout_of(call, doc_start + 1);
}

template <typename Element>
AttentionArgsOf<Element> unpacked_args(const KernelCall& call, size_t doc_start) {
  AttentionArgsOf<Element> a;
  a.shape = unpacked_shape(call.inputs[0].shape(), call.inputs[1].shape());
  const auto q = matrix_of<const Element>(call.inputs[0], 2), k = matrix_of<const Element>(call.inputs[1], 2),
             v = matrix_of<const Element>(call.inputs[2], 2);
  a.q = q.data, a.k = k.data, a.v = v.data;
  a.q_token_stride = q.stride, a.k_token_stride = k.stride, a.v_token_stride = v.stride;
  set_options(a, call, doc_start);
  return a;
}

template <typename Element>
AttentionArgsOf<Element> packed_args(const KernelCall& call, size_t doc_start) {
  AttentionArgsOf<Element> a;
  const Packing p(call.op->attrs);
  const auto qkv = matrix_of<const Element>(call.inputs[0]);
  a.shape = p.shape(call.inputs[0].shape());
  a.q = qkv.data, a.k = qkv.data + p.k_offset(), a.v = qkv.data + p.v_offset();
  a.q_token_stride = a.k_token_stride = a.v_token_stride = qkv.stride;
  set_options(a, call, doc_start);
  return a;
}

void run(const AttentionArgs& a, ThreadPool& pool, std::span<std::byte> workspace) {
  attention_forward(a, pool, workspace);
}
void run(const AttentionArgsOf<Bf16>& a, ThreadPool& pool, std::span<std::byte> workspace) {
  attention_bf16_forward(a, pool, workspace);
}
void run(const AttentionBackwardArgs& a, ThreadPool& pool, std::span<std::byte> workspace) {
  attention_backward(a, pool, workspace);
}
void run(const AttentionBackwardArgsOf<Bf16>& a, ThreadPool& pool, std::span<std::byte> workspace) {
  attention_bf16_backward(a, pool, workspace);
}

template <bool kPacked, typename Element>
AttentionArgsOf<Element> args_of(const KernelCall& call, size_t doc_start) {
  if constexpr (kPacked)
    return packed_args<Element>(call, doc_start);
  else
    return unpacked_args<Element>(call, doc_start);
}

template <bool kPacked, typename Element>
void forward(const KernelCall& call, ThreadPool& pool) {
  auto a = args_of<kPacked, Element>(call, kPacked ? 1 : 3);
  a.out = call.outputs[0].as<Element>();
  a.out_token_stride = a.shape.num_heads * a.shape.head_dim;
  a.lse = call.outputs[1].as<float>();
  run(a, pool, call.workspace);
}

// The gradients of q, k and v, of their own or side by side.
template <bool kPacked, typename Element>
void set_gradients(AttentionBackwardArgsOf<Element>& b, const KernelCall& call) {
  if constexpr (kPacked) {
    const Packing p(call.op->attrs);
    const auto d = matrix_of<Element>(call.outputs[0]);
    b.dq = d.data, b.dk = d.data + p.k_offset(), b.dv = d.data + p.v_offset();
    b.dq_token_stride = b.dk_token_stride = b.dv_token_stride = d.stride;
  } else {
    const auto dq = matrix_of<Element>(call.outputs[0], 2), dk = matrix_of<Element>(call.outputs[1], 2),
               dv = matrix_of<Element>(call.outputs[2], 2);
    b.dq = dq.data, b.dk = dk.data, b.dv = dv.data;
    b.dq_token_stride = dq.stride, b.dk_token_stride = dk.stride, b.dv_token_stride = dv.stride;
  }
}

// What the forward pass gave follows q, k and v: out, lse, and then dout.
template <bool kPacked, typename Element>
void backward(const KernelCall& call, ThreadPool& pool) {
  constexpr size_t kOut = kPacked ? 1 : 3;
  AttentionBackwardArgsOf<Element> b;
  b.forward = args_of<kPacked, Element>(call, kOut + 3);
  const int row_axes = kPacked ? 1 : 2;
  const auto out = matrix_of<Element>(call.inputs[kOut], row_axes),
             dout = matrix_of<Element>(call.inputs[kOut + 2], row_axes);
  b.forward.out = out.data, b.forward.out_token_stride = out.stride;
  b.forward.lse = call.inputs[kOut + 1].as<float>();
  b.dout = dout.data, b.dout_token_stride = dout.stride;
  set_gradients<kPacked>(b, call);
  run(b, pool, call.workspace);
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

template <bool kPacked>
int64_t bf16_forward_bytes(const ir::OpTypes& types, int num_threads) {
  return attention_bf16_forward_workspace_bytes(shape_of<kPacked>(types), num_threads);
}
template <bool kPacked>
int64_t bf16_backward_bytes(const ir::OpTypes& types, int num_threads) {
  return attention_bf16_backward_workspace_bytes(shape_of<kPacked>(types), num_threads);
}

// In fp32, other operands being widened.
constexpr Kernel kWide[] = {
    {.op = "attention",
     .run = forward<false, float>,
     .workspace_bytes = forward_bytes<false>,
     .strided_inputs = 0b111},
    {.op = "attention_grad",
     .run = backward<false, float>,
     .workspace_bytes = backward_bytes<false>,
     .strided_inputs = 0b101111},
    {.op = "attention_packed",
     .run = forward<true, float>,
     .workspace_bytes = forward_bytes<true>,
     .strided_inputs = 0b1},
    {.op = "attention_packed_grad",
     .run = backward<true, float>,
     .workspace_bytes = backward_bytes<true>,
     .strided_inputs = 0b1011},
};

// Whether the operands and results of `kernel` that it multiplies are bf16, all of them.
template <class Operands>
bool is_bf16(const Kernel& kernel, const Operands& inputs, const Operands& outputs) {
  const auto bf16 = [](const auto& operand) { return type_of(operand).dtype == ir::DType::kBf16; };
  for (size_t i = 0; i < inputs.size(); ++i)
    if ((kernel.strided_inputs >> i & 1U) != 0 && !bf16(inputs[i])) return false;
  return bf16(outputs[0]);
}

template <size_t kIndex, auto kBf16Run>
void run_either(const KernelCall& call, ThreadPool& pool) {
  if (is_bf16(kWide[kIndex], call.inputs, call.outputs) && attention_has_bf16())
    kBf16Run(call, pool);
  else
    run_kernel(kWide[kIndex], call, pool);
}

template <size_t kIndex, auto kBf16Bytes>
int64_t bytes_of_either(const ir::OpTypes& types, int num_threads) {
  if (is_bf16(kWide[kIndex], types.inputs, types.outputs) && attention_has_bf16())
    return kBf16Bytes(types, num_threads);
  return kernel_workspace_bytes(kWide[kIndex], types, num_threads);
}

template <size_t kIndex, auto kBf16Run, auto kBf16Bytes>
constexpr Kernel either() {
  Kernel kernel = kWide[kIndex];
  kernel.run = run_either<kIndex, kBf16Run>;
  kernel.workspace_bytes = bytes_of_either<kIndex, kBf16Bytes>;
  kernel.stored_dtypes = true;
  return kernel;
}

}  // namespace

std::span<const Kernel> attention_kernels() {
  static constexpr Kernel kernels[] = {
      either<0, forward<false, Bf16>, bf16_forward_bytes<false>>(),
      either<1, backward<false, Bf16>, bf16_backward_bytes<false>>(),
      either<2, forward<true, Bf16>, bf16_forward_bytes<true>>(),
      either<3, backward<true, Bf16>, bf16_backward_bytes<true>>(),
  };
  return kernels;
}

}  // namespace plimsoll::cpu
