// Muon: the momentum of a matrix, made nearly orthogonal by a few steps of Newton and Schulz. With X the
// shorter axis first, a step is three products; a tall matrix stays as it lies and is multiplied from the
// right:
//
//   A = X·Xᵀ      B = b·A + c·A·A      X = a·X + B·X
//
// Products are gemm's, in fp32; two matrices of the largest part's size and two of its shorter side squared
// lie in the workspace. Each of the checkpoint's tensors is a matrix of its own.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer/muon.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/kernels/gemm/gemm.h"
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/tensor_update.h"
#include "backends/cpu/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::load;
using vectors::set;
using vectors::store;
using vectors::V;

// The momentum takes the gradient in; x is the update, whose squares' sum is returned.
float take_gradient(const float* group, const float* g, float* momentum, float* x, int64_t n) {
  const V share = set(group[ops::kMuonMomentum]), rest = set(group[ops::kMuonOneMinusMomentum]);
  const bool ahead = group[ops::kMuonNesterov] != 0;
  return vectors::sum_of(n, [&](int64_t i, auto part) HWY_ATTR {
    const V gradient = load(g + i, part), before = load(momentum + i, part);
    const V m = hn::MulAdd(hn::Sub(gradient, before), rest, before);
    const V update = ahead ? hn::MulAdd(hn::Sub(m, gradient), share, gradient) : m;
    store(m, momentum + i, part);
    store(update, x + i, part);
    return hn::Mul(update, update);
  });
}

// to = a * x + b * to.
void combine(float a, const float* x, float b, float* to, int64_t n) {
  const V of_x = set(a), of_to = set(b);
  vectors::for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    store(hn::MulAdd(of_x, load(x + i, part), hn::Mul(of_to, load(to + i, part))), to + i, part);
  });
}

void multiply(float factor, float* x, int64_t n) {
  const V f = set(factor);
  vectors::for_vectors(
      n, [&](int64_t i, auto part) HWY_ATTR { store(hn::Mul(f, load(x + i, part)), x + i, part); });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(combine);
HWY_EXPORT(multiply);
HWY_EXPORT(take_gradient);

constexpr int64_t kPiece = 1024;  // elements on the stack

int64_t aligned(int64_t bytes) { return ceil_div(bytes, int64_t{64}) * 64; }

/// Where a part's matrices lie in the workspace.
struct Layout {
  int64_t rows, cols;

  [[nodiscard]] int64_t shorter() const { return std::min(rows, cols); }
  [[nodiscard]] int64_t longer() const { return std::max(rows, cols); }
  [[nodiscard]] int64_t matrix_bytes() const { return aligned(4 * rows * cols); }
  [[nodiscard]] int64_t gram_bytes() const { return aligned(4 * shorter() * shorter()); }
  [[nodiscard]] int64_t sums_bytes() const { return aligned(8 * ceil_div(rows * cols, kBlockElements)); }
  [[nodiscard]] int64_t gemm_bytes(int threads) const {
    return std::max({gemm_workspace_bytes(shorter(), shorter(), longer(), threads),
                     gemm_workspace_bytes(shorter(), shorter(), shorter(), threads),
                     gemm_workspace_bytes(rows, cols, shorter(), threads)});
  }
  [[nodiscard]] int64_t bytes(int threads) const {
    return 2 * matrix_bytes() + 2 * gram_bytes() + sums_bytes() + gemm_bytes(threads);
  }
};

/// One part's update.
class Muon {
 public:
  Muon(const TensorUpdateCall& call, Layout layout, int64_t first, std::span<std::byte> workspace,
       ThreadPool& pool)
      : call_(call), layout_(layout), first_(first), pool_(pool), size_(layout.rows * layout.cols) {
    std::byte* at = workspace.data();
    const auto take = [&](int64_t bytes) { return std::exchange(at, at + bytes); };
    x_ = reinterpret_cast<float*>(take(layout.matrix_bytes()));
    y_ = reinterpret_cast<float*>(take(layout.matrix_bytes()));
    gram_ = reinterpret_cast<float*>(take(layout.gram_bytes()));
    both_ = reinterpret_cast<float*>(take(layout.gram_bytes()));
    sums_ = reinterpret_cast<double*>(take(layout.sums_bytes()));
    scratch_ = workspace.subspan(static_cast<size_t>(at - workspace.data()));
  }

  void run() {
    for_blocks(pool_, size_, kBlockElements, [&](int64_t begin, int64_t end) { take_gradients(begin, end); });
    double squares = 0;
    for (int64_t i = 0; i < ceil_div(size_, kBlockElements); ++i) squares += sums_[i];
    const double norm = std::max(std::sqrt(squares), ops::kMuonEpsilon);
    over(x_, size_, [&](float* x, int64_t, int64_t n) {
      HWY_DYNAMIC_DISPATCH(multiply)(static_cast<float>(1.0 / norm), x, n);
    });
    for (int64_t step = 0; step < call_.form.steps; ++step) orthogonalise();
    const double rate =
        static_cast<double>(call_.group[ops::kMuonRate]) *
        ops::muon_adjustment(layout_.rows, layout_.cols, call_.group[ops::kMuonMatchesRms] != 0);
    over(x_, size_, [&](float* x, int64_t at, int64_t n) {
      HWY_DYNAMIC_DISPATCH(multiply)(static_cast<float>(rate), x, n);
      step_param(call_, first_ + at, n, call_.group[ops::kMuonDecay], x);
    });
  }

 private:
  /// body(values, their first index, count) for blocks of `values`.
  template <typename Body>
  void over(float* values, int64_t n, Body body) const {
    for_blocks(pool_, n, kBlockElements,
               [&](int64_t begin, int64_t end) { body(values + begin, begin, end - begin); });
  }

  void take_gradients(int64_t begin, int64_t end) const {
    alignas(64) float g[kPiece];
    alignas(64) float momentum[kPiece];
    double sum = 0;
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t n = std::min(kPiece, end - at);
      load_gradient(call_, first_ + at, n, g);
      load_state(call_, 0, first_ + at, n, momentum);
      sum += static_cast<double>(HWY_DYNAMIC_DISPATCH(take_gradient)(call_.group, g, momentum, x_ + at, n));
      store_state(call_, 0, first_ + at, n, momentum);
    }
    sums_[begin / kBlockElements] = sum;
  }

  void orthogonalise() {
    const int64_t s = layout_.shorter(), cols = layout_.cols;
    const bool is_tall = layout_.rows > cols;
    const ConstMatrix x{x_, cols, 1}, transposed{x_, 1, cols}, gram{gram_, s, 1}, both{both_, s, 1};
    gemm({.m = s,
          .n = s,
          .k = layout_.longer(),
          .a = is_tall ? transposed : x,
          .b = is_tall ? x : transposed,
          .c = gram_,
          .c_row_stride = s},
         pool_, scratch_);
    gemm({.m = s, .n = s, .k = s, .a = gram, .b = gram, .c = both_, .c_row_stride = s}, pool_, scratch_);
    over(both_, s * s, [&](float* to, int64_t at, int64_t n) {
      HWY_DYNAMIC_DISPATCH(combine)
      (static_cast<float>(ops::kMuonCoefficients[1]), gram_ + at,
       static_cast<float>(ops::kMuonCoefficients[2]), to, n);
    });
    gemm({.m = layout_.rows,
          .n = cols,
          .k = s,
          .a = is_tall ? x : both,
          .b = is_tall ? both : x,
          .c = y_,
          .c_row_stride = cols},
         pool_, scratch_);
    over(y_, size_, [&](float* to, int64_t at, int64_t n) {
      HWY_DYNAMIC_DISPATCH(combine)(static_cast<float>(ops::kMuonCoefficients[0]), x_ + at, 1.0F, to, n);
    });
    std::swap(x_, y_);
  }

  const TensorUpdateCall& call_;
  Layout layout_;
  int64_t first_;
  ThreadPool& pool_;
  int64_t size_;
  float *x_, *y_, *gram_, *both_;
  double* sums_;
  std::span<std::byte> scratch_;
};

int64_t muon_bytes(const ir::OpTypes& types, int num_threads) {
  const ir::Shape& shape = types.inputs[0].shape;
  int64_t most = 0;
  for (const int64_t rows : types.attrs.ints("parts"))
    most = std::max(most, Layout{rows, shape.num_elements() / shape.dim(0)}.bytes(num_threads));
  return most;
}

void muon(const KernelCall& kernel_call, ThreadPool& pool) {
  const TensorUpdateCall call(kernel_call);
  if (call.is_skipped) return call.keep(pool);
  const ir::Shape& shape = call.param.type.shape;
  const int64_t cols = shape.num_elements() / shape.dim(0);
  int64_t first = 0;
  for (const int64_t rows : kernel_call.op->attrs.ints("parts")) {
    Muon(call, {rows, cols}, first, kernel_call.workspace, pool).run();
    first += rows * cols;
  }
}

constexpr Kernel kKernels[] = {
    {.op = "muon", .run = muon, .workspace_bytes = muon_bytes, .stored_dtypes = true}};

}  // namespace

std::span<const Kernel> muon_kernels() { return kKernels; }

}  // namespace plimsoll::cpu
#endif
