#include "checkpoints/quantized_start.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "checkpoints/adapter_change.h"
#include "checkpoints/parameter_rows.h"
#include "checkpoints/quantize_weights.h"
#include "ops/block_values.h"
#include "runtime/session.h"

namespace plimsoll::checkpoints {
namespace {

std::vector<std::byte> rounded(const ir::TensorType& type, std::span<const float> values) {
  const int64_t blocks = ceil_div(type.num_elements(), ops::quantized_block(type));
  std::vector<std::byte> storage(static_cast<size_t>(type.bytes().count));
  std::vector<float> scales(static_cast<size_t>(blocks));
  const auto code_bytes =
      static_cast<size_t>(ceil_div(type.num_elements() * ir::bits(type.dtype), int64_t{8}));
  ops::quantize(type, values, std::span(storage).first(code_bytes), scales);
  const std::vector<std::byte> behind = ops::stored_scales(type, scales);
  std::memcpy(storage.data() + ops::scales_offset(type), behind.data(), behind.size());
  return storage;
}

/// In the way that the matrix lies to [outs, in], or from there.
Values turned(Values w, const QuantizedStartOptions& o, bool back) {
  if (!o.transposed) return w;
  const auto outs = static_cast<size_t>(o.shape.outs), in = static_cast<size_t>(o.shape.in);
  return back ? transpose(w, outs, in) : transpose(w, in, outs);
}

QuantizedStart start_by_loftq(const Values& w, const QuantizedStartOptions& o) {
  QuantizedStart start;
  Values x = w;
  for (int64_t i = 0; i < o.iterations; ++i) {
    if (i > 0) {
      x = w;
      subtract_factors(start.factors, o.shape, x);
    }
    x = turned(std::move(x), o, /*back=*/true);
    start.storage = rounded(o.type, x);
    ops::dequantize(o.type, start.storage.data(), 0, std::span(x));
    x = turned(std::move(x), o, /*back=*/false);
    for (size_t k = 0; k < x.size(); ++k) x[k] = w[k] - x[k];
    start.factors = low_rank_factors(x, o.shape, models::Factors::kSvd);
  }
  return start;
}

}  // namespace

QuantizedStart start_quantized(Values w, const QuantizedStartOptions& o) {
  w = turned(std::move(w), o, /*back=*/false);
  if (o.factors == models::Factors::kLoftq) return start_by_loftq(w, o);
  QuantizedStart start{{}, low_rank_factors(w, o.shape, o.factors)};
  subtract_factors(start.factors, o.shape, w);
  start.storage = rounded(o.type, turned(std::move(w), o, /*back=*/true));
  return start;
}

bool starts_quantized(const models::Model& model, const WeightSource& source) {
  return model.adapters() && model.adapters()->factors != models::Factors::kNone && !source.quantized &&
         ir::is_block(source.parameter->dtype) &&
         adapter_part(model, *source.parameter, *source.view) != nullptr;
}

Status load_quantized_start(const models::Model& model, const WeightSource& source,
                            runtime::Session& session) {
  const models::Adapter::Part& part = *adapter_part(model, *source.parameter, *source.view);
  const std::string& name = source.view->name;
  const std::string module = name.substr(0, name.rfind('.'));
  PLIMSOLL_ASSIGN(Values w, read_finite(source, session.type(source.parameter->name)));
  const auto in = static_cast<int64_t>(w.size()) / part.out;
  const QuantizedStart start =
      start_quantized(std::move(w), {.type = session.type(source.parameter->name),
                                     .transposed = source.parameter->transposed,
                                     .shape = {part.out, in, part.rank, part.scale},
                                     .factors = model.adapters()->factors,
                                     .iterations = model.adapters()->loftq.iterations});
  PLIMSOLL_TRY(session.write(source.parameter->name, start.storage, 0));
  PLIMSOLL_TRY(write_parameter_rows(model, session, module + ".lora_A.weight", start.factors.right));
  return write_parameter_rows(model, session, part.b, start.factors.left);
}

}  // namespace plimsoll::checkpoints
