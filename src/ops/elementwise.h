// Elementwise ops, activations and what draws random numbers. The conventions are those of ops.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "ops/gelu.h"

namespace plimsoll::ops {

using ir::Builder;
using ir::ValueId;

// ---- elementwise (elementwise.cpp); f32, results may take the place of an operand

/// a + b, same shapes. Op `add`.
ValueId add(Builder& b, ValueId x, ValueId y);
/// a * b, same shapes. Op `mul`.
ValueId mul(Builder& b, ValueId x, ValueId y);
/// x * s, s a run-time scalar f32[1]. Op `scale`.
ValueId scale(Builder& b, ValueId x, ValueId s);
/// x + bias, bias [last axis]. Op `bias_add`.
ValueId bias_add(Builder& b, ValueId x, ValueId bias);
/// silu(x) = x * s, s = sigmoid(x). Op `silu`; `silu_grad`(dy, x) = dy * (s * (1 + x * (1 - s))).
ValueId silu(Builder& b, ValueId x);
/// One of the forms of gelu.h. Op `gelu` {approximate}; `gelu_grad`(dy, x) {approximate}.
ValueId gelu(Builder& b, ValueId x, Gelu form);

// ---- fused activations (activation.cpp); the same bits as what they replace

/// gate_up [..., 2F], gate first -> silu(gate) * up [..., F]. Shazeer 2020, arXiv:2002.05202.
/// Op `swiglu`; `swiglu_grad`(dy, gate_up) -> d_gate_up: d_gate = silu_grad(dy * up, gate), d_up = dy *
/// silu(gate).
ValueId swiglu(Builder& b, ValueId gate_up);
/// gelu(x + bias). Op `bias_gelu` {approximate}; `bias_gelu_grad`(dy, x, bias) -> d(x + bias).
ValueId bias_gelu(Builder& b, ValueId x, ValueId bias, Gelu form);

// ---- random (random.cpp): Philox-4x32-10 (Salmon et al. 2011), keyed so that a batch split otherwise, or a
// recomputation, draws the same numbers. `random` is the step's i32[4]: seed low, seed high, step, index in
// the effective batch of the first sequence of this micro-batch. Counter: (element of the sequence / 4,
// sequence, step, key), key word: seed.

/// x [B, ...]: zero with probability p, else x / (1 - p). Op `dropout`(x, random) {p, key}; its own
/// derivative.
ValueId dropout(Builder& b, ValueId x, ValueId random, double p, int64_t key);
/// Independent normals, Box-Muller on pairs; sequence and step are 0 here, so a value depends on (seed, key,
/// element) alone; another dtype rounds what f32 gives. Op `random_normal`(random) {shape, mean, std, key,
/// out?}.
ValueId random_normal(Builder& b, ValueId random, std::vector<int64_t> shape, double mean, double std,
                      int64_t key, ir::DType dtype = ir::DType::kF32);
/// A key for a named op of a layer: FNV-1a of "layer/name", 63 bits... of which the generator uses 32.
int64_t random_key(std::string_view layer, std::string_view name);

}  // namespace plimsoll::ops
