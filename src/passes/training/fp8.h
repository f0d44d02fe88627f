// Gives products that autocast has marked quantised operands, each in the form that the recipe has for it
// (numerics/fp8_recipes.h), forward and backward.
//
//   linear(x, w) {fp8}                 x ─► quantize_operand ─┐
//   linear(dy, w) {fp8}         ==>    w ─► quantize_operand ─┴► scaled_matmul
//   linear_dw(x, dy) {fp8}
//
// Behind autodiff, so that the derivative of rounding is the identity. The input's copies are made in
// forward, and backward holds those alone; a weight's copy is made again for the input's gradient, since it
// would lie through all of backward otherwise. With `delayed` the largest magnitudes of the first copies go
// into the history's first row at the program's end (ops/fp8_scaling.h); recomputed ones record nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/fp8_recipes.h"
#include "passes/rewriter.h"

namespace plimsoll::passes {

/// What runs in FP8, and how.
struct Fp8Settings {
  bool enabled = false;         ///< the linear layers of blocks; overrides may mark others
  double keep_last_layers = 0;  ///< the share of the model's blocks, its last ones, that stay in bf16
  numerics::Fp8Options form = {};
  numerics::DelayedScaling delayed = {};
  int64_t history_len = 1024;
  int64_t ranks = 1;              ///< that move on by the largest magnitudes of all of them
  bool ends_step = false;         ///< the program moves on the scales of `delayed`
  std::string random_state = {};  ///< what stochastic rounding draws from
  /// Codes and scales of the operands of programs with backward are kept in states of class kOutput,
  /// "q.<module>.<x|w|dy>.values", ".scales" and of nvfp4 ".amax"; x_t: the copy that is turned.
  bool dumps = false;
  /// What the device computes a scaled_matmul of those types in, for the report; empty: it is not known.
  std::function<std::string_view(const ir::OpTypes&)> computed_in = {};
  /// Backward reads the inputs of norms and activations from copies in FP8 (fp8_activations.h).
  bool quantised_activations = false;
  bool dumps_operands = false;  ///< see keep_operands.h; in any precision
};

struct Fp8PassOptions {
  std::span<const ir::ValueId> keep = {};
  Fp8Settings fp8 = {};
  ir::OpId last_forward_op = {};  ///< invalid: all of the program is forward
};

/// One product, for people.
struct Fp8Product {
  std::string layer = {}, product = {};  ///< "y", "dx", "dw"
  std::string left = {}, right = {};     ///< schemes of its operands; empty where it stays in bf16
  std::string computed_in = {};          ///< "fp8", "fp4", "bf16"; empty: it is not known
  std::string note = {};                 ///< what padding, transforms and rounding it has, or why it stays
  int32_t block = ir::kNoBlock;
};
struct Fp8Report {
  Replaced replaced = {};
  std::vector<Fp8Product> products = {};
  int64_t slots = 0;  ///< of delayed scaling; 0: another recipe
};

/// Whether the op is a linear layer of the model's own weights or a gradient of one: adapters are small, and
/// weights in few bits have their own form.
bool takes_fp8(const ir::Graph& graph, const ir::Op& op);

/// Linear time. Programs without marked ops stay as they are.
Result<Fp8Report> fp8(ir::Graph& graph, const Fp8PassOptions& options);

}  // namespace plimsoll::passes
