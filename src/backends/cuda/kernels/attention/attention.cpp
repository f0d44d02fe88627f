// Attention on separate q, k, v and on packed rows q | k | v: on matrix units (mma_attention.h) where
// operands are of one 16-bit dtype, or f32 with precision tf32, and the card has them, else on FMA units, in
// f32.
#include <span>

#include "backends/cuda/kernels/attention/attention_args.h"
#include "backends/cuda/kernels/attention/mma_attention.h"
#include "backends/cuda/kernels/operands.h"
#include "ops/philox.h"

namespace plimsoll::cuda {
namespace {

/// The kernels that take a head size: a block's tile of tokens, forward and backward, and the width that
/// heads are filled up to. Each stays within 99 KiB of shared memory, what a block has on cards of compute
/// capability 8.6 and 8.9; on Turing, whose blocks have 64 KiB, tiles are smaller (attention.cu has the
/// same).
struct Size {
  int64_t width, forward_tile, backward_tile;
  const DeviceKernel<Attention>&forward, &dq, &dkv;
  [[nodiscard]] uint32_t forward_bytes() const { return bytes(2, forward_tile, 1, 0); }
  [[nodiscard]] uint32_t dq_bytes() const { return bytes(4, backward_tile, 1, 0); }
  [[nodiscard]] uint32_t dkv_bytes() const { return bytes(4, backward_tile, 1, 2); }

 private:
  /// Of tiles of tokens, tiles of scores and rows of statistics.
  [[nodiscard]] uint32_t bytes(int64_t tokens, int64_t tile, int64_t scores, int64_t rows) const {
    return static_cast<uint32_t>(4 *
                                 (tokens * tile * (width + 4) + scores * tile * (tile + 1) + rows * tile));
  }
};
constexpr Size kSizes[] = {
    {64, 64, 64, kAttention64, kAttentionDq64, kAttentionDkv64},
    {128, 64, 32, kAttention128, kAttentionDq128, kAttentionDkv128},
    {256, 32, 16, kAttention256, kAttentionDq256, kAttentionDkv256},
};
constexpr Size kTuringSizes[] = {
    {64, 64, 32, kAttention64, kAttentionDq64, kAttentionDkv64},
    {128, 32, 16, kAttention128, kAttentionDq128, kAttentionDkv128},
};
const Size* size_of(int64_t head_dim, int capability) {
  const bool is_turing = capability > 0 && capability < 80;
  for (const Size& size : is_turing ? std::span<const Size>(kTuringSizes) : std::span<const Size>(kSizes))
    if (head_dim <= size.width) return &size;
  return nullptr;
}

/// Sequences are the third dimension of the grids.
constexpr int64_t kMostSequences = 65535;

Status accepts_attention(const ir::OpTypes& types, int capability) {
  const ir::Shape& q = types.inputs[0].shape;
  const int64_t head_dim = q.rank() == 3 ? types.attrs.i64("head_dim") : q.dim(3);
  PLIMSOLL_TRY(accepts_head(head_dim, size_of(256, capability) == nullptr ? 128 : 256, "attention"));
  if (q.dim(0) > kMostSequences)
    return Error{ErrorCode::kInvalidArgument,
                 "attention on a CUDA card takes at most 65,535 sequences at once", "runtime.device",
                 "set training.micro_batch_size=auto, or to less"};
  return Ok{};
}

Operand shifted(const TensorRef& ref, int64_t elements) {
  return operand_at(ref.data + elements * (ir::bits(ref.type.dtype) / 8), ref.type.dtype);
}

/// Elements from a token to the next; tokens are axis 1.
int64_t token_stride(const TensorRef& ref) {
  const ir::Shape& shape = ref.type.shape;
  if (shape.dim(1) != 1) return ref.strides[1];
  return shape.dim(0) != 1 ? ref.strides[0] : shape.num_elements();
}

/// `precision` of attention has no other value.
bool is_tf32(const ir::Attrs& attrs) { return attrs.find("precision") != nullptr; }

/// Mask and dropout; documents are operand `doc`, what is drawn from the one behind it.
void bind_masks(Attention& a, const KernelCall& call, size_t doc) {
  const ir::Attrs& attrs = call.op->attrs;
  a.scale = static_cast<float>(attrs.f64("scale"));
  a.causal = attrs.flag("causal") ? 1 : 0;
  a.tf32 = is_tf32(attrs) ? 1 : 0;
  a.window = attrs.i64("window") < a.tokens ? attrs.i64("window") : 0;  // a wider one hides nothing
  a.doc_start = data_or_null<const int32_t>(input_or_none(call, doc));
  a.random = data_or_null<const uint32_t>(input_or_none(call, doc + 1));
  if (a.random == nullptr) return;
  const double p = attrs.f64("p");
  a.threshold = ops::dropout_threshold(p);
  a.kept = static_cast<float>(1.0 / (1.0 - p));
  a.key = static_cast<uint32_t>(attrs.i64("key"));
}

Attention separate(const KernelCall& call, size_t doc) {
  const ir::Shape &q = call.inputs[0].shape(), &k = call.inputs[1].shape();
  Attention a;
  a.q = operand(call.inputs[0]);
  a.k = operand(call.inputs[1]);
  a.v = operand(call.inputs[2]);
  a.tokens = q.dim(1);
  a.heads = static_cast<int32_t>(q.dim(2));
  a.kv_heads = static_cast<int32_t>(k.dim(2));
  a.head_dim = static_cast<int32_t>(q.dim(3));
  a.q_stride = token_stride(call.inputs[0]);
  a.k_stride = token_stride(call.inputs[1]);
  a.v_stride = token_stride(call.inputs[2]);
  bind_masks(a, call, doc);
  return a;
}

Attention packed(const KernelCall& call, size_t doc) {
  const ir::Attrs& attrs = call.op->attrs;
  const TensorRef& qkv = call.inputs[0];
  Attention a;
  a.tokens = qkv.shape().dim(1);
  a.heads = static_cast<int32_t>(attrs.i64("heads"));
  a.kv_heads = static_cast<int32_t>(attrs.i64("kv_heads"));
  a.head_dim = static_cast<int32_t>(attrs.i64("head_dim"));
  a.q = operand(qkv);
  a.k = shifted(qkv, int64_t{a.heads} * a.head_dim);
  a.v = shifted(qkv, int64_t{a.heads + a.kv_heads} * a.head_dim);
  a.q_stride = a.k_stride = a.v_stride = token_stride(qkv);
  bind_masks(a, call, doc);
  return a;
}

Status queue_forward(const KernelCall& call, Attention& a, Stream& stream) {
  const int64_t batch = call.inputs[0].shape().dim(0);
  a.out = operand(call.outputs[0]);
  a.out_stride = token_stride(call.outputs[0]);
  a.lse = call.outputs[1].as<float>();
  if (runs_on_matrix_units(a, stream.capability())) return queue_mma_forward(a, batch, stream);
  const Size* size = size_of(a.head_dim, stream.capability());
  if (size == nullptr) return cannot(call, "heads of more elements than a block holds");
  if (batch > kMostSequences) return cannot(call, "more than 65535 sequences");
  const Dim grid{static_cast<uint32_t>(ceil_div(a.tokens, size->forward_tile)),
                 static_cast<uint32_t>(a.heads), static_cast<uint32_t>(batch)};
  return stream.launch(size->forward, grid, {256}, size->forward_bytes(), a);
}

/// What backward takes of the workspace.
struct BackwardScratch {
  float *delta = nullptr, *partial = nullptr;
};
BackwardScratch take(Scratch& scratch, int64_t batch, int64_t tokens, int64_t heads, int64_t kv_heads,
                     int64_t head_dim, int parts) {
  BackwardScratch taken;
  taken.delta = scratch.take<float>(batch * tokens * heads);
  if (parts > 1) taken.partial = scratch.take<float>(2 * parts * batch * tokens * kv_heads * head_dim);
  return taken;
}

/// `saved`: the operand out; lse and dout follow it.
Status queue_backward(const KernelCall& call, Attention& a, size_t saved, Stream& stream) {
  const int64_t batch = call.inputs[0].shape().dim(0), heads = batch * a.tokens * a.heads;
  a.out = operand(call.inputs[saved]);
  a.out_stride = token_stride(call.inputs[saved]);
  a.lse = call.inputs[saved + 1].as<float>();
  a.dout = operand(call.inputs[saved + 2]);
  a.dout_stride = token_stride(call.inputs[saved + 2]);
  const bool on_matrix_units = runs_on_matrix_units(a, stream.capability());
  a.parts = on_matrix_units ? num_parts(batch, a.tokens, a.heads, a.kv_heads) : 1;
  Scratch scratch(call);
  const BackwardScratch taken = take(scratch, batch, a.tokens, a.heads, a.kv_heads, a.head_dim, a.parts);
  a.delta = taken.delta;
  a.partial = taken.partial;
  if (on_matrix_units) return queue_mma_backward(a, batch, stream);
  const Size* size = size_of(a.head_dim, stream.capability());
  if (size == nullptr) return cannot(call, "heads of more elements than a block holds");
  if (batch > kMostSequences) return cannot(call, "more than 65535 sequences");
  PLIMSOLL_TRY(stream.launch(kAttentionDelta, blocks(heads, 8), {256}, 0, {.attention = a, .count = heads}));
  const auto tiles = static_cast<uint32_t>(ceil_div(a.tokens, size->backward_tile));
  PLIMSOLL_TRY(stream.launch(size->dq, {tiles, static_cast<uint32_t>(a.heads), static_cast<uint32_t>(batch)},
                             {256}, size->dq_bytes(), a));
  return stream.launch(size->dkv, {tiles, static_cast<uint32_t>(a.kv_heads), static_cast<uint32_t>(batch)},
                       {256}, size->dkv_bytes(), a);
}

/// Parts are counted wherever operands are of 16 bits or multiplied in TF32, whichever card it will be.
int64_t backward_bytes(const ir::OpTypes& types) {
  const ir::TensorType& q = types.inputs[0];
  const bool is_packed = q.shape.rank() == 3;
  const int64_t batch = q.shape.dim(0), tokens = q.shape.dim(1),
                heads = is_packed ? types.attrs.i64("heads") : q.shape.dim(2),
                kv_heads = is_packed ? types.attrs.i64("kv_heads") : types.inputs[1].shape.dim(2),
                head_dim = is_packed ? types.attrs.i64("head_dim") : q.shape.dim(3);
  Scratch scratch;
  const bool in_parts = ir::is_half_precision(q.dtype) || is_tf32(types.attrs);
  take(scratch, batch, tokens, heads, kv_heads, head_dim,
       in_parts ? num_parts(batch, tokens, heads, kv_heads) : 1);
  return scratch.bytes();
}

Status attention(const KernelCall& call, Stream& stream) {
  Attention a = separate(call, 3);
  return queue_forward(call, a, stream);
}

Status attention_grad(const KernelCall& call, Stream& stream) {
  Attention a = separate(call, 6);
  a.dq = operand(call.outputs[0]);
  a.dk = operand(call.outputs[1]);
  a.dv = operand(call.outputs[2]);
  a.dq_stride = token_stride(call.outputs[0]);
  a.dkv_stride = token_stride(call.outputs[1]);
  return queue_backward(call, a, 3, stream);
}

Status attention_packed(const KernelCall& call, Stream& stream) {
  Attention a = packed(call, 1);
  return queue_forward(call, a, stream);
}

Status attention_packed_grad(const KernelCall& call, Stream& stream) {
  Attention a = packed(call, 4);
  const TensorRef& dqkv = call.outputs[0];
  a.dq = operand(dqkv);
  a.dq_stride = a.dkv_stride = token_stride(dqkv);
  a.dk = shifted(dqkv, int64_t{a.heads} * a.head_dim);
  a.dv = shifted(dqkv, int64_t{a.heads + a.kv_heads} * a.head_dim);
  return queue_backward(call, a, 1, stream);
}

}  // namespace

std::span<const Kernel> attention_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "attention", .run = attention, .strided_inputs = 0b111, .accepts = accepts_attention},
      {.op = "attention_grad",
       .run = attention_grad,
       .workspace_bytes = backward_bytes,
       .strided_inputs = 0b101111,
       .accepts = accepts_attention},
      {.op = "attention_packed",
       .run = attention_packed,
       .strided_inputs = 0b1,
       .accepts = accepts_attention},
      {.op = "attention_packed_grad",
       .run = attention_packed_grad,
       .workspace_bytes = backward_bytes,
       .strided_inputs = 0b1011,
       .accepts = accepts_attention},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
