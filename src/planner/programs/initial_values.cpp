#include "planner/programs/initial_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ops/elementwise.h"
#include "ops/pointwise.h"
#include "ops/ranks.h"
#include "ops/shard.h"
#include "ops/structure.h"
#include "optimizers/optimizer.h"

namespace plimsoll::planner {
namespace {

using ir::DType;
using ir::ValueId;

/// Of a state that ranks share each keeps its piece, or the owner all of it.
void assign_kept(ir::Builder& b, ValueId value, const ir::StateDecl& whole, const KeptValues& all) {
  const auto shared = all.shared->find(whole.name);
  if (shared == all.shared->end()) {
    b.graph().declare_state(whole);
    return b.assign(whole.name, value);
  }
  const optimizers::SharedState& state = shared->second;
  const ir::StateDecl decl{state.kept, kept_type(state, all.ranks), whole.state_class};
  if (state.owner >= 0) {
    const ValueId kept = b.state(decl);
    return b.assign(decl.name, ops::put_owned(b, value, kept, all.ranks, state.owner));
  }
  b.graph().declare_state(decl);
  b.assign(decl.name, ops::own_piece(b, value, all.ranks, decl.type.num_elements()));
}

void assign(ir::Builder& b, ValueId value, const models::Parameter& p, const KeptValues& kept) {
  if (ir::is_block(p.dtype)) return;  // beside parts that are whole: it is read, never drawn
  if (kept.masters && p.trained)
    assign_kept(b, value,
                {optimizers::master_name(p.name), {DType::kF32, p.shape}, ir::StateClass::kMasterWeight},
                kept);
  assign_kept(b, ops::cast(b, value, p.dtype), {p.name, {p.dtype, p.shape}, ir::StateClass::kParameter},
              kept);
}

/// Uniform in ±bound: exp(-r^2 / 2) of two normals is uniform in (0, 1].
ValueId uniform(ir::Builder& b, ValueId random, const std::vector<int64_t>& shape, double bound,
                const std::string& name) {
  const auto normal = [&](const char* key) {
    return ops::random_normal(b, random, shape, 0.0, 1.0, ops::random_key(name, key));
  };
  const std::string text =
      fmt::format("t0=exp(mul(-0.5,add(mul(x0,x0),mul(x1,x1))));mul({},sub(mul(2,t0),1))", bound);
  return ops::pointwise(b, text, {normal("init"), normal("init.second")});
}

/// Of all elements, or of one: of models::Init.
double constant_of(const models::Parameter& p) {
  if (p.init == models::Init::kConstant) return p.init_std;
  return p.init == models::Init::kOnes ? 1.0 : 0.0;
}

/// A storage's first values, f32 or of `dtype`.
ValueId first_values(ir::Builder& b, ValueId random, const models::Parameter& p,
                     const std::vector<int64_t>& shape, const std::string& name, DType dtype) {
  switch (p.init) {
    case models::Init::kNormal:
      return ops::random_normal(b, random, shape, 0.0, p.init_std, ops::random_key(name, "init"), dtype);
    case models::Init::kUniform:
      return uniform(b, random, shape, p.init_std, name);
    case models::Init::kOnes:
    case models::Init::kZeros:
    case models::Init::kConstant:
      break;
  }
  return ops::fill(b, shape, constant_of(p));
}

/// A storage, or the parts that it was divided into: drawn as one.
void append_storage(ir::Builder& b, ValueId random, std::span<const models::Parameter> parts,
                    const KeptValues& kept) {
  const models::Parameter& first = parts.front();
  std::vector<int64_t> shape(first.shape.dims().begin(), first.shape.dims().end()), rows;
  for (const models::Parameter& p : parts) rows.push_back(p.shape.dim(0));
  shape[0] = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  const std::string& name = first.part_of.empty() ? first.name : first.part_of;
  // Where no part keeps f32, a table of that size never exists.
  const bool is_kept = std::ranges::all_of(parts, [&](const models::Parameter& p) {
    return (p.dtype == first.dtype || ir::is_block(p.dtype)) && !(kept.masters && p.trained);
  });
  const DType drawn = is_kept ? first.dtype : DType::kF32;
  const ValueId whole = first_values(b, random, first, shape, name, drawn);
  if (parts.size() == 1) return assign(b, whole, first, kept);
  const std::vector<ValueId> values = ops::split_rows(b, whole, rows);
  for (size_t i = 0; i < parts.size(); ++i) assign(b, values[i], parts[i], kept);
}

}  // namespace

void append_initial_values(ir::Builder& b, ValueId random, const models::Model& model, const KeptValues& kept,
                           const std::function<bool(const models::Parameter&)>& drawn) {
  const auto& all = model.parameters();
  for (size_t first = 0, end = 0; first < all.size(); first = end) {
    for (end = first + 1; end < all.size() && !all[first].part_of.empty(); ++end)
      if (all[end].part_of != all[first].part_of) break;
    if (drawn(all[first])) append_storage(b, random, std::span(all).subspan(first, end - first), kept);
  }
}

void append_initial_buffers(ir::Builder& b, const models::Model& model) {
  for (const models::Buffer& buffer : model.buffers()) {
    b.graph().declare_state(models::state_of(buffer));
    if (buffer.is_count) continue;
    const auto dims = buffer.shape.dims();
    b.assign(buffer.name, ops::fill(b, {dims.begin(), dims.end()}, static_cast<double>(buffer.init)));
  }
}

}  // namespace plimsoll::planner
