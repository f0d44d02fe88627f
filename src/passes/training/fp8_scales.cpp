#include "passes/training/fp8_scales.h"

#include <vector>

#include "ops/fp8_scaling.h"
#include "ops/op_list.h"
#include "passes/training/sum_over_ranks.h"

namespace plimsoll::passes {

void append_next_scales(ir::Builder& b, const Fp8Settings& fp8, ir::ValueId history, ir::ValueId scales) {
  if (fp8.ranks > 1) history = max_over_ranks(b, history, fp8.ranks);
  const ops::Fp8Scales next = ops::next_fp8_scales(b, history, scales, fp8.delayed, fp8.form.hybrid);
  b.assign(ops::kFp8HistoryState, next.history);
  b.assign(ops::kFp8ScaleState, next.scales);
}

Status append_magnitudes(ir::Graph& graph, const Fp8Settings& fp8,
                         const std::map<int64_t, ir::ValueId>& magnitudes, ir::ValueId scales) {
  ir::Builder b(graph, ops::find_op);
  std::vector<int64_t> slots;
  std::vector<ir::ValueId> amax;
  for (const auto& [slot, value] : magnitudes) {
    slots.push_back(slot);
    amax.push_back(value);
  }
  const ir::ValueId history = ops::record_amax(b, b.read(ops::kFp8HistoryState), amax, std::move(slots));
  if (fp8.ends_step)
    append_next_scales(b, fp8, history, scales);
  else
    b.assign(ops::kFp8HistoryState, history);
  return b.status();
}

}  // namespace plimsoll::passes
