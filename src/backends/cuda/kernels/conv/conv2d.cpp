// Convolutions: patches are gathered for some images at a time and multiplied by cuBLASLt; the gradients of
// patches are summed to where they came from. Convolutions in groups have kernels of their own.
#include "ops/conv2d.h"

#include "backends/cuda/kernels/conv/conv2d.h"
#include "backends/cuda/kernels/conv/conv2d_args.h"
#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/elementwise/elementwise_args.h"
#include "backends/cuda/kernels/gemm/linear_args.h"
#include "backends/cuda/kernels/gemm/matrices.h"

namespace plimsoll::cuda {
namespace {

using ops::ConvExtents;
using ops::ConvOp;

/// Patches that are in memory at once, where an image has no more.
constexpr int64_t kPatchBytes = int64_t{64} << 20;

ConvShape shape_of(const ConvExtents& e) {
  const auto& [stride, padding, dilation, groups] = e.how;
  return {.images = e.images,
          .height = e.height,
          .width = e.width,
          .channels = e.channels,
          .out_height = e.out_height,
          .out_width = e.out_width,
          .out_channels = e.out_channels,
          .kernel = {e.kernel_height, e.kernel_width},
          .stride = {stride[0], stride[1]},
          .padding = {padding[0], padding[1]},
          .dilation = {dilation[0], dilation[1]},
          .groups = groups};
}

/// Scratch: what cuBLASLt wants, the patches of some images, the operand that is no patches rounded, sums in
/// f32.
struct ConvScratch {
  int64_t images = 0;  ///< at a time
  bool sums_first = false;
  std::byte *product = nullptr, *patches = nullptr, *other = nullptr, *weight = nullptr;
  float* sums = nullptr;

  ConvScratch(Scratch& scratch, ConvOp op, const ConvExtents& e, const ir::TensorType& a,
              const ir::TensorType& b, ir::DType out, Precision precision) {
    if (e.how.groups > 1) return;
    const int64_t size = op == ConvOp::kInputGrad ? 4 : ir::bits(ops::stored_dtype(precision)) / 8;
    const int64_t image_bytes = e.out_pixels() * e.taps() * size;
    images = std::clamp<int64_t>(kPatchBytes / image_bytes, 1, e.images);
    sums_first = op == ConvOp::kWeightGrad ? out != ir::DType::kF32 : !is_direct(out, precision);
    const ir::TensorType& multiplied = op == ConvOp::kInputGrad ? a : b;
    product = scratch.take<std::byte>(kProductWorkspace);
    patches = scratch.take<std::byte>(images * image_bytes);
    other = scratch.take<std::byte>(rounded_bytes(multiplied.dtype, multiplied.num_elements(), precision));
    if (op == ConvOp::kInputGrad)
      weight = scratch.take<std::byte>(rounded_bytes(b.dtype, b.num_elements(), precision));
    else if (sums_first)
      sums = scratch.take<float>(op == ConvOp::kWeightGrad ? e.out_channels * e.taps()
                                                           : images * e.out_pixels() * e.out_channels);
  }
};

/// One call: its operands in the terms of the convolution.
class Convolution {
 public:
  Convolution(ConvOp op, const KernelCall& call, Stream& stream)
      : a_(call.inputs[0]),
        b_(call.inputs[1]),
        third_(input_or_none(call, 2)),
        out_(call.outputs[0]),
        e_(ops::conv_extents(op, a_.shape(), b_.shape(), out_.shape(), call.op->attrs)),
        precision_(precision_of(call.op->attrs, a_.type.dtype, b_.type.dtype)),
        stream_(stream),
        memory_(call),
        scratch_(memory_, op, e_, a_.type, b_.type, out_.type.dtype, precision_) {}

  Status result() {
    if (e_.how.groups > 1) return grouped(kGroupedConv, a_, b_, out_, false);
    PLIMSOLL_ASSIGN(const Matrix weight, rounded_for(weight_matrix(b_), precision_, scratch_.other, stream_));
    for (int64_t image = 0; image < e_.images; image += scratch_.images) {
      PLIMSOLL_ASSIGN(const Matrix patches, gathered(image));
      PLIMSOLL_TRY(multiply_rows(patches, weight, rows_of(out_, image, patches.rows)));
    }
    return Ok{};
  }

  Status input() {
    if (e_.how.groups > 1) return grouped(kGroupedConvInput, out_, b_, a_, false);
    PLIMSOLL_ASSIGN(const Matrix weight,
                    rounded_for(weight_matrix(b_), precision_, scratch_.weight, stream_));
    PLIMSOLL_ASSIGN(const Matrix dy, rounded_for(matrix_of(a_), precision_, scratch_.other, stream_));
    auto* sums = reinterpret_cast<float*>(scratch_.patches);
    for (int64_t image = 0; image < e_.images; image += scratch_.images) {
      const int64_t rows = rows_from(image), images = rows / e_.out_pixels();
      PLIMSOLL_TRY(multiply(dy.from(image * e_.out_pixels(), rows), false, weight, false,
                            f32_matrix(sums, rows, e_.taps()), false, precision_, scratch_.product, stream_));
      const int64_t pixels = e_.height * e_.width, n = images * pixels * e_.channels;
      const Matrix dx = matrix_of(out_).from(image * pixels, images * pixels);
      PLIMSOLL_TRY(stream_.launch(kSumPatches, blocks(n, kThreads), {kThreads}, 0,
                                  {.patches = sums, .dx = operand(dx), .shape = shape_of(e_), .n = n}));
    }
    return Ok{};
  }

  Status weight() {
    if (e_.how.groups > 1) return grouped(kGroupedConvWeight, a_, out_, b_, true);
    if (third_ && third_.data != out_.data)
      PLIMSOLL_TRY(stream_.copy(out_.data, third_.data, out_.type.bytes().count));
    PLIMSOLL_ASSIGN(const Matrix dy, rounded_for(matrix_of(b_), precision_, scratch_.other, stream_));
    const Matrix dw =
        scratch_.sums_first ? f32_matrix(scratch_.sums, e_.out_channels, e_.taps()) : weight_matrix(out_);
    for (int64_t image = 0; image < e_.images; image += scratch_.images) {
      PLIMSOLL_ASSIGN(const Matrix patches, gathered(image));
      PLIMSOLL_TRY(multiply(dy.from(image * e_.out_pixels(), patches.rows), true, patches, false, dw,
                            image > 0 || third_, precision_, scratch_.product, stream_));
    }
    if (!scratch_.sums_first) return Ok{};
    return cast_elements(operand(dw), operand(out_), out_.num_elements(), stream_);
  }

 private:
  [[nodiscard]] Matrix weight_matrix(const TensorRef& weight) const {
    return {weight.data, weight.type.dtype, e_.out_channels, e_.taps(), e_.taps()};
  }
  /// Pixels of y of the images that are taken together from there.
  [[nodiscard]] int64_t rows_from(int64_t image) const {
    return std::min(scratch_.images, e_.images - image) * e_.out_pixels();
  }
  [[nodiscard]] Matrix rows_of(const TensorRef& y, int64_t image, int64_t rows) const {
    return matrix_of(y).from(image * e_.out_pixels(), rows);
  }

  /// Patches of the images from there, as the products take them; x itself where it is them.
  Result<Matrix> gathered(int64_t image) {
    const int64_t rows = rows_from(image);
    if (e_.is_product()) return rounded_for(rows_of(a_, image, rows), precision_, scratch_.patches, stream_);
    const Matrix to{scratch_.patches, ops::stored_dtype(precision_), rows, e_.taps(), e_.taps()};
    const int64_t pixels = e_.height * e_.width;
    const int64_t n = rows * e_.taps();
    PLIMSOLL_TRY(stream_.launch(kGatherPatches, blocks(n, kEach * kThreads), {kThreads}, 0,
                                {.x = operand(matrix_of(a_).from(image * pixels, pixels)),
                                 .patches = operand(to),
                                 .shape = shape_of(e_),
                                 .n = n,
                                 .tf32 = precision_ == Precision::kTf32 ? 1 : 0}));
    return to;
  }

  /// The bias lies in the rows before the product is added to them, or is added to sums in f32.
  Status multiply_rows(const Matrix& patches, const Matrix& weight, const Matrix& out) {
    const Matrix d = scratch_.sums_first ? f32_matrix(scratch_.sums, out.rows, out.cols) : out;
    const int64_t n = out.rows * out.cols;
    const Dim grid = blocks(n, kEach * kThreads);
    const bool lies_before = third_ && !scratch_.sums_first && out.dtype == ir::DType::kF32;
    if (lies_before)
      PLIMSOLL_TRY(stream_.launch(kBroadcastRow, grid, {kThreads}, 0,
                                  {.row = operand(third_), .out = operand(out), .n = n, .cols = out.cols}));
    PLIMSOLL_TRY(
        multiply(patches, false, weight, true, d, lies_before, precision_, scratch_.product, stream_));
    if (third_ && !lies_before)
      return stream_.launch(
          kBiasAddRows, grid, {kThreads}, 0,
          {.x = operand(d), .bias = operand(third_), .out = operand(out), .n = n, .cols = out.cols});
    return scratch_.sums_first ? cast_elements(operand(d), operand(out), n, stream_) : Status(Ok{});
  }

  /// A thread for each result, or a block.
  Status grouped(const DeviceKernel<GroupedConv>& kernel, const TensorRef& x, const TensorRef& weight,
                 const TensorRef& y, bool block_each) {
    const int64_t n = out_.num_elements();
    const bool tf32 = precision_ == Precision::kTf32;
    const int64_t threads = block_each ? std::min<int64_t>(kThreads, round_up(e_.rows(), 32)) : kThreads;
    return stream_.launch(
        kernel, blocks(n, block_each ? 1 : kThreads), {static_cast<uint32_t>(threads)}, 0,
        {.x = operand(x),
         .weight = operand(weight),
         .y = operand(y),
         .bias = operand(third_),
         .shape = shape_of(e_),
         .n = n,
         .precision = tf32 ? int{kToTf32} : static_cast<int>(ops::stored_dtype(precision_))});
  }

  const TensorRef &a_, &b_;
  const TensorRef third_;
  const TensorRef& out_;
  const ConvExtents e_;
  const Precision precision_;
  Stream& stream_;
  Scratch memory_;
  const ConvScratch scratch_;
};

template <ConvOp kOp>
int64_t workspace_bytes(const ir::OpTypes& t) {
  const ConvExtents e = ops::conv_extents(kOp, t);
  Scratch scratch;
  ConvScratch(scratch, kOp, e, t.inputs[0], t.inputs[1], t.outputs[0].dtype,
              precision_of(t.attrs, t.inputs[0].dtype, t.inputs[1].dtype));
  return scratch.bytes();
}

Status conv2d_input_grad(const KernelCall& call, Stream& stream) {
  return Convolution(ConvOp::kInputGrad, call, stream).input();
}
Status conv2d_weight_grad(const KernelCall& call, Stream& stream) {
  return Convolution(ConvOp::kWeightGrad, call, stream).weight();
}

}  // namespace

int64_t conv2d_bytes(const ir::OpTypes& types) { return workspace_bytes<ConvOp::kForward>(types); }

Status conv2d(const KernelCall& call, Stream& stream) {
  return Convolution(ConvOp::kForward, call, stream).result();
}

std::span<const Kernel> conv2d_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "conv2d", .run = conv2d, .workspace_bytes = conv2d_bytes, .accepts = accepts_product},
      {.op = "conv2d_input_grad",
       .run = conv2d_input_grad,
       .workspace_bytes = workspace_bytes<ConvOp::kInputGrad>,
       .accepts = accepts_product},
      {.op = "conv2d_weight_grad",
       .run = conv2d_weight_grad,
       .workspace_bytes = workspace_bytes<ConvOp::kWeightGrad>,
       .accepts = accepts_product},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
