// Codes and scales of an operand: a scale of the tensor wants the largest magnitude first, and so another
// walk.
#include "backends/cuda/kernels/gemm/quantize_operand_args.h"
#include "backends/cuda/kernels/gemm/scaled_codes.h"
#include "backends/cuda/kernels/norm/row_strides.h"
#include "backends/cuda/kernels/operands.h"
#include "numerics/fp8_recipes.h"
#include "ops/scaled_operand.h"

namespace plimsoll::cuda {
namespace {

using numerics::Scheme;

constexpr uint32_t kRunThreads = 32 * kRunWarps;
static_assert(numerics::kHadamardRun == 16, "two lanes of eight elements");

/// What is launched for an operand, from its types.
struct QuantizeForm {
  numerics::OperandForm form;
  bool transposed;
  int64_t rows, cols;  ///< of the quantised matrix

  explicit QuantizeForm(const ir::Attrs& attrs, const ir::Shape& x)
      : form(ops::form_of(attrs)), transposed(attrs.flag("transposed")) {
    const ir::Shape matrix = ops::quantized_matrix(x, transposed);
    rows = matrix.num_rows();
    cols = matrix.dim(-1);
  }
  [[nodiscard]] const numerics::SchemeInfo& scheme() const { return numerics::info(form.scheme); }
  [[nodiscard]] bool has_tiles() const { return scheme().block_rows > 1; }
  /// Of the walk for the largest magnitude: which way it goes matters to the transform alone.
  [[nodiscard]] bool amax_is_turned() const { return transposed && form.hadamard; }
  [[nodiscard]] int64_t amax_blocks() const {
    if (!scheme().has_tensor_scale) return 0;
    const bool as_it_lies = transposed && !amax_is_turned();
    return walk(as_it_lies ? cols : rows, as_it_lies ? rows : cols, amax_is_turned()).x;
  }
  [[nodiscard]] static Dim walk(int64_t rows, int64_t cols, bool turned) {
    if (turned)
      return blocks(ceil_div(rows, int64_t{kTurnedColumns}) * ceil_div(cols, int64_t{kRunElements}), 1);
    return blocks(rows * ceil_div(cols, int64_t{kRunElements}), kRunWarps);
  }
  [[nodiscard]] Dim code_blocks() const {
    if (!has_tiles()) return walk(rows, cols, transposed);
    return blocks(ceil_div(rows, scheme().block_rows) * ceil_div(cols, int64_t{kTileColumns}), 1);
  }
};

struct QuantizeScratch {
  u32* largest;
  DeviceTensorScale* tensor;
  QuantizeScratch(Scratch& scratch, const QuantizeForm& form)
      : largest(scratch.take<u32>(form.amax_blocks())),
        tensor(scratch.take<DeviceTensorScale>(form.scheme().has_tensor_scale ? 1 : 0)) {}
};

int64_t quantize_operand_bytes(const ir::OpTypes& types) {
  Scratch scratch;
  QuantizeScratch(scratch, QuantizeForm(types.attrs, types.inputs[0].shape));
  return scratch.bytes();
}

OperandSource source_of(const KernelCall& call, const QuantizeForm& form) {
  const TensorRef& x = call.inputs[0];
  return {.x = operand(x),
          .strides = row_strides(x),
          .rows = form.rows,
          .cols = form.cols,
          .transposed = form.transposed ? 1 : 0,
          .rounded = x.type.dtype == ir::DType::kF32 && call.op->attrs.find("precision") != nullptr ? 1 : 0,
          .hadamard = form.form.hadamard ? 1 : 0};
}

/// The tensor's amax and scale; results 1, where it is the scale of all codes, and 2.
Status make_tensor_scale(const KernelCall& call, const QuantizeForm& form, const QuantizeScratch& scratch,
                         Stream& stream) {
  OperandAmax amax{.source = source_of(call, form), .largest = scratch.largest};
  const bool turned = form.amax_is_turned();
  if (form.transposed && !turned) {
    std::swap(amax.source.rows, amax.source.cols);
    amax.source.transposed = 0;
  }
  const auto count = static_cast<uint32_t>(form.amax_blocks());
  PLIMSOLL_TRY(stream.launch(turned ? kOperandAmaxTurned : kOperandAmax, {count}, {kRunThreads}, 0, amax));
  const TensorRef given = input_or_none(call, 1);
  const bool is_of_tensor = form.scheme().block_rows == 0;
  OperandScale scale;
  scale.largest = scratch.largest;
  scale.n = count;
  scale.largest_code =
      is_of_tensor ? static_cast<float>(numerics::info(form.scheme().codes).max) : 448.0F * 6.0F;
  if (given) scale.given = given.as<const float>() + call.op->attrs.i64("slot");
  scale.amax = call.outputs[2].as<float>();
  if (is_of_tensor) scale.decode = call.outputs[1].as<float>();
  scale.tensor = scratch.tensor;
  return stream.launch(kOperandScale, {1}, {kRunThreads}, 0, scale);
}

Status quantize_operand(const KernelCall& call, Stream& stream) {
  const QuantizeForm form(call.op->attrs, call.inputs[0].shape());
  Scratch memory(call);
  const QuantizeScratch scratch(memory, form);
  QuantizeOperand a;
  a.source = source_of(call, form);
  a.scheme = code_scheme(form.form.scheme);
  a.codes = call.outputs[0].as<unsigned char>();
  a.scales = call.outputs[1].data;
  if (form.scheme().has_tensor_scale) {
    PLIMSOLL_TRY(make_tensor_scale(call, form, scratch, stream));
    a.tensor = scratch.tensor;
  }
  if (form.form.stochastic) {
    a.random = call.inputs[2].as<const uint32_t>();
    a.key = static_cast<uint32_t>(call.op->attrs.i64("key"));
    a.tokens = Granules(call.inputs[0].shape()).segment();
  }
  const auto& kernel = form.scheme().block_rows == 128  ? kQuantizeTiles128
                       : form.scheme().block_rows == 16 ? kQuantizeTiles16
                       : form.transposed                ? kQuantizeTurned
                                                        : kQuantizeRuns;
  return stream.launch(kernel, form.code_blocks(), {kRunThreads}, 0, a);
}

}  // namespace

std::span<const Kernel> quantize_operand_kernels() {
  static constexpr Kernel kernels[] = {{.op = "quantize_operand",
                                        .run = quantize_operand,
                                        .workspace_bytes = quantize_operand_bytes,
                                        .strided_inputs = 0b1}};
  return kernels;
}

}  // namespace plimsoll::cuda
