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

Status append_magnitudes(ir::Graph& graph, const Fp8Settings& fp8, const SlotMagnitudes& magnitudes,
                         ir::ValueId scales) {
  ir::Builder b(graph, ops::find_op);
  ir::ValueId history = b.read(ops::kFp8HistoryState);
  for (size_t part = 0;; ++part) {  // an op takes one magnitude a slot
    std::vector<int64_t> slots;
    std::vector<ir::ValueId> amax;
    for (const auto& [slot, values] : magnitudes) {
      if (part >= values.size()) continue;
      slots.push_back(slot);
      amax.push_back(values[part]);
    }
    if (slots.empty() && part > 0) break;
    history = ops::record_amax(b, history, amax, std::move(slots));
  }
  if (fp8.ends_step)
    append_next_scales(b, fp8, history, scales);
  else
    b.assign(ops::kFp8HistoryState, history);
  return b.status();
}

}  // namespace plimsoll::passes
