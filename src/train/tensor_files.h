// What a session holds as the tensors of safetensors files: debug dumps step by step, and the lists that
// checkpoints and the final model directory are written and read by. Everything is streamed from the session
// in pieces, through the run's scratch buffer where gradients must be summed.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/safetensors_writer.h"
#include "runtime/state_range.h"
#include "train/prepare.h"

namespace plimsoll::runtime {
class Session;
}

namespace plimsoll::train {

/// A tensor of a file and the part of a state that it is written from or read to.
struct StoredTensor {
  SafetensorsEntry entry;
  runtime::StateRange range;
};
/// The parameters by the checkpoint's names, in the model's order.
std::vector<StoredTensor> parameter_tensors(const models::Model& model, const passes::SessionPlan& session);
/// The dtype's name in a safetensors file, "BF16"; block types are bytes there: "U8".
std::string safetensors_name(ir::DType dtype);
/// Whether a state is saved beside the model: masters, the optimizer's states, the loss scale.
bool is_optimizer_tensor(const ir::StateDecl& decl);
/// The masters, the optimizer's states and the loss scale: one that belongs to a parameter and has its shape
/// is cut as the parameter is, `master.lm_head.weight`, `adamw.m.model.layers.0.self_attn.q_proj.weight`; any
/// other is stored whole under its own name.
std::vector<StoredTensor> optimizer_tensors(const models::Model& model, const passes::SessionPlan& session);

/// One step's dump, `<dir>/step-%06d.safetensors`, complete or not there.
class StepDump {
 public:
  /// Which of loss, gradients, logits, parameters are written, as debug.dump asks; `initial`: parameters
  /// alone.
  static Result<StepDump> create(const RunConfig& config, const Prepared& prepared, int64_t step,
                                 bool initial);

  /// The effective batch's logits arrive micro-batch by micro-batch, in order. No-op where not asked for.
  Status write_logits(const runtime::Session& session, int64_t micro_batch);
  Status write_loss(float loss);
  /// Sums over the uses of a parameter; before the update or after, accumulators stay until the next step.
  Status write_gradients(const runtime::Session& session, std::span<std::byte> scratch);
  Status write_parameters(const runtime::Session& session);
  Status finish() { return writer_.finish(); }
  [[nodiscard]] bool wants_logits() const { return logits_.has_value(); }

 private:
  StepDump(SafetensorsWriter writer, const Prepared& prepared)
      : writer_(std::move(writer)), prepared_(&prepared) {}
  SafetensorsWriter writer_;
  const Prepared* prepared_;
  std::optional<size_t> loss_, logits_, gradients_, parameters_;  ///< index of the first tensor of each kind
};

}  // namespace plimsoll::train
