// Adafactor: a part of the parameter after the other, in the same scratch.
#include "backends/cuda/kernels/optimizer/adafactor_args.h"
#include "backends/cuda/kernels/optimizer/tensor_update.h"

namespace plimsoll::cuda {
namespace {

/// Of a part; rows of one tile are summed up by one thread.
constexpr int64_t kMostPartTiles = 64, kLeastTileRows = 64;

bool is_of_filters(const ops::TensorRule& rule) { return rule.name.starts_with("adafactor_filters"); }
/// Of a matrix.
bool is_factored(const ops::TensorRule& rule) { return rule.states[0].name == "row" && !is_of_filters(rule); }

/// How a part [rows, cols] is cut up.
struct PartCut {
  int64_t rows, cols, tile_rows, tiles, sums;
  PartCut(int64_t part_rows, int64_t part_cols, const ops::TensorRule& rule, int64_t inputs)
      : rows(part_rows),
        cols(part_cols),
        tile_rows(std::max(kLeastTileRows, ceil_div(rows, kMostPartTiles))),
        tiles(ceil_div(rows, tile_rows)),
        sums(is_factored(rule)     ? rows
             : is_of_filters(rule) ? ceil_div(rows * inputs, int64_t{kAdafactorThreads})
                                   : ceil_div(rows * cols, int64_t{kAdafactorBlock})) {}
  /// Of a block that goes along a row.
  [[nodiscard]] uint32_t row_threads() const {
    return static_cast<uint32_t>(
        std::min<int64_t>(kAdafactorThreads, round_up(ceil_div(cols, int64_t{8}), int64_t{32})));
  }
};

void take_scratch(Scratch& scratch, const PartCut& cut, bool factored, Adafactor& a) {
  a.scalars = scratch.take<double>(3);
  a.param_squares = scratch.take<double>(cut.sums);
  a.update_squares = scratch.take<double>(cut.sums);
  if (!factored) return;
  a.col_factors = scratch.take<float>(cut.cols);
  a.col_sums = scratch.take<float>(cut.tiles * cut.cols);
}

int64_t adafactor_bytes(const ir::OpTypes& types) {
  const ir::Shape& shape = types.inputs[0].shape;
  const ops::TensorRule& rule = *ops::find_tensor_rule(types.op);
  int64_t most = 0;
  for (const int64_t rows : types.attrs.ints("parts")) {
    Scratch scratch;
    Adafactor unused;
    const PartCut cut(rows, shape.num_elements() / shape.dim(0), rule, ops::FilterExtents(shape).in);
    take_scratch(scratch, cut, is_factored(rule), unused);
    most = std::max(most, scratch.bytes());
  }
  return most;
}

Status step_matrix(const Adafactor& a, const PartCut& cut, Stream& stream) {
  const auto rows = static_cast<uint32_t>(cut.rows), threads = cut.row_threads();
  const Dim columns = blocks(cut.cols, kAdafactorThreads);
  PLIMSOLL_TRY(stream.launch(kAdafactorRows, {rows}, {threads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorColumns, {columns.x, static_cast<uint32_t>(cut.tiles)},
                             {kAdafactorThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorColumnMoments, columns, {kAdafactorThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorRowMean, {}, {kAdafactorThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorUpdates, {rows}, {threads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorSettle, {}, {kAdafactorThreads}, 0, a));
  return stream.launch(kAdafactorStep, {rows * blocks(cut.cols, 8 * int64_t{threads}).x}, {threads}, 0, a);
}

Status step_vector(const Adafactor& a, const PartCut& cut, Stream& stream) {
  const Dim grid = blocks(cut.sums, 1);
  PLIMSOLL_TRY(stream.launch(kAdafactorVector, grid, {kAdafactorThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorSettle, {}, {kAdafactorThreads}, 0, a));
  return stream.launch(kAdafactorVectorStep, grid, {kAdafactorThreads}, 0, a);
}

Status step_filters(const Adafactor& a, const PartCut& cut, Stream& stream) {
  PLIMSOLL_TRY(stream.launch(kAdafactorFilters, blocks(cut.sums, 1), {kAdafactorThreads}, 0, a));
  PLIMSOLL_TRY(stream.launch(kAdafactorSettle, {}, {kAdafactorThreads}, 0, a));
  return stream.launch(kAdafactorFiltersStep, blocks(cut.rows * cut.cols, kAdafactorBlock),
                       {kAdafactorThreads}, 0, a);
}

Status adafactor(const KernelCall& call, Stream& stream) {
  PLIMSOLL_ASSIGN(const TensorUpdate update, tensor_update(call, stream));
  const ir::Shape& shape = call.inputs[0].shape();
  const auto& states = update.states;
  const ops::TensorRule& rule = *update.form.rule;
  const bool factored = is_factored(rule), of_filters = is_of_filters(rule);
  const ops::FilterExtents f(shape);
  const int64_t cols = shape.num_elements() / shape.dim(0);
  int64_t row = 0, index = 0;
  for (const int64_t rows : call.op->attrs.ints("parts")) {
    const PartCut cut(rows, cols, rule, f.in);
    Adafactor a;
    a.t = update.part(row * cols, rows * cols);
    a.rows = rows, a.cols = cols;
    a.tile_rows = cut.tile_rows, a.tiles = cut.tiles, a.sums = cut.sums;
    if (factored) {
      a.row = states[0].as<float>() + row;
      a.col = states[1].as<float>() + index * cols;
    } else if (of_filters) {
      a.height = f.height, a.width = f.width, a.in = f.in;
      a.row = states[0].as<float>() + row * f.height * f.in;
      a.col = states[1].as<float>() + row * f.width * f.in;
    } else {
      a.v = states[0].as<float>() + row * cols;
    }
    if (rule.states.back().name == "m") {
      a.m = from_element(operand(states.back()), row * cols);
      a.m_result = static_cast<int32_t>(states.size());
    }
    Scratch scratch(call);
    take_scratch(scratch, cut, factored, a);
    PLIMSOLL_TRY(factored     ? step_matrix(a, cut, stream)
                 : of_filters ? step_filters(a, cut, stream)
                              : step_vector(a, cut, stream));
    row += rows;
    ++index;
  }
  return Ok{};
}

constexpr Kernel adafactor_kernel(std::string_view op) {
  return {.op = op, .run = adafactor, .workspace_bytes = adafactor_bytes};
}

}  // namespace

std::span<const Kernel> adafactor_kernels() {
  static constexpr Kernel kernels[] = {
      adafactor_kernel("adafactor"),         adafactor_kernel("adafactor_moment"),
      adafactor_kernel("adafactor_vector"),  adafactor_kernel("adafactor_vector_moment"),
      adafactor_kernel("adafactor_filters"), adafactor_kernel("adafactor_filters_moment")};
  return kernels;
}

}  // namespace plimsoll::cuda
