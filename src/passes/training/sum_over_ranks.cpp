#include "passes/training/sum_over_ranks.h"

#include <fmt/format.h>

#include <string>

#include "ir/op_def.h"
#include "ops/pointwise.h"
#include "ops/ranks.h"
#include "ops/reduce.h"
#include "ops/shard.h"
#include "ops/structure.h"

namespace plimsoll::passes {
namespace {

bool has_a_piece_for_each(const ir::TensorType& type, int64_t ranks) {
  return type.num_elements() >= ranks * ops::kPieceGrain;
}

/// Accumulators of 16 bits are added in f32, and the sum is rounded once.
ir::ValueId summed(ir::Builder& b, ir::ValueId gradient, int64_t ranks, bool as_piece) {
  const ir::DType dtype = b.type(gradient).dtype;
  const auto to = [&](ir::ValueId x, ir::DType wanted) {
    return dtype == ir::DType::kF32 ? x : ops::cast(b, x, wanted);
  };
  const ir::ValueId sent = to(gradient, ir::DType::kF32);
  if (!as_piece && !has_a_piece_for_each(b.type(gradient), ranks))
    return to(ops::sum_ranks(b, ops::gather_ranks(b, sent, ranks)), dtype);
  const ir::ValueId piece = to(ops::sum_ranks(b, ops::exchange(b, sent, ranks)), dtype);
  return as_piece ? ops::put_piece(b, piece, gradient, ranks) : ops::all_gather(b, piece, gradient, ranks);
}

}  // namespace

std::vector<ir::ValueId> sum_over_ranks(ir::Builder& b, const std::vector<ir::ValueId>& gradients,
                                        int64_t ranks, const std::vector<bool>& pieces) {
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  std::vector<ir::ValueId> sums;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ir::ValueId gradient = gradients[i];
    const ir::Op& producer = b.graph().op(b.graph().value(gradient).producer);
    const std::string state =
        producer.def->state == ir::StateAccess::kRead ? producer.attrs.str("name") : std::string();
    sums.push_back(summed(b, gradient, ranks, !pieces.empty() && pieces[i]));
    if (!state.empty()) b.assign(state, sums.back());
  }
  return sums;
}

void sum_state_over_ranks(ir::Builder& b, std::string_view state, int64_t ranks) {
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  b.assign(state, ops::sum_ranks(b, ops::gather_ranks(b, b.read(state), ranks)));
}

ir::ValueId max_over_ranks(ir::Builder& b, ir::ValueId x, int64_t ranks) {
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  if (!has_a_piece_for_each(b.type(x), 2))
    return ops::reduce(b, ops::Reduce::kMax, ops::gather_ranks(b, x, ranks), {0}, false);
  const ir::ValueId piece = ops::reduce(b, ops::Reduce::kMax, ops::exchange(b, x, ranks), {0}, false);
  return ops::all_gather(b, piece, x, ranks);
}

ir::ValueId average_state_over_ranks(ir::Builder& b, std::string_view state, int64_t ranks) {
  const auto scope = b.block(ir::kUpdateBlock, "ranks");
  const ir::ValueId sum = ops::sum_ranks(b, ops::gather_ranks(b, b.read(state), ranks));
  const ir::ValueId mean = ops::pointwise(b, fmt::format("div(x0,{})", ranks), {sum});
  b.assign(state, mean);
  return mean;
}

}  // namespace plimsoll::passes
