// Debug dumps, step by step: streamed from the session in pieces, through the run's scratch buffer where
// gradients must be summed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/result.h"
#include "io/safetensors_writer.h"
#include "runtime/session.h"
#include "strategy/prepare.h"

namespace plimsoll::training {

/// One step's dump, `<dir>/step-%06d.safetensors`, complete or not there.
class StepDump {
 public:
  /// Which of loss, gradients, logits, parameters, buffers, quantized, operands are written, as debug.dump
  /// asks; `initial`: parameters alone.
  static Result<StepDump> create(const settings::RunConfig& config, const strategy::Prepared& prepared,
                                 const passes::SessionPlan& session, int64_t step, bool initial);

  /// The effective batch's logits arrive micro-batch by micro-batch, in order. No-op where not asked for.
  Status write_logits(const runtime::Session& session, int64_t micro_batch);
  Status write_loss(float loss);
  /// Sums over the uses of a parameter; before the update or after, accumulators stay until the next step.
  Status write_gradients(const runtime::Session& session, std::span<std::byte> scratch);
  /// Operands of products in FP8 as they entered the product, of the last micro-batch.
  Status write_quantized(const runtime::Session& session);
  /// Operands of linear layers as they entered the product, of the last micro-batch.
  Status write_operands(const runtime::Session& session);
  Status write_parameters(const runtime::Session& session);
  /// As their files have them, by their names there: "buffer.<name>".
  Status write_buffers(const runtime::Session& session);
  Status finish() { return writer_.finish(); }
  [[nodiscard]] bool wants_logits() const { return logits_.has_value(); }

 private:
  StepDump(io::SafetensorsWriter writer, const strategy::Prepared& prepared)
      : writer_(std::move(writer)), prepared_(&prepared) {}
  io::SafetensorsWriter writer_;
  const strategy::Prepared* prepared_;
  /// Index of the first tensor of each kind.
  std::optional<size_t> loss_, logits_, gradients_, quantized_, operands_, parameters_, buffers_;
};

}  // namespace plimsoll::training
