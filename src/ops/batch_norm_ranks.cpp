#include "ops/batch_norm_ranks.h"

#include <fmt/format.h>

#include "ops/pointwise.h"
#include "ops/ranks.h"

namespace plimsoll::ops {

BatchStatistics over_ranks(Builder& b, const BatchStatistics& own, int64_t ranks) {
  const ValueId means = gather_ranks(b, own.mean, ranks), variances = gather_ranks(b, own.variance, ranks);
  const std::string of_ranks = fmt::format("div(x0,{})", ranks);
  const ValueId mean = pointwise(b, of_ranks, {sum_ranks(b, means)});
  const ValueId spread = pointwise(b, "add(x0,mul(sub(x1,x2),sub(x1,x2)))", {variances, means, mean});
  return {mean, pointwise(b, of_ranks, {sum_ranks(b, spread)})};
}

ValueId through_ranks(Builder& b, const ir::Op& norm, ValueId given, ValueId dw, ValueId db) {
  const int64_t ranks = norm.attrs.i64("ranks");
  const ValueId x = norm.inputs[0];
  const ValueId all_dw = sum_ranks(b, gather_ranks(b, dw, ranks));
  const ValueId all_db = sum_ranks(b, gather_ranks(b, db, ranks));
  const std::string rstd = fmt::format("rsqrt(add(x3,{}))", norm.attrs.f64("eps"));
  const std::string sums = fmt::format("add(x5,mul(mul(sub(x1,x2),{}),x6))", rstd);
  const int64_t rows = ranks * b.type(x).shape.num_rows();
  return b.op("pointwise", {given, x, norm.inputs[1], norm.inputs[2], norm.inputs[3], all_db, all_dw},
              {{"expr", fmt::format("sub(x0,mul(mul(x4,{}),div({},{})))", rstd, sums, rows)},
               {"out", std::string(ir::name(b.type(given).dtype))}});
}

}  // namespace plimsoll::ops
