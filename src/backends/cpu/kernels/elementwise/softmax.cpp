// Softmax over rows: three passes over a row, which a cache holds.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/softmax.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/stored-inl.h"
#include "backends/cpu/kernels/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using stored::Any;
using stored::load;
using stored::store;
using vectors::F32;
using vectors::for_vectors;
using vectors::set;
using vectors::sum_of;
using vectors::V;

/// `v`, with zeros beyond the end.
HWY_INLINE V within(V v, vectors::Full) { return v; }
HWY_INLINE V within(V v, vectors::Tail t) { return hn::IfThenElseZero(hn::FirstN(F32(), t.count), v); }

/// The largest; not a number where an element is none.
HWY_INLINE float largest_of(Any x, int64_t n) {
  V largest = set(stored::element(x));
  for_vectors(n, [&](int64_t i, auto part) HWY_ATTR {
    const V v = load(x + i, part);
    V larger = hn::IfThenElse(hn::Or(hn::Gt(v, largest), hn::IsNaN(v)), v, largest);
    if constexpr (std::is_same_v<decltype(part), vectors::Tail>)
      larger = hn::IfThenElse(hn::FirstN(F32(), part.count), larger, largest);
    largest = larger;
  });
  HWY_ALIGN float lanes[vectors::kWidth];
  hn::Store(largest, F32(), lanes);
  float result = lanes[0];
  for (int64_t lane = 1; lane < vectors::kWidth; ++lane)
    result = lanes[lane] > result || lanes[lane] != lanes[lane] ? lanes[lane] : result;
  return result;
}

void softmax_row(ir::DType from, std::byte* x_data, ir::DType to, std::byte* y_data, int64_t n, bool log) {
  const Any x{x_data, from}, y{y_data, to};
  const V largest = set(largest_of(x, n));
  const bool keeps = to == ir::DType::kF32 && !log;  // exponentials wait in the result, unrounded
  const auto exponential = [=](int64_t i, auto part) HWY_ATTR {
    return within(ExpNonPositive(F32(), hn::Sub(load(x + i, part), largest)), part);
  };
  const float sum = sum_of(n, [=](int64_t i, auto part) HWY_ATTR {
    const V e = exponential(i, part);
    if (keeps) store(e, y + i, part);
    return e;
  });
  const V factor = set(1.0F / sum), shift = hn::Add(largest, Log(F32(), set(sum)));
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    if (log)
      store(hn::Sub(load(x + i, part), shift), y + i, part);
    else
      store(hn::Mul(keeps ? load(y + i, part) : exponential(i, part), factor), y + i, part);
  });
}

void softmax_grad_row(const Any* operands, int64_t n, bool log) {
  const Any dy = operands[0], y = operands[1], dx = operands[2];
  const V sum = set(sum_of(n, [=](int64_t i, auto part) HWY_ATTR {
    return log ? load(dy + i, part) : hn::Mul(load(dy + i, part), load(y + i, part));
  }));
  for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    const V d = load(dy + i, part), v = load(y + i, part);
    store(log ? hn::NegMulAdd(Exp(F32(), v), sum, d) : hn::Mul(v, hn::Sub(d, sum)), dx + i, part);
  });
}

void softmax_grad_rows(const ir::DType* dtypes, std::byte* const* rows, int64_t n, bool log) {
  const Any operands[] = {{rows[0], dtypes[0]}, {rows[1], dtypes[1]}, {rows[2], dtypes[2]}};
  softmax_grad_row(operands, n, log);
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_grad_rows);

std::byte* bytes_at(const RowsOfAny& rows, int64_t i) { return static_cast<std::byte*>(rows.row(i)); }

void softmax(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny x(call.inputs[0]), y(call.outputs[0]);
  const ir::DType from = call.inputs[0].type.dtype, to = call.outputs[0].type.dtype;
  const bool log = call.op->attrs.flag("log");
  for_row_blocks(pool, x.rows(), x.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      HWY_DYNAMIC_DISPATCH(softmax_row)(from, bytes_at(x, r), to, bytes_at(y, r), x.cols(), log);
  });
}

void softmax_grad(const KernelCall& call, ThreadPool& pool) {
  const RowsOfAny dy(call.inputs[0]), y(call.inputs[1]), dx(call.outputs[0]);
  const ir::DType dtypes[] = {call.inputs[0].type.dtype, call.inputs[1].type.dtype,
                              call.outputs[0].type.dtype};
  const bool log = call.op->attrs.flag("log");
  for_row_blocks(pool, dy.rows(), dy.cols(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      std::byte* const rows[] = {bytes_at(dy, r), bytes_at(y, r), bytes_at(dx, r)};
      HWY_DYNAMIC_DISPATCH(softmax_grad_rows)(dtypes, rows, dy.cols(), log);
    }
  });
}

}  // namespace

std::span<const Kernel> softmax_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "softmax", .run = softmax, .strided_inputs = 0b1, .stored_dtypes = true},
      {.op = "softmax_grad", .run = softmax_grad, .strided_inputs = 0b11, .stored_dtypes = true},
  };
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
