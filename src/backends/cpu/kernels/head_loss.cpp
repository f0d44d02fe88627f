// Head and loss in chunks of tokens. The logits of one chunk are all that is ever there; they turn into their
// own gradient in place, while a row lies in the second-level cache.
//
//   for each chunk:  logits = x W^T  ->  loss, (softmax - onehot) * scale in place  ->  dw += logits^T x,  dx
//   = logits W
//
// A chunk is a run of whole sequences or a part of one in whole granules, so every reduction over tokens adds
// the same granules in the same order as the unfused ops.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/cross_entropy.h"
#include "backends/cpu/kernels/linear.h"
#include "backends/cpu/kernels/operands.h"

namespace plimsoll::cpu {
namespace {

class Chunks {
 public:
  Chunks(const ir::Shape& x, int64_t chunk_tokens) : rows_(x.num_rows()), sequence_(Granules(x).segment()) {
    whole_ = sequence_ <= chunk_tokens;
    step_ = whole_ ? chunk_tokens / sequence_ * sequence_
                   : std::max(ops::kGranule, chunk_tokens / ops::kGranule * ops::kGranule);
  }
  [[nodiscard]] int64_t end(int64_t begin) const {
    const int64_t limit = whole_ ? rows_ : (begin / sequence_ + 1) * sequence_;
    return std::min(limit, begin + step_);
  }
  [[nodiscard]] int64_t max_rows() const { return end(0); }

 private:
  int64_t rows_, sequence_, step_;
  bool whole_;
};

// Scratch in this order: one chunk's logits, the rows' losses, what the GEMMs want.
struct Layout {
  int64_t logits, losses, gemm;
  Layout(const ir::Shape& x, int64_t classes, int64_t chunk_rows, int num_threads) {
    constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
    const int64_t width = x.dim(-1);
    logits = round_up(chunk_rows * classes * kFloat, runtime::kAlignment);
    losses = round_up(x.num_rows() * kFloat, runtime::kAlignment);
    gemm = std::max({gemm_workspace_bytes(chunk_rows, classes, width, num_threads),
                     gemm_workspace_bytes(chunk_rows, width, classes, num_threads),
                     gemm_workspace_bytes(classes, width, chunk_rows, num_threads),
                     gemm_workspace_bytes(width, classes, chunk_rows, num_threads)});
  }
  [[nodiscard]] int64_t total() const { return logits + losses + gemm; }
};

int64_t num_classes(const ir::Shape& weight, bool transposed) { return weight.dim(transposed ? 1 : 0); }

int64_t workspace_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::Shape& x = types.inputs[0].shape;
  const Chunks chunks(x, types.attrs.i64("chunk_tokens"));
  const int64_t classes = num_classes(types.inputs[1].shape, types.attrs.flag("transposed"));
  return Layout(x, classes, chunks.max_rows(), num_threads).total();
}

struct HeadLoss {
  RowsOf<const float> x;
  TensorRef weight;
  bool transposed, grad;
  LossRows loss;  // of all rows, but for logits and d
  int64_t classes;
  float* logits;
  float* dw;
  bool dw_started;
  RowsOf<float> dx;
  int64_t sequence;
  std::span<std::byte> gemm_workspace;
};

void chunk_loss(const HeadLoss& h, int64_t begin, int64_t rows, ThreadPool& pool) {
  gemm({.m = rows,
        .n = h.classes,
        .k = h.x.cols,
        .a = {h.x.row(begin), h.x.stride, 1},
        .b = weight_as_b(h.weight, h.transposed),
        .c = h.logits,
        .c_row_stride = h.classes},
       pool, h.gemm_workspace);
  LossRows loss = h.loss;
  loss.logits = h.logits;
  loss.targets += begin;
  loss.loss += begin;
  loss.d = h.grad ? h.logits : nullptr;
  for_row_blocks(pool, rows, h.classes, [&](int64_t first, int64_t last) { loss_rows(loss, first, last); });
}

// dw before dx, which may lie where x does.
void chunk_grads(HeadLoss& h, int64_t begin, int64_t rows, ThreadPool& pool) {
  weight_gradient({.x = {h.x.row(begin), rows, h.x.cols, h.x.stride},
                   .dy = {h.logits, rows, h.classes, h.classes},
                   .dw = h.dw,
                   .transposed = h.transposed,
                   .segment = h.sequence,
                   .accumulate = h.dw_started},
                  pool, h.gemm_workspace);
  h.dw_started = true;
  gemm({.m = rows,
        .n = h.x.cols,
        .k = h.classes,
        .a = {h.logits, h.classes, 1},
        .b = weight_as_b(h.weight, !h.transposed),
        .c = h.dx.row(begin),
        .c_row_stride = h.dx.stride},
       pool, h.gemm_workspace);
}

void bind_grads(HeadLoss& h, const KernelCall& call) {
  h.dx = matrix_of<float>(call.outputs[1]);
  h.dw = call.outputs[2].as<float>();
  const TensorRef acc = input_or_none(call, 5);
  h.dw_started = static_cast<bool>(acc);
  if (acc && acc.data != call.outputs[2].data)
    std::memcpy(h.dw, acc.data, static_cast<size_t>(acc.num_elements()) * sizeof(float));
}

void head_loss(const KernelCall& call, ThreadPool& pool) {
  const ir::Shape& shape = call.inputs[0].shape();
  const ir::Attrs& attrs = call.op->attrs;
  const Chunks chunks(shape, attrs.i64("chunk_tokens"));
  HeadLoss h{};
  h.x = matrix_of<const float>(call.inputs[0]);
  h.weight = call.inputs[1];
  h.transposed = attrs.flag("transposed");
  h.grad = attrs.flag("grad");
  h.classes = num_classes(h.weight.shape(), h.transposed);
  h.sequence = Granules(shape).segment();
  const Layout layout(shape, h.classes, chunks.max_rows(), pool.num_threads());
  PLIMSOLL_CHECK(static_cast<int64_t>(call.workspace.size()) >= layout.total());
  h.logits = reinterpret_cast<float*>(call.workspace.data());
  h.gemm_workspace = call.workspace.subspan(static_cast<size_t>(layout.logits + layout.losses));
  auto* losses = reinterpret_cast<float*>(call.workspace.data() + layout.logits);
  h.loss = {.stride = h.classes,
            .classes = h.classes,
            .targets = call.inputs[2].as<const int32_t>(),
            .loss = losses,
            .d_stride = h.classes,
            .scale = *call.inputs[3].as<const float>()};
  if (h.grad) bind_grads(h, call);
  for (int64_t begin = 0; begin < h.x.rows; begin = chunks.end(begin)) {
    const int64_t rows = chunks.end(begin) - begin;
    chunk_loss(h, begin, rows, pool);
    if (h.grad) chunk_grads(h, begin, rows, pool);
  }
  const TensorRef acc = input_or_none(call, 4);
  *call.outputs[0].as<float>() = sum_losses(losses, Granules(shape), acc.as<const float>());
}

}  // namespace

std::span<const Kernel> head_loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "head_loss", .run = head_loss, .workspace_bytes = workspace_bytes, .strided_inputs = 0b11},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
