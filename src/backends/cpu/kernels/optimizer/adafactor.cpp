// Adafactor: means over rows and columns, the update's size, then the update. A matrix is cut into tiles of
// rows, by its shape alone; each tile leaves partial sums in the workspace, which are added in the tiles'
// order. Gradients are read three times, parameters twice, and nothing but parameters is written:
//
//   tiles     g ─► squares' sums over rows ─► row     over columns ─► partial       p ─► squares' sum
//   columns   partial sums ─► col ─► 1 / sqrt(col)
//   tiles     g, row, col ─► squares' sum of the update
//   blocks    g, row, col ─► step ─► p
//
// Filters and vectors have their moments and the update's squares from the first pass over the tiles.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/adafactor_filters.h"
#include "backends/cpu/kernels/optimizer/adafactor_tiles.h"
#include "backends/cpu/kernels/optimizer/adafactor_vectors.h"
#include "backends/cpu/kernels/optimizer/tensor_update.h"

namespace plimsoll::cpu {
namespace {

using ops::AdafactorField;

constexpr int64_t kPiece = 1024;  // elements on the stack

bool is_of_filters(const ops::TensorRule& rule) { return rule.name.starts_with("adafactor_filters"); }
/// Of a matrix, whose columns are summed up over tiles.
bool is_factored(const ops::TensorRule& rule) { return rule.states[0].name == "row" && !is_of_filters(rule); }

/// One execution.
class Adafactor {
 public:
  Adafactor(const TensorUpdateCall& call, const Tiles& tiles, std::byte* workspace)
      : call_(call), tiles_(tiles), workspace_(workspace), factored_(is_factored(*call.form.rule)) {
    if (is_of_filters(*call.form.rule)) filters_.emplace(call);
  }

  void run(ThreadPool& pool) {
    pool.run(tiles_.num_tiles(), [&](int64_t tile, int) { measure(tile); });
    if (factored_) {
      const int64_t blocks = ceil_div(tiles_.cols(), kPiece);
      pool.run(tiles_.num_parts() * blocks,
               [&](int64_t i, int) { columns(i / blocks, i % blocks * kPiece); });
      pool.run(tiles_.num_tiles(), [&](int64_t tile, int) { measure_update(tile); });
    }
    for (int64_t p = 0; p < tiles_.num_parts(); ++p) settle(p);
    for_blocks(pool, call_.param.num_elements(), kBlockElements,
               [&](int64_t begin, int64_t end) { step(begin, end); });
  }

 private:
  struct Range {
    int64_t begin, end;  ///< rows
  };
  [[nodiscard]] Range rows_of(const Tiles::Part& part, int64_t tile) const {
    const int64_t begin = part.row + (tile - part.first_tile) * part.tile_rows;
    return {begin, std::min(begin + part.tile_rows, part.row + part.rows)};
  }
  [[nodiscard]] float field(AdafactorField f) const { return call_.group[f]; }
  [[nodiscard]] bool scales() const { return field(ops::kAdafactorScale) != 0; }

  /// Squares of gradient and parameter; the rows' moments, or a vector's, and then the update's squares.
  void measure(int64_t tile) const {
    const Tiles::Part part = tiles_.part(tiles_.part_of_tile(tile));
    const Range rows = rows_of(part, tile);
    double* sums = tiles_.sums(workspace_, tile);
    std::fill(sums, sums + Tiles::kSums, 0.0);
    if (factored_) {
      float* columns = tiles_.col_sums(workspace_, tile);
      std::fill(columns, columns + tiles_.cols(), 0.0F);
    }
    if (filters_) return measure_filters(rows, sums);
    if (!factored_) return measure_vector(rows.begin * tiles_.cols(), rows.end * tiles_.cols(), sums);
    for (int64_t row = rows.begin; row < rows.end; ++row) measure_row(tile, row, sums);
  }

  void measure_row(int64_t tile, int64_t row, double* sums) const {
    alignas(64) float values[kPiece];
    const int64_t cols = tiles_.cols();
    double squares = 0;
    for (int64_t c = 0; c < cols; c += kPiece) {
      const int64_t n = std::min(kPiece, cols - c);
      load_gradient(call_, row * cols + c, n, values);
      squares += static_cast<double>(
          adafactor_vectors::add_squares(values, tiles_.col_sums(workspace_, tile) + c, n));
      measure_param(row * cols + c, n, values, sums);
    }
    const auto mean =
        static_cast<float>(squares / static_cast<double>(cols)) + field(ops::kAdafactorEpsilon1);
    const float next = call_.states[0].as<const float>()[row] * field(ops::kAdafactorBeta2) +
                       field(ops::kAdafactorOneMinusBeta2) * mean;
    call_.new_states[0].as<float>()[row] = next;
    sums[Tiles::kRows] += static_cast<double>(next);
  }

  void measure_vector(int64_t begin, int64_t end, double* sums) const {
    alignas(64) float values[kPiece];
    for (int64_t at = begin; at < end; at += kPiece) {
      const int64_t n = std::min(kPiece, end - at);
      load_gradient(call_, at, n, values);
      sums[Tiles::kUpdate] += vector_moment(at, n, values);
      measure_param(at, n, values, sums);
    }
  }

  void measure_filters(Range rows, double* sums) const {
    alignas(64) float values[kPiece];
    for (int64_t filter = rows.begin; filter < rows.end; ++filter)
      sums[Tiles::kUpdate] += filters_->measure(filter);
    for (int64_t at = rows.begin * tiles_.cols(), n = 0; at < rows.end * tiles_.cols(); at += n) {
      n = std::min(kPiece, rows.end * tiles_.cols() - at);
      measure_param(at, n, values, sums);
    }
  }

  void measure_param(int64_t first, int64_t n, float* values, double* sums) const {
    if (!scales()) return;
    load_param(call_, first, n, values);
    sums[Tiles::kParam] += static_cast<double>(adafactor_vectors::sum_of_squares(values, n));
  }

  /// The next moment of n elements; the update's squares' sum.
  [[nodiscard]] double vector_moment(int64_t first, int64_t n, const float* g) const {
    alignas(64) float squares[kPiece];
    alignas(64) float factors[kPiece];
    adafactor_vectors::square(g, squares, n);
    adafactor_vectors::next_moment(call_.new_states[0].as<float>() + first,
                                   call_.states[0].as<const float>() + first, squares, 1.0F, call_.group,
                                   factors, n);
    return static_cast<double>(adafactor_vectors::sum_of_scaled(g, factors, n));
  }

  /// The columns' moments of a part, from `c` on, and their factors.
  void columns(int64_t p, int64_t c) const {
    const Tiles::Part part = tiles_.part(p);
    const int64_t n = std::min(kPiece, tiles_.cols() - c), at = p * tiles_.cols() + c;
    float* sums = tiles_.col_sums(workspace_, part.first_tile) + c;
    for (int64_t t = 1; t < part.tiles; ++t)
      adafactor_vectors::add(tiles_.col_sums(workspace_, part.first_tile + t) + c, sums, n);
    adafactor_vectors::next_moment(
        call_.new_states[1].as<float>() + at, call_.states[1].as<const float>() + at, sums,
        1.0F / static_cast<float>(part.rows), call_.group, tiles_.col_factors(workspace_, p) + c, n);
  }

  /// Mean of a part's rows' moments.
  [[nodiscard]] double row_mean(const Tiles::Part& part) const {
    return total(part, Tiles::kRows) / static_cast<double>(part.rows);
  }
  [[nodiscard]] double total(const Tiles::Part& part, Tiles::Sum sum) const {
    double all = 0;
    for (int64_t t = 0; t < part.tiles; ++t) all += tiles_.sums(workspace_, part.first_tile + t)[sum];
    return all;
  }
  [[nodiscard]] float row_factor(int64_t row, double mean) const {
    return static_cast<float>(
        1.0 / std::sqrt(static_cast<double>(call_.new_states[0].as<const float>()[row]) / mean));
  }

  void measure_update(int64_t tile) const {
    alignas(64) float g[kPiece];
    const int64_t p = tiles_.part_of_tile(tile);
    const Tiles::Part part = tiles_.part(p);
    const Range rows = rows_of(part, tile);
    const double mean = row_mean(part);
    double& sum = tiles_.sums(workspace_, tile)[Tiles::kUpdate];
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const auto factor = static_cast<double>(row_factor(row, mean));
      for (int64_t c = 0, n = 0; c < tiles_.cols(); c += n) {
        n = std::min(kPiece, tiles_.cols() - c);
        load_gradient(call_, row * tiles_.cols() + c, n, g);
        sum += factor * factor *
               static_cast<double>(
                   adafactor_vectors::sum_of_scaled(g, tiles_.col_factors(workspace_, p) + c, n));
      }
    }
  }

  void settle(int64_t p) const {
    const Tiles::Part part = tiles_.part(p);
    const auto elements = static_cast<double>(part.rows * tiles_.cols());
    const auto rms = [&](Tiles::Sum sum) { return std::sqrt(total(part, sum) / elements); };
    double* scalars = tiles_.scalars(workspace_, p);
    double rate = static_cast<double>(field(ops::kAdafactorRate));
    if (scales()) rate *= std::max(static_cast<double>(field(ops::kAdafactorEpsilon2)), rms(Tiles::kParam));
    const double over = rms(Tiles::kUpdate) / static_cast<double>(field(ops::kAdafactorThreshold));
    scalars[Tiles::kRowMean] = row_mean(part);
    scalars[Tiles::kRate] = rate;
    scalars[Tiles::kStepRate] = rate / std::max(1.0, over);
  }

  /// The steps of elements [begin, end), cut where parts end.
  void step(int64_t begin, int64_t end) const {
    alignas(64) float values[kPiece];
    for (int64_t p = 0; p < tiles_.num_parts(); ++p) {
      const Tiles::Part part = tiles_.part(p);
      const int64_t first = std::max(begin, part.row * tiles_.cols()),
                    last = std::min(end, (part.row + part.rows) * tiles_.cols());
      for (int64_t at = first, n = 0; at < last; at += n) {
        n = std::min(last - at, kPiece);
        load_gradient(call_, at, n, values);
        make_steps(p, at, n, values);
        finish(p, at, n, values);
      }
    }
  }

  void make_steps(int64_t p, int64_t at, int64_t n, float* values) const {
    const double* scalars = tiles_.scalars(workspace_, p);
    if (filters_) return filters_->scale(at, n, static_cast<float>(scalars[Tiles::kStepRate]), values);
    if (!factored_) {
      alignas(64) float factors[kPiece];
      adafactor_vectors::inverse_root(call_.new_states[0].as<const float>() + at, factors, n);
      adafactor_vectors::scale(values, factors, static_cast<float>(scalars[Tiles::kStepRate]), n);
      return;
    }
    for (int64_t i = 0, count = 0; i < n; i += count) {
      const int64_t row = (at + i) / tiles_.cols(), col = (at + i) % tiles_.cols();
      count = std::min(n - i, tiles_.cols() - col);
      const double factor = static_cast<double>(row_factor(row, scalars[Tiles::kRowMean]));
      adafactor_vectors::scale(values + i, tiles_.col_factors(workspace_, p) + col,
                               static_cast<float>(factor * scalars[Tiles::kStepRate]), count);
    }
  }

  void finish(int64_t p, int64_t at, int64_t n, float* values) const {
    if (const size_t m = call_.states.size() - 1; call_.form.rule->states[m].name == "m") {
      alignas(64) float moment[kPiece];
      load_state(call_, m, at, n, moment);
      adafactor_vectors::take_in(moment, field(ops::kAdafactorBeta1), field(ops::kAdafactorOneMinusBeta1),
                                 values, n);
      store_state(call_, m, at, n, values);
    }
    const double rate = tiles_.scalars(workspace_, p)[Tiles::kRate];
    step_param(call_, at, n,
               static_cast<float>(1.0 - static_cast<double>(field(ops::kAdafactorDecay)) * rate), values);
  }

  const TensorUpdateCall& call_;
  const Tiles& tiles_;
  std::byte* workspace_;
  bool factored_;
  std::optional<AdafactorFilters> filters_;
};

int64_t adafactor_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return Tiles(types.inputs[0].shape, types.attrs.ints("parts"),
               is_factored(*ops::find_tensor_rule(types.op)))
      .bytes();
}

void adafactor(const KernelCall& kernel_call, ThreadPool& pool) {
  const TensorUpdateCall call(kernel_call);
  if (call.is_skipped) return call.keep(pool);
  const Tiles tiles(call.param.type.shape, kernel_call.op->attrs.ints("parts"), is_factored(*call.form.rule));
  Adafactor(call, tiles, kernel_call.workspace.data()).run(pool);
}

constexpr Kernel adafactor_kernel(std::string_view op) {
  return {.op = op, .run = adafactor, .workspace_bytes = adafactor_bytes, .stored_dtypes = true};
}
constexpr Kernel kKernels[] = {
    adafactor_kernel("adafactor"),         adafactor_kernel("adafactor_moment"),
    adafactor_kernel("adafactor_vector"),  adafactor_kernel("adafactor_vector_moment"),
    adafactor_kernel("adafactor_filters"), adafactor_kernel("adafactor_filters_moment")};

}  // namespace

std::span<const Kernel> adafactor_kernels() { return kKernels; }

}  // namespace plimsoll::cpu
