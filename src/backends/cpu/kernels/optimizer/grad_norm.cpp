// Gradient norm and clipping before the update: the squares of the gradients, their norm, clipping.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/optimizer/grad_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include <cmath>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/tensor_chunks.h"
#include "ops/ranks.h"
#include "ops/shard.h"

#ifndef PLIMSOLL_BACKENDS_CPU_KERNELS_GRAD_NORM_ARGS_
#define PLIMSOLL_BACKENDS_CPU_KERNELS_GRAD_NORM_ARGS_
namespace plimsoll::cpu {
namespace {

using ir::DType;

// Gradients whose squares are summed.
struct SquaresChunk {
  const std::byte* x;
  DType dtype, rounded;
};

}  // namespace
}  // namespace plimsoll::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Lanes of f32 from x[i], as many as `d` has; rounded before.
template <class D>
HWY_INLINE hn::Vec<D> gradient(D d, const float* x, DType rounded) {
  return stored::rounded(d, hn::LoadU(d, x), rounded);
}
template <class D>
HWY_INLINE hn::Vec<D> gradient(D d, const stored::Bf16* x, DType /*rounded*/) {
  return stored::convert::load_bf16(d, &x->bits);
}
template <class D>
HWY_INLINE hn::Vec<D> gradient(D d, const stored::F16* x, DType /*rounded*/) {
  return stored::convert::load_f16(d, &x->bits);
}

template <class T>
HWY_INLINE double sum_squares_of(const T* x, DType rounded, int64_t n) {
  const hn::ScalableTag<double> d64;
  const hn::Rebind<float, decltype(d64)> d32;
  const hn::CappedTag<float, 1> d1;
  const auto width = static_cast<int64_t>(hn::Lanes(d64));
  const auto at = [&](int64_t i) HWY_ATTR { return hn::PromoteTo(d64, gradient(d32, x + i, rounded)); };
  auto a = hn::Zero(d64), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    const auto v0 = at(i), v1 = at(i + width), v2 = at(i + 2 * width), v3 = at(i + 3 * width);
    a = hn::MulAdd(v0, v0, a);
    b = hn::MulAdd(v1, v1, b);
    c = hn::MulAdd(v2, v2, c);
    e = hn::MulAdd(v3, v3, e);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d64, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < n; ++i) {
    const auto v = static_cast<double>(hn::GetLane(gradient(d1, x + i, rounded)));
    sum += v * v;
  }
  return sum;
}

double sum_squares_chunk(const SquaresChunk& a, int64_t n) {
  double sum = 0;
  stored::with_element(a.dtype, [&](auto element) HWY_ATTR {
    sum = sum_squares_of(reinterpret_cast<const decltype(element)*>(a.x), a.rounded, n);
  });
  return sum;
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(sum_squares_chunk);

// What attribute `rounded` has gradients rounded to; f32: they are taken as they come.
DType rounded_of(const ir::Op& op) {
  return op.attrs.find("rounded") == nullptr ? DType::kF32 : *ir::parse_dtype(op.attrs.str("rounded"));
}

int64_t sum_squares_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  int64_t chunks = 0;
  for (const auto& input : types.inputs) chunks += ceil_div(input.num_elements(), kChunk);
  return TensorChunks::table_bytes(static_cast<int64_t>(types.inputs.size())) +
         chunks * static_cast<int64_t>(sizeof(double));
}

// One f32 for each operand, side by side; `sum_squares` is that of one.
void sums_of_squares(const KernelCall& call, ThreadPool& pool) {
  const auto tensors = static_cast<int64_t>(call.inputs.size());
  const DType rounded = rounded_of(*call.op);
  const auto input = [&](int64_t t) -> const TensorRef& { return call.inputs[static_cast<size_t>(t)]; };
  const TensorChunks chunks(call.workspace.data(), tensors,
                            [&](int64_t t) { return input(t).num_elements(); });
  auto* sums = reinterpret_cast<double*>(call.workspace.data() + TensorChunks::table_bytes(tensors));
  pool.run(chunks.num_chunks(), [&](int64_t chunk, int) {
    const int64_t t = chunks.tensor_of(chunk), at = (chunk - chunks.first(t)) * kChunk;
    const int64_t n = std::min(kChunk, input(t).num_elements() - at);
    const DType dtype = input(t).type.dtype;
    sums[chunk] = HWY_DYNAMIC_DISPATCH(sum_squares_chunk)(
        {input(t).data + at * (ir::bits(dtype) / 8), dtype, rounded}, n);
  });
  for (int64_t t = 0; t < tensors; ++t) {
    double sum = 0.0;
    for (int64_t c = chunks.first(t); c < chunks.first(t + 1); ++c) sum += sums[c];
    call.outputs[0].as<float>()[t] = static_cast<float>(sum);
  }
}

int64_t chunk_table_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return TensorChunks::table_bytes(static_cast<int64_t>(types.inputs.size()) - 1);
}

// Those of this rank's pieces, side by side; a double each, 0 where the last pieces have no chunk.
void chunk_squares(const KernelCall& call, ThreadPool& pool) {
  static_assert(kChunk == ops::kPieceGrain, "a piece consists of chunks");
  const std::vector<int64_t>& elements = call.op->attrs.ints("elements");
  const int64_t ranks = call.op->attrs.i64("ranks");
  const DType rounded = rounded_of(*call.op);
  const TensorChunks chunks(call.workspace.data(), std::ssize(elements), [&](int64_t t) {
    return ops::piece_elements(elements[static_cast<size_t>(t)], ranks);
  });
  const auto* own = call.inputs[0].as<const int32_t>();
  auto* sums = call.outputs[0].as<double>();
  pool.run(chunks.num_chunks(), [&](int64_t chunk, int) {
    const int64_t t = chunks.tensor_of(chunk), c = chunk - chunks.first(t);
    const int32_t* of_tensor = own + t * ops::kChunkWords;
    const int64_t count = of_tensor[1];
    const TensorRef& x = call.inputs[static_cast<size_t>(1 + t)];
    const DType dtype = x.type.dtype;
    const std::byte* begin = x.data + (of_tensor[0] + c) * kChunk * (ir::bits(dtype) / 8);
    sums[chunk] = c >= count ? 0.0
                             : HWY_DYNAMIC_DISPATCH(sum_squares_chunk)({begin, dtype, rounded},
                                                                       c + 1 < count ? kChunk : of_tensor[2]);
  });
}

void sum_chunk_squares(const KernelCall& call, ThreadPool& /*pool*/) {
  const ir::Shape& shape = call.inputs[0].shape();
  const auto* sums = call.inputs[0].as<const double>();
  int64_t first = 0, t = 0;
  for (const int64_t chunks : call.op->attrs.ints("pieces")) {
    double sum = 0.0;
    for (int64_t rank = 0; rank < shape.dim(0); ++rank)
      for (int64_t c = 0; c < chunks; ++c) sum += sums[rank * shape.dim(1) + first + c];
    call.outputs[0].as<float>()[t++] = static_cast<float>(sum);
    first += chunks;
  }
}

void global_norm(const KernelCall& call, ThreadPool& /*pool*/) {
  double sum = 0.0;
  for (const TensorRef& input : call.inputs)
    for (int64_t i = 0; i < input.num_elements(); ++i) sum += static_cast<double>(input.as<const float>()[i]);
  *call.outputs[0].as<float>() = static_cast<float>(std::sqrt(sum));
}

// A norm that is not a number gives a factor that is none, at which the update leaves everything as it is;
// the trainer ends the run.
void clip_scale(const KernelCall& call, ThreadPool& /*pool*/) {
  const float scale =
      static_cast<float>(call.op->attrs.f64("max_norm")) / (*call.inputs[0].as<const float>() + 1e-6f);
  *call.outputs[0].as<float>() = scale > 1.0f ? 1.0f : scale;
}

constexpr Kernel kKernels[] = {
    {.op = "chunk_squares",
     .run = chunk_squares,
     .workspace_bytes = chunk_table_bytes,
     .stored_dtypes = true},
    {.op = "clip_scale", .run = clip_scale},
    {.op = "global_norm", .run = global_norm},
    {.op = "sum_squares",
     .run = sums_of_squares,
     .workspace_bytes = sum_squares_bytes,
     .stored_dtypes = true},
    {.op = "sum_squares_sweep",
     .run = sums_of_squares,
     .workspace_bytes = sum_squares_bytes,
     .stored_dtypes = true},
    {.op = "sum_chunk_squares", .run = sum_chunk_squares, .stored_dtypes = true},
};

}  // namespace

std::span<const Kernel> grad_norm_kernels() { return kKernels; }

}  // namespace plimsoll::cpu
#endif
