// Maps the states of a session to the tensors of safetensors files: debug dumps step by step, and the lists
// that checkpoints and the final model directory are written and read by. Everything is streamed from the
// session in pieces, through the run's scratch buffer where gradients must be summed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoints/file_order.h"
#include "io/safetensors_writer.h"
#include "models/model.h"
#include "passes/session_plan.h"
#include "runtime/state_range.h"

namespace plimsoll::checkpoints {

/// A tensor of a file and the part of a state that it is written from or read to.
struct StoredTensor {
  io::SafetensorsEntry entry;
  runtime::StateRange range;
  FileOrder order = {};  ///< of its elements in the file
};
/// The parameters by the checkpoint's names, in the model's order, and behind them the buffers; of a model
/// with adapters, what learns, by the names of PEFT's file.
std::vector<StoredTensor> parameter_tensors(const models::Model& model, const passes::SessionPlan& session);
/// The file of a checkpoint that they stand in: model.safetensors, adapter_model.safetensors.
std::string weights_file(const models::Model& model);
/// A buffer as its file has it: f32, a count as an I64 scalar.
StoredTensor buffer_tensor(const models::Buffer& buffer);
/// The dtype's name in a safetensors file, "BF16"; block types are bytes there: "U8".
std::string safetensors_name(ir::DType dtype);
/// Whether a state is saved beside the model: masters, the optimizer's states, the loss scale.
bool is_optimizer_tensor(const ir::StateDecl& decl);
/// The masters, the optimizer's states and the loss scale: one that belongs to a parameter and follows its
/// rows or its views is cut as the parameter is, `master.lm_head.weight`,
/// `adamw.m.model.layers.0.self_attn.q_proj.weight`; any other is stored whole under its own name.
std::vector<StoredTensor> optimizer_tensors(const models::Model& model, const passes::SessionPlan& session);

/// The safetensors file of these tensors, as transformers marks its own. Errors: as
/// SafetensorsLayout::create.
Result<io::SafetensorsLayout> layout_of(const std::vector<StoredTensor>& tensors);

/// Calls visit(index of the parameter, view, the view's first element in the parameter's storage) in the
/// model's order, until an error.
Status for_each_view(
    const models::Model& model,
    const std::function<Status(size_t parameter, const models::ParameterView& view, int64_t first)>& visit);
/// The extents of a shape, as files have them.
std::vector<int64_t> extents_of(const ir::Shape& shape);

}  // namespace plimsoll::checkpoints
