// Reductions over any axes of operands of any strides. Two ways, by the last axis that has more than one
// element:
//
//   it stays    its columns are summed row by row, as bias gradients are: rows of a granule in order, then
//               granules in order
//   it goes     the elements of a result are summed in pieces of 4096 by vectors, then the pieces are added
//               in order, in double
//
// What is a piece, a granule and a task depends on the shape alone, not on strides.
#include "backends/cpu/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/elementwise/reduce_axes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "backends/cpu/kernels/strided_runs.h"
#include "backends/cpu/kernels/vectors-inl.h"
#include "ops/broadcast.h"
#include "ops/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace plimsoll::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using vectors::load;
using vectors::store;
using vectors::V;

HWY_INLINE V larger_of(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(a, b), hn::IsNaN(a)), a, b); }

float sum_piece(const float* x, int64_t n) {
  return vectors::sum_of(n, [x](int64_t i, auto part) HWY_ATTR { return load(x + i, part); });
}

/// Not a number where an element is none.
float max_piece(const float* x, int64_t n) {
  float largest = x[0];
  int64_t i = 0;
  if (n >= vectors::kWidth) {
    V lanes = load(x, vectors::Full{});
    for (i = vectors::kWidth; i + vectors::kWidth <= n; i += vectors::kWidth)
      lanes = larger_of(load(x + i, vectors::Full{}), lanes);
    HWY_ALIGN float each[vectors::kWidth];
    hn::Store(lanes, vectors::F32(), each);
    largest = each[0];
    for (int64_t lane = 1; lane < vectors::kWidth; ++lane)
      largest = largest > each[lane] || largest != largest ? largest : each[lane];
  }
  for (; i < n; ++i) largest = largest > x[i] || largest != largest ? largest : x[i];
  return largest;
}

void add_row(const float* x, float* sums, int64_t n) {
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(hn::Add(load(sums + i, part), load(x + i, part)), sums + i, part);
  });
}
void max_row(const float* x, float* largest, int64_t n) {
  vectors::for_vectors(n, [=](int64_t i, auto part) HWY_ATTR {
    store(larger_of(load(x + i, part), load(largest + i, part)), largest + i, part);
  });
}

}  // namespace
}  // namespace plimsoll::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plimsoll::cpu {
namespace {

HWY_EXPORT(sum_piece);
HWY_EXPORT(max_piece);
HWY_EXPORT(add_row);
HWY_EXPORT(max_row);

constexpr int64_t kPieceElements = 4096;
/// Pieces of one task, where one result has many.
constexpr int64_t kTaskPieces = 16;
/// Columns that are summed at a time: 512 bytes of each row, so that the hardware prefetches along the rows.
constexpr int64_t kSumColumns = 128;

/// Axes that stay, by which results are numbered, and axes that go.
struct ReducedAxes {
  ir::Shape kept, gone;
  ir::Strides kept_strides{}, gone_strides{};
  int64_t columns = 1;  ///< of the axes that stay behind the last that goes
};

ReducedAxes part_axes(const ir::Shape& x, const ir::Strides& strides, const std::vector<int64_t>& axes) {
  ReducedAxes parted;
  std::array<std::vector<int64_t>, 2> extents;
  for (int i = 0; i < x.rank(); ++i) {
    const bool goes = std::find(axes.begin(), axes.end(), i) != axes.end();
    (goes ? parted.gone_strides : parted.kept_strides)[extents[goes ? 1 : 0].size()] = strides[at(i)];
    extents[goes ? 1 : 0].push_back(x.dim(i));
    if (x.dim(i) > 1) parted.columns = goes ? 1 : parted.columns * x.dim(i);
  }
  for (auto& list : extents)
    if (list.empty()) list.push_back(1);
  parted.kept = ir::Shape(std::span<const int64_t>(extents[0]));
  parted.gone = ir::Shape(std::span<const int64_t>(extents[1]));
  return parted;
}

/// Tasks of one result where the last axis goes.
int64_t tasks_of_result(int64_t gone) { return ceil_div(gone, kPieceElements * kTaskPieces); }

int64_t reduce_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  const ir::TensorType& x = types.inputs[0];
  const ReducedAxes axes = part_axes(x.shape, ir::dense_strides(x.shape), types.attrs.ints("axes"));
  const int64_t tasks = tasks_of_result(axes.gone.num_elements());
  return axes.columns > 1 || tasks == 1
             ? 0
             : axes.kept.num_elements() * tasks * static_cast<int64_t>(sizeof(double));
}

class AxesReduction {
 public:
  explicit AxesReduction(const KernelCall& call)
      : x_(call.inputs[0]),
        acc_(input_or_none(call, 1)),
        y_(call.outputs[0]),
        partials_(reinterpret_cast<double*>(call.workspace.data())),
        kind_(*ops::parse_reduce(call.op->attrs.str("kind"))),
        axes_(part_axes(x_.shape(), x_.strides, call.op->attrs.ints("axes"))),
        kept_(axes_.kept, axes_.kept_strides),
        gone_(axes_.gone, axes_.gone_strides),
        piece_(is_max() ? HWY_DYNAMIC_DISPATCH(max_piece) : HWY_DYNAMIC_DISPATCH(sum_piece)),
        row_(is_max() ? HWY_DYNAMIC_DISPATCH(max_row) : HWY_DYNAMIC_DISPATCH(add_row)),
        add_(HWY_DYNAMIC_DISPATCH(add_row)) {}

  void run(ThreadPool& pool) {
    if (axes_.columns > 1) return run_columns(pool);
    const int64_t tasks = tasks_of_result(axes_.gone.num_elements()), results = axes_.kept.num_elements();
    const int64_t elements = axes_.gone.num_elements();
    if (tasks == 1)
      return for_blocks(pool, results, std::max<int64_t>(1, kBlockElements / elements),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i) write(i, reduce_pieces(i, 0, elements));
                        });
    constexpr int64_t kTask = kPieceElements * kTaskPieces;
    for_blocks(pool, results * tasks, 1, [&](int64_t task, int64_t) {
      const int64_t begin = task % tasks * kTask;
      partials_[task] = reduce_pieces(task / tasks, begin, std::min(elements, begin + kTask));
    });
    for (int64_t i = 0; i < results; ++i) {
      double total = partials_[i * tasks];
      for (int64_t task = 1; task < tasks; ++task) total = joined(total, partials_[i * tasks + task]);
      write(i, total);
    }
  }

 private:
  [[nodiscard]] bool is_max() const { return kind_ == ops::Reduce::kMax; }
  [[nodiscard]] double joined(double a, double b) const {
    return !is_max() ? a + b : b > a || b != b ? b : a;
  }
  [[nodiscard]] const std::byte* address(int64_t offset) const {
    return x_.data + offset * element_bytes(x_.type.dtype);
  }

  /// The elements [begin, end) of a result, piece by piece.
  [[nodiscard]] double reduce_pieces(int64_t result, int64_t begin, int64_t end) const {
    alignas(64) std::array<float, kPieceElements> room;
    const int64_t base = ops::offset_of(axes_.kept, result, axes_.kept_strides);
    const bool is_direct = x_.type.dtype == ir::DType::kF32 && gone_.is_dense();
    double total = 0;
    for (int64_t i = begin; i < end; i += kPieceElements) {
      const int64_t n = std::min(kPieceElements, end - i);
      const float* elements = is_direct ? x_.as<float>() + base + i : room.data();
      if (!is_direct)
        gone_.for_runs(i, i + n, [&](int64_t offset, int64_t first, int64_t count) {
          read_as_f32(address(base + offset), x_.type.dtype, gone_.stride(), count, room.data() + first - i);
        });
      const double piece = piece_(elements, n);
      total = i == begin ? piece : joined(total, piece);
    }
    return total;
  }

  void write(int64_t result, double total) const {
    if (kind_ == ops::Reduce::kMean) total /= static_cast<double>(axes_.gone.num_elements());
    if (acc_) total += acc_.as<float>()[result];
    store(result, static_cast<float>(total));
  }
  void store(int64_t result, float value) const {
    if (y_.type.dtype == ir::DType::kF32)
      y_.as<float>()[result] = value;
    else
      round_to(&value, y_.data + result * element_bytes(y_.type.dtype), y_.type.dtype, 1);
  }

  // ---- columns

  void run_columns(ThreadPool& pool) {
    const int64_t per_row = ceil_div(axes_.columns, kSumColumns), rows = axes_.gone.num_elements();
    const int64_t groups = axes_.kept.num_elements() / axes_.columns * per_row;
    const int64_t block = std::max<int64_t>(1, kBlockElements / (kSumColumns * rows));
    for_blocks(pool, groups, block, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i % per_row * kSumColumns;
        reduce_columns(i / per_row * axes_.columns + column, std::min(kSumColumns, axes_.columns - column));
      }
    });
  }

  /// Results [result, result + n), all rows of them.
  void reduce_columns(int64_t result, int64_t n) const {
    alignas(64) std::array<float, kSumColumns> total, granule, room;
    const float* const first = columns_at(result, n);
    int64_t row = 0;
    gone_.for_runs(0, axes_.gone.num_elements(), [&](int64_t offset, int64_t, int64_t count) {
      for (int64_t i = 0; i < count; ++i, ++row, offset += gone_.stride()) {
        const float* x = first != nullptr ? first + offset : gathered_row(result, n, offset, room.data());
        if (row % ops::kGranule == 0) {
          if (row > 0) add_granule(result, granule.data(), total.data(), n, row == ops::kGranule);
          std::copy_n(x, n, granule.data());
        } else {
          row_(x, granule.data(), n);
        }
      }
    });
    add_granule(result, granule.data(), total.data(), n, row <= ops::kGranule);
    const bool is_mean = kind_ == ops::Reduce::kMean;
    for (int64_t i = 0; i < n; ++i)
      store(result + i,
            is_mean ? total[at(i)] / static_cast<float>(axes_.gone.num_elements()) : total[at(i)]);
  }

  void add_granule(int64_t result, const float* granule, float* total, int64_t n, bool is_first) const {
    if (is_first) std::copy_n(granule, n, total);
    if (is_first && acc_) add_(acc_.as<float>() + result, total, n);
    if (!is_first) row_(granule, total, n);
  }

  /// Where results [result, result + n) have their first row, if it can be read there; else null.
  [[nodiscard]] const float* columns_at(int64_t result, int64_t n) const {
    const float* found = nullptr;
    kept_.for_runs(result, result + n, [&](int64_t offset, int64_t, int64_t count) {
      if (count == n && kept_.stride() == 1 && x_.type.dtype == ir::DType::kF32)
        found = x_.as<float>() + offset;
    });
    return found;
  }

  /// The row at `offset` of those results, gathered in `room`.
  const float* gathered_row(int64_t result, int64_t n, int64_t offset, float* room) const {
    kept_.for_runs(result, result + n, [&](int64_t kept, int64_t first, int64_t count) {
      read_as_f32(address(kept + offset), x_.type.dtype, kept_.stride(), count, room + first - result);
    });
    return room;
  }

  const TensorRef& x_;
  TensorRef acc_;
  const TensorRef& y_;
  double* partials_;
  ops::Reduce kind_;
  ReducedAxes axes_;
  StridedRuns kept_, gone_;
  float (*piece_)(const float*, int64_t);
  void (*row_)(const float*, float*, int64_t);
  void (*add_)(const float*, float*, int64_t);
};

void reduce(const KernelCall& call, ThreadPool& pool) { AxesReduction(call).run(pool); }

}  // namespace

std::span<const Kernel> reduce_axes_kernels() {
  static constexpr Kernel kernels[] = {{.op = "reduce",
                                        .run = reduce,
                                        .workspace_bytes = reduce_bytes,
                                        .strided_inputs = 0b1,
                                        .stored_dtypes = true}};
  return kernels;
}

}  // namespace plimsoll::cpu
#endif
