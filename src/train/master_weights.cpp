#include "train/master_weights.h"

#include <span>

#include "numerics/convert.h"
#include "optimizers/optimizer.h"
#include "runtime/session.h"

namespace plimsoll::train {

bool has_masters(const models::Model& model, const runtime::Session& session) {
  return session.plan().find_state(optimizers::master_name(model.parameters().front().name)) != nullptr;
}

const char* weights_dtype(const models::Model& model) {
  const ir::DType dtype = model.parameters().front().dtype;
  return dtype == ir::DType::kBf16 ? "bfloat16" : dtype == ir::DType::kF16 ? "float16" : "float32";
}

numerics::Format weights_encoding(ir::DType dtype) {
  return dtype == ir::DType::kBf16 ? numerics::Format::kBf16 : numerics::Format::kFp16;
}

void round_masters(const models::Model& model, const runtime::Session& session, int num_threads) {
  for (const models::Parameter& p : model.parameters()) {
    const auto elements = static_cast<size_t>(p.shape.num_elements());
    const runtime::TensorRef weight = session.state(p.name);
    const std::span<const float> master(session.state(optimizers::master_name(p.name)).as<float>(), elements);
    numerics::encode(weights_encoding(p.dtype), master, {weight.data, 2 * elements},
                     {.num_threads = num_threads});
  }
}

}  // namespace plimsoll::train
