// Products of two activations. The conventions are those of ops.h.
#pragma once

#include "ir/builder.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

/// a [..., m, k] times c [..., k, n] -> [..., m, n]; `transpose_a`: a is [..., k, m], `transpose_c`: c is
/// [..., n, k]. The leading axes are stretched to one shape by numpy's rules. Sums over k in granules of 256,
/// in order. Op `batched_matmul`(a, b) {transpose_a, transpose_b, precision?, out?}.
ValueId batched_matmul(Builder& b, ValueId a, ValueId c, bool transpose_a = false, bool transpose_c = false);

}  // namespace plimsoll::ops
