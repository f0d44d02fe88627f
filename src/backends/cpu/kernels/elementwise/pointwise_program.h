// An expression as steps over tiles: each step reads and writes slots of a few hundred elements, which stay
// in the first-level cache, so that memory is crossed once however long the expression is.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/expression.h"

namespace plimsoll::cpu {

/// Elements of a slot: long enough that a step costs little to begin.
inline constexpr int64_t kTileElements = 512;

/// to = function(args), slots all.
struct PointwiseStep {
  ops::Function function = ops::Function::kInput;  ///< kInput: a copy of args[0]
  std::array<int16_t, 3> args = {0, 0, 0};
  int16_t to = 0;
};

/// Slots: the operands, then the result, then constants, then what lies between the steps.
class PointwiseProgram {
 public:
  PointwiseProgram(const ops::Expression& f, int num_inputs);

  [[nodiscard]] std::span<const PointwiseStep> steps() const { return {steps_.data(), num_steps_}; }
  [[nodiscard]] int num_slots() const { return num_slots_; }
  [[nodiscard]] int result_slot() const { return num_inputs_; }
  /// Constants by slot, from result_slot() + 1 on.
  [[nodiscard]] std::span<const float> constants() const { return {constants_.data(), num_constants_}; }

 private:
  void place_constants(const ops::Expression& f);
  int16_t take_slot();

  std::array<PointwiseStep, ops::Expression::kMaxNodes> steps_;
  std::array<float, ops::Expression::kMaxNodes> constants_;
  std::array<int16_t, ops::Expression::kMaxNodes> slots_{};  ///< by node
  std::array<int16_t, ops::Expression::kMaxNodes> free_{};   ///< slots that may be used again
  size_t num_steps_ = 0, num_constants_ = 0, num_free_ = 0;
  int num_inputs_ = 0, num_slots_ = 0;
};

}  // namespace plimsoll::cpu
