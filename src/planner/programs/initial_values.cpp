#include "planner/programs/initial_values.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ops/elementwise.h"
#include "ops/structure.h"
#include "optimizers/optimizer.h"

namespace plimsoll::planner {
namespace {

using ir::DType;
using ir::ValueId;

void assign(ir::Builder& b, ValueId value, const models::Parameter& p, bool masters) {
  if (ir::is_block(p.dtype)) return;  // beside parts that are whole: it is read, never drawn
  if (masters && p.trained) {
    const std::string master = optimizers::master_name(p.name);
    b.graph().declare_state({master, {DType::kF32, p.shape}, ir::StateClass::kMasterWeight});
    b.assign(master, value);
  }
  value = ops::cast(b, value, p.dtype);
  b.graph().declare_state({p.name, {p.dtype, p.shape}, ir::StateClass::kParameter});
  b.assign(p.name, value);
}

/// A storage, or the parts that it was divided into: drawn as one.
void append_storage(ir::Builder& b, ValueId random, std::span<const models::Parameter> parts, bool masters) {
  const models::Parameter& first = parts.front();
  std::vector<int64_t> shape(first.shape.dims().begin(), first.shape.dims().end()), rows;
  for (const models::Parameter& p : parts) rows.push_back(p.shape.dim(0));
  shape[0] = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  const std::string& name = first.part_of.empty() ? first.name : first.part_of;
  // Where no part keeps f32, a table of that size never exists.
  const bool is_kept = std::ranges::all_of(parts, [&](const models::Parameter& p) {
    return (p.dtype == first.dtype || ir::is_block(p.dtype)) && !(masters && p.trained);
  });
  const DType drawn = is_kept ? first.dtype : DType::kF32;
  const ValueId whole =
      first.init == models::Init::kNormal
          ? ops::random_normal(b, random, shape, 0.0, first.init_std, ops::random_key(name, "init"), drawn)
          : ops::fill(b, shape, first.init == models::Init::kOnes ? 1.0 : 0.0);
  if (parts.size() == 1) return assign(b, whole, first, masters);
  const std::vector<ValueId> values = ops::split_rows(b, whole, rows);
  for (size_t i = 0; i < parts.size(); ++i) assign(b, values[i], parts[i], masters);
}

}  // namespace

void append_initial_values(ir::Builder& b, ValueId random, const models::Model& model, bool masters,
                           const std::function<bool(const models::Parameter&)>& drawn) {
  const auto& all = model.parameters();
  for (size_t first = 0, end = 0; first < all.size(); first = end) {
    for (end = first + 1; end < all.size() && !all[first].part_of.empty(); ++end)
      if (all[end].part_of != all[first].part_of) break;
    if (drawn(all[first])) append_storage(b, random, std::span(all).subspan(first, end - first), masters);
  }
}

}  // namespace plimsoll::planner
