// Head and loss in chunks of tokens, as the CPU's kernel has them: the logits of one chunk are all that is
// ever there, and turn into their own gradient in place, in 16 bits from the beginning of its row on where
// the products take that.
#include "backends/cuda/kernels/elementwise/copies.h"
#include "backends/cuda/kernels/gemm/matrices.h"
#include "backends/cuda/kernels/loss/loss.h"

namespace plimsoll::cuda {
namespace {

using ir::DType;

/// All that follows from the types.
struct Form {
  Precision precision;
  bool transposed, has_dx, has_dw, adds_dw;
  ops::LossChunks chunks;
  int64_t rows, width, classes;
  DType x, weight, dx = DType::kF32, dw = DType::kF32;

  /// `dx` and `dw` are there where their ops have them.
  Form(std::string_view op, const ir::Attrs& attrs, const ir::TensorType& x_type,
       const ir::TensorType& weight_type, const DType* results, size_t num_results, bool has_acc)
      : precision(precision_of(attrs, x_type.dtype, weight_type.dtype)),
        transposed(attrs.flag("transposed")),
        has_dx(op == "head_loss" && attrs.flag("grad")),
        has_dw(num_results > (has_dx ? 2U : 1U)),
        adds_dw(has_acc),
        chunks(x_type.shape, attrs.i64("chunk_tokens"), has_dw),
        rows(x_type.shape.num_rows()),
        width(x_type.shape.dim(-1)),
        classes(weight_type.shape.dim(transposed ? 1 : 0)),
        x(x_type.dtype),
        weight(weight_type.dtype) {
    if (has_dx) dx = results[1];
    if (has_dw) dw = results[num_results - 1];
  }
  [[nodiscard]] DType d_dtype() const { return ops::stored_dtype(precision); }
  /// Elements from a row of the logits to the next, a multiple of what a thread moves at once; of their
  /// gradient, which lies in their place.
  [[nodiscard]] int64_t stride() const { return round_up(classes, kEach); }
  [[nodiscard]] int64_t d_stride() const { return stride() * 32 / ir::bits(d_dtype()); }
  /// Whether dw needs no f32 beside it: it is that, or a single product's result.
  [[nodiscard]] bool is_dw_direct() const {
    return dw == DType::kF32 || (!adds_dw && chunks.max_rows() >= rows && is_direct(dw, precision));
  }
};

struct HeadScratch {
  std::byte *product, *x, *weight;
  float *logits, *losses, *dw, *dx;
  HeadScratch(Scratch& scratch, const Form& f)
      : product(scratch.take<std::byte>(kProductWorkspace)),
        x(scratch.take<std::byte>(rounded_bytes(f.x, f.chunks.max_rows() * f.width, f.precision))),
        weight(scratch.take<std::byte>(rounded_bytes(f.weight, f.width * f.classes, f.precision))),
        logits(scratch.take<float>(f.chunks.max_rows() * f.stride())),
        losses(scratch.take<float>(f.rows)),
        dw(scratch.take<float>(f.has_dw && !f.is_dw_direct() ? f.width * f.classes : 0)),
        dx(scratch.take<float>(f.has_dx && !is_direct(f.dx, f.precision) ? f.chunks.max_rows() * f.width
                                                                         : 0)) {}
};

int64_t workspace_bytes(const ir::OpTypes& types) {
  DType results[3] = {};
  for (size_t i = 0; i < types.outputs.size(); ++i) results[i] = types.outputs[i].dtype;
  const Form form(types.op, types.attrs, types.inputs[0], types.inputs[1], results, types.outputs.size(),
                  types.has(5));
  Scratch scratch;
  HeadScratch(scratch, form);
  return scratch.bytes();
}

Form head_form(const KernelCall& call) {
  DType results[3] = {};
  for (size_t i = 0; i < call.outputs.size(); ++i) results[i] = call.outputs[i].type.dtype;
  return {call.op->def->name,
          call.op->attrs,
          call.inputs[0].type,
          call.inputs[1].type,
          results,
          call.outputs.size(),
          static_cast<bool>(input_or_none(call, 5))};
}

class HeadLoss {
 public:
  HeadLoss(const KernelCall& call, Stream& stream)
      : call_(call), stream_(stream), form_(head_form(call)), memory_(call), scratch_(memory_, form_) {}

  Status run() {
    PLIMSOLL_ASSIGN(weight_,
                    rounded_for(matrix_of(call_.inputs[1]), form_.precision, scratch_.weight, stream_));
    if (form_.has_dw) PLIMSOLL_TRY(begin_dw());
    for (int64_t begin = 0; begin < form_.rows; begin = form_.chunks.end(begin))
      PLIMSOLL_TRY(chunk(begin, form_.chunks.end(begin) - begin));
    const TensorRef& dw = call_.outputs[call_.outputs.size() - 1];
    if (form_.has_dw && !form_.is_dw_direct())
      PLIMSOLL_TRY(cast_elements(operand(dw_), operand(dw), dw.num_elements(), stream_));
    return sum_losses(scratch_.losses, call_.inputs[0].shape(), input_or_none(call_, 4), call_.outputs[0],
                      stream_);
  }

 private:
  /// acc, where it is given, where dw is summed.
  Status begin_dw() {
    const TensorRef& out = call_.outputs[call_.outputs.size() - 1];
    const Matrix result = matrix_of(out);
    dw_ = form_.is_dw_direct() ? result : f32_matrix(scratch_.dw, result.rows, result.cols);
    dw_started_ = form_.adds_dw;
    if (!form_.adds_dw) return Ok{};
    return cast_elements(operand(call_.inputs[5]), operand(dw_), out.num_elements(), stream_);
  }

  Status chunk(int64_t begin, int64_t rows) {
    PLIMSOLL_ASSIGN(const Matrix x, rounded_for(matrix_of(call_.inputs[0]).from(begin, rows), form_.precision,
                                                scratch_.x, stream_));
    Matrix logits = f32_matrix(scratch_.logits, rows, form_.classes);
    logits.stride = form_.stride();
    PLIMSOLL_TRY(multiply(x, false, weight_, !form_.transposed, logits, false, form_.precision,
                          scratch_.product, stream_));
    PLIMSOLL_TRY(loss_rows(loss_of(begin), rows, stream_));
    const Matrix d{logits.data, form_.d_dtype(), rows, form_.classes, form_.d_stride()};
    if (form_.has_dw) {  // before dx, which may lie where x does
      PLIMSOLL_TRY(multiply(form_.transposed ? x : d, true, form_.transposed ? d : x, false, dw_, dw_started_,
                            form_.precision, scratch_.product, stream_));
      dw_started_ = true;
    }
    return form_.has_dx ? chunk_dx(d, begin, rows) : Status(Ok{});
  }

  Status chunk_dx(const Matrix& d, int64_t begin, int64_t rows) {
    const Matrix result = matrix_of(call_.outputs[1]).from(begin, rows);
    const bool direct = is_direct(form_.dx, form_.precision);
    const Matrix dx = direct ? result : f32_matrix(scratch_.dx, rows, form_.width);
    PLIMSOLL_TRY(
        multiply(d, false, weight_, form_.transposed, dx, false, form_.precision, scratch_.product, stream_));
    if (direct) return Ok{};
    return cast_elements(operand(dx), operand(result), rows * form_.width, stream_);
  }

  [[nodiscard]] LossRows loss_of(int64_t begin) const {
    LossRows loss;
    loss.logits = operand_at(scratch_.logits, DType::kF32);
    if (form_.has_dx || form_.has_dw) loss.d = operand_at(scratch_.logits, form_.d_dtype());
    loss.targets = call_.inputs[2].as<const int32_t>() + begin;
    loss.loss = scratch_.losses + begin;
    loss.scale = call_.inputs[3].as<const float>();
    loss.cols = form_.classes;
    loss.stride = form_.stride();
    loss.d_stride = form_.d_stride();
    loss.tf32 = form_.precision == Precision::kTf32 ? 1 : 0;
    return loss;
  }

  const KernelCall& call_;
  Stream& stream_;
  Form form_;
  Scratch memory_;
  HeadScratch scratch_;
  Matrix weight_, dw_;
  bool dw_started_ = false;
};

Status head_loss(const KernelCall& call, Stream& stream) { return HeadLoss(call, stream).run(); }

}  // namespace

std::span<const Kernel> head_loss_kernels() {
  static constexpr Kernel kernels[] = {
      {.op = "head_loss",
       .run = head_loss,
       .workspace_bytes = workspace_bytes,
       .strided_inputs = 0b11,
       .accepts = accepts_product},
      {.op = "head_loss_dw",
       .run = head_loss,
       .workspace_bytes = workspace_bytes,
       .strided_inputs = 0b11,
       .accepts = accepts_product},
  };
  return kernels;
}

}  // namespace plimsoll::cuda
