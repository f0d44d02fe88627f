// Muon as products: a step of Newton and Schulz is three of them in f32, with X the shorter axis first. A
// tall matrix stays as it lies and is multiplied from the right:
//
//   A = X·Xᵀ      B = b·A + c·A·A      X = a·X + B·X
//
// Each of the checkpoint's tensors is a matrix of its own; they take turns in the same scratch.
#include <utility>

#include "backends/cuda/kernels/gemm/matrices.h"
#include "backends/cuda/kernels/optimizer/muon_args.h"
#include "backends/cuda/kernels/optimizer/tensor_update.h"

namespace plimsoll::cuda {
namespace {

struct MuonScratch {
  std::byte* product;
  float *x, *y, *gram, *both, *scale;
  double* squares;
  MuonScratch(Scratch& scratch, int64_t rows, int64_t cols)
      : product(scratch.take<std::byte>(kProductWorkspace)),
        x(scratch.take<float>(rows * cols)),
        y(scratch.take<float>(rows * cols)),
        gram(scratch.take<float>(std::min(rows, cols) * std::min(rows, cols))),
        both(scratch.take<float>(std::min(rows, cols) * std::min(rows, cols))),
        scale(scratch.take<float>(1)),
        squares(scratch.take<double>(ceil_div(rows * cols, int64_t{kMuonBlock}))) {}
};

int64_t muon_bytes(const ir::OpTypes& types) {
  const ir::Shape& shape = types.inputs[0].shape;
  int64_t most = 0;
  for (const int64_t rows : types.attrs.ints("parts")) {
    Scratch scratch;
    const MuonScratch unused(scratch, rows, shape.num_elements() / shape.dim(0));
    most = std::max(most, scratch.bytes());
  }
  return most;
}

/// x, made nearly orthogonal.
class Orthogonal {
 public:
  Orthogonal(const MuonScratch& scratch, int64_t rows, int64_t cols, Stream& stream)
      : scratch_(scratch), rows_(rows), cols_(cols), x_(scratch.x), y_(scratch.y), stream_(stream) {}

  Status step() {
    const int64_t s = std::min(rows_, cols_);
    const bool is_tall = rows_ > cols_;
    const Matrix x = f32_matrix(x_, rows_, cols_), gram = f32_matrix(scratch_.gram, s, s),
                 both = f32_matrix(scratch_.both, s, s), y = f32_matrix(y_, rows_, cols_);
    PLIMSOLL_TRY(product(x, is_tall, x, !is_tall, gram));
    PLIMSOLL_TRY(product(gram, false, gram, false, both));
    PLIMSOLL_TRY(
        combine(ops::kMuonCoefficients[1], scratch_.gram, ops::kMuonCoefficients[2], scratch_.both, s * s));
    PLIMSOLL_TRY(product(is_tall ? x : both, false, is_tall ? both : x, false, y));
    PLIMSOLL_TRY(combine(ops::kMuonCoefficients[0], x_, 1, y_, rows_ * cols_));
    std::swap(x_, y_);
    return Ok{};
  }
  [[nodiscard]] float* x() const { return x_; }

 private:
  Status product(const Matrix& a, bool a_transposed, const Matrix& b, bool b_transposed, const Matrix& d) {
    return multiply(a, a_transposed, b, b_transposed, d, /*adds=*/false, Precision::kF32, scratch_.product,
                    stream_);
  }
  Status combine(double a, const float* x, double b, float* to, int64_t n) {
    const Combination c{x, to, n, static_cast<float>(a), static_cast<float>(b)};
    return stream_.launch(kMuonCombine, blocks(n, kMuonBlock), {kMuonThreads}, 0, c);
  }

  const MuonScratch& scratch_;
  int64_t rows_, cols_;
  float *x_, *y_;
  Stream& stream_;
};

Status step_matrix(const TensorUpdate& update, int64_t first, int64_t rows, int64_t cols,
                   const MuonScratch& scratch, Stream& stream) {
  Muon a;
  a.t = update.part(first, rows * cols);
  a.momentum = from_element(operand(update.states[0]), first);
  a.x = scratch.x;
  a.squares = scratch.squares;
  a.scale = scratch.scale;
  a.epsilon = ops::kMuonEpsilon;
  for (const bool matches : {false, true})
    a.adjustments[matches ? 1 : 0] = ops::muon_adjustment(rows, cols, matches);
  a.blocks = ceil_div(a.t.n, int64_t{kMuonBlock});
  const Dim grid = blocks(a.blocks, 1);
  PLIMSOLL_TRY(stream.launch(kMuonGradient, grid, {kMuonThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kMuonNorm, {}, {kMuonThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kMuonScale, grid, {kMuonThreads}, 0, a));
  Orthogonal orthogonal(scratch, rows, cols, stream);
  for (int64_t step = 0; step < update.form.steps; ++step) PLIMSOLL_TRY(orthogonal.step());
  a.x = orthogonal.x();
  return stream.launch(kMuonStep, grid, {kMuonThreads}, 0, a);
}

Status muon(const KernelCall& call, Stream& stream) {
  PLIMSOLL_ASSIGN(const TensorUpdate update, tensor_update(call, stream));
  const ir::Shape& shape = call.inputs[0].shape();
  const int64_t cols = shape.num_elements() / shape.dim(0);
  int64_t first = 0;
  for (const int64_t rows : call.op->attrs.ints("parts")) {
    Scratch memory(call);
    const MuonScratch scratch(memory, rows, cols);
    PLIMSOLL_TRY(step_matrix(update, first, rows, cols, scratch, stream));
    first += rows * cols;
  }
  return Ok{};
}

}  // namespace

std::span<const Kernel> muon_kernels() {
  static constexpr Kernel kernels[] = {{.op = "muon", .run = muon, .workspace_bytes = muon_bytes}};
  return kernels;
}

}  // namespace plimsoll::cuda
