// Initialises adapters from the base weights: DoRA's magnitudes, the rows of tokens that learn, the
// factors that PiSSA and OLoRA take from the base.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "models/model.h"
#include "numerics/low_rank.h"

namespace plimsoll::runtime {
class Communicator;
class Session;
}  // namespace plimsoll::runtime

namespace plimsoll::checkpoints {

struct AdapterStart {
  /// Of ranks that share the parameters, which all start adapters at the same place. Null: this rank has all
  /// parameters.
  runtime::Communicator* ranks = nullptr;
  /// The adapter's own tensors are there already: the base alone loses what they once took from it.
  bool base_only = false;
};

/// Behind the base's weights and what is drawn, before an adapter's own tensors. Magnitudes become the norms
/// of the rows of W + s B A; rows their tokens' rows of the table; with factors A and B become these and W
/// loses s B A, rounded once to the dtype that it is kept in; what is kept in few bits had that while it was
/// loaded. Memory: start_adapters_bytes(), gone behind it.
/// Errors: kInvalidArgument for a base that is kept in other than f32, bf16, f16 or few bits; of the device;
/// of the communicator.
Status start_adapters(const models::Model& model, runtime::Session& session, const AdapterStart& how = {});

/// The adapter beside a linear map of the base; null: it has none.
const models::Adapter::Part* adapter_part(const models::Model& model, const models::Parameter& parameter,
                                          const models::ParameterView& view);

/// Host memory that it takes, or loading what is kept in few bits (quantized_start.h): with factors a matrix
/// twice, what it is decomposed through, the factors, and its codes; with magnitudes beside codes these. Of
/// ranks that share the parameters also a storage that they gather, and the piece of it.
int64_t start_adapters_bytes(const models::Model& model, int64_t sharing_ranks = 1);

struct AdaptedShape {
  int64_t outs = 0, in = 0, rank = 0;
  double scale = 1;
};
/// B (left) and A (right) that `kind` takes from W [outs, in].
numerics::LowRankFactors low_rank_factors(std::span<const float> w, const AdaptedShape& shape,
                                          models::Factors kind);
/// W - scale B A, each element rounded once.
void subtract_factors(const numerics::LowRankFactors& f, const AdaptedShape& shape, std::span<float> w);

}  // namespace plimsoll::checkpoints
