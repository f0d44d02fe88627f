#include "train/master_weights.h"

#include <span>

#include "numerics/convert.h"
#include "optimizers/optimizer.h"
#include "runtime/session.h"
#include "settings/state_formats.h"

namespace plimsoll::train {

bool has_masters(const models::Model& model, const runtime::Session& session) {
  return session.plan().find_state(optimizers::master_name(model.parameters().front().name)) != nullptr;
}

void round_masters(const models::Model& model, const runtime::Session& session, int num_threads) {
  for (const models::Parameter& p : model.parameters()) {
    const auto elements = static_cast<size_t>(p.shape.num_elements());
    const runtime::TensorRef weight = session.state(p.name);
    const std::span<const float> master(session.state(optimizers::master_name(p.name)).as<float>(), elements);
    numerics::encode(state_format(p.dtype).encoding, master, {weight.data, 2 * elements},
                     {.num_threads = num_threads});
  }
}

}  // namespace plimsoll::train
