#include "training/step_dump.h"

#include <fmt/format.h>

#include <algorithm>

#include "checkpoints/tensor_files.h"
#include "numerics/blocks.h"
#include "ops/loss_scale.h"
#include "training/gradient_sum.h"

namespace plimsoll::training {
namespace {

/// A parameter's view as it is kept; of one in few bits its codes and scales, as bytes.
io::SafetensorsEntry kept_entry(const models::Parameter& parameter, const models::ParameterView& view,
                                std::string name) {
  if (!ir::is_block(parameter.dtype))
    return {std::move(name), checkpoints::safetensors_name(parameter.dtype),
            checkpoints::extents_of(view.file_shape())};
  return {std::move(name), "U8", {ir::TensorType{parameter.dtype, view.shape}.bytes().count}};
}

/// The gradients, f32, of what is trained; or all parameters as they are kept. What is saved with adapters
/// goes by its name there.
size_t add_views(const models::Model& model, const std::string& prefix, bool frozen_too,
                 std::vector<io::SafetensorsEntry>& entries) {
  const size_t first = entries.size();
  for (const auto& parameter : model.parameters())
    for (const auto& view : parameter.views)
      if (parameter.trained || frozen_too) {
        const std::string saved = model.saved_name(view.name);
        const std::string name = prefix + (saved.empty() ? view.name : saved);
        if (frozen_too)
          entries.push_back(kept_entry(parameter, view, name));
        else
          entries.push_back({name, "F32", checkpoints::extents_of(view.file_shape())});
      }
  return first;
}

constexpr std::string_view kAmax = ".amax", kQuantized = "q.", kOperands = "t.";

std::string entry_name(const std::string& state) {
  if (!state.ends_with(kAmax)) return state;
  return state.substr(0, state.size() - kAmax.size()) + ".global_scale";
}

/// What passes keep of operands, "q." those of pass fp8 and "t." those of keep_operands: f32 first, so that
/// each lies at its alignment, by name.
std::vector<const ir::StateDecl*> operand_states(const passes::SessionPlan& session,
                                                 std::string_view prefix) {
  std::vector<const ir::StateDecl*> states;
  for (const int32_t i : session.states_by_name) {
    const ir::StateDecl& decl = session.states[static_cast<size_t>(i)].decl;
    if (decl.state_class == ir::StateClass::kOutput && decl.name.starts_with(prefix)) states.push_back(&decl);
  }
  // clang 14 takes no ranges::stable_partition of libstdc++.
  std::stable_partition(states.begin(), states.end(),
                        [](const auto* s) { return s->type.dtype == ir::DType::kF32; });
  return states;
}

size_t add_operands(const passes::SessionPlan& session, std::string_view prefix,
                    std::vector<io::SafetensorsEntry>& entries) {
  const size_t first = entries.size();
  for (const ir::StateDecl* state : operand_states(session, prefix))
    entries.push_back({entry_name(state->name), checkpoints::safetensors_name(state->type.dtype),
                       checkpoints::extents_of(state->type.shape)});
  return first;
}

Status write_views(const models::Model& model, const runtime::Session& session, io::SafetensorsWriter& writer,
                   size_t index) {
  return checkpoints::for_each_view(
      model, [&](size_t p, const models::ParameterView& view, int64_t first) -> Status {
        const models::Parameter& parameter = model.parameters()[p];
        const int64_t width = ir::bits(parameter.dtype) / 8;
        const bool is_block = ir::is_block(parameter.dtype);  // a storage of its own
        const int64_t bytes = is_block ? ir::TensorType{parameter.dtype, view.shape}.bytes().count
                                       : view.shape.num_elements() * width;
        const size_t tensor = index++;
        const int64_t begin = is_block ? 0 : first * width;
        const checkpoints::ReadStored read = [&](int64_t offset, int64_t count,
                                                 const runtime::TakePiece& take) {
          return session.read_pieces(parameter.name, begin + offset, count, take);
        };
        return checkpoints::read_in_file_order(
            checkpoints::file_order(view), width, bytes, read,
            [&](std::span<const std::byte> piece, int64_t at) { return writer.write(tensor, piece, at); });
      });
}

/// The sum of a gradient's accumulators, scaled, piece by piece through a buffer.
struct Sum {
  const runtime::Session& session;
  const std::vector<std::string>& accumulators;
  float scale;
  std::span<std::byte> scratch;

  Status operator()(int64_t offset, int64_t bytes, const runtime::TakePiece& take) const {
    const auto chunk = static_cast<int64_t>(scratch.size() / 64 * 64);
    for (int64_t begin = 0; begin < bytes; begin += chunk) {
      const auto count = static_cast<size_t>(std::min(chunk, bytes - begin) / 4);
      const std::span sum(reinterpret_cast<float*>(scratch.data()), count);
      PLIMSOLL_TRY(read_sum(session, accumulators, (offset + begin) / 4, sum));
      for (size_t i = 0; scale != 1 && i < count; ++i) sum[i] *= scale;
      PLIMSOLL_TRY(take(std::as_bytes(sum), begin));
    }
    return Ok{};
  }
};

}  // namespace

Result<StepDump> StepDump::create(const settings::RunConfig& config, const strategy::Prepared& prepared,
                                  const passes::SessionPlan& session, int64_t step, bool initial) {
  std::vector<io::SafetensorsEntry> entries;
  std::optional<size_t> loss, logits, gradients, quantized, operands, parameters, buffers;
  if (!initial && config.dumps("loss")) {
    loss = entries.size();
    entries.push_back({"loss", "F32", {1}});
  }
  if (!initial && config.dumps("logits")) {
    logits = entries.size();
    const ir::Shape shape = prepared.task->logits_shape(config.training.global_batch_size);
    entries.push_back({"logits", "F32", checkpoints::extents_of(shape)});
  }
  if (!initial && config.dumps("gradients"))
    gradients = add_views(*prepared.model, "grad.", /*frozen_too=*/false, entries);
  if (!initial && config.dumps("quantized")) quantized = add_operands(session, kQuantized, entries);
  if (!initial && config.dumps("operands")) operands = add_operands(session, kOperands, entries);
  if (config.dumps("parameters"))
    parameters = add_views(*prepared.model, "param.", /*frozen_too=*/true, entries);
  if (!initial && config.dumps("buffers")) {
    buffers = entries.size();
    for (const models::Buffer& buffer : prepared.model->buffers()) {
      entries.push_back(checkpoints::buffer_tensor(buffer).entry);
      entries.back().name = "buffer." + entries.back().name;
    }
  }
  PLIMSOLL_ASSIGN(
      io::SafetensorsWriter writer,
      io::SafetensorsWriter::create(fmt::format("{}/step-{:06}.safetensors", config.debug.dump_dir, step),
                                    std::move(entries)));
  StepDump dump(std::move(writer), prepared);
  dump.loss_ = loss;
  dump.logits_ = logits;
  dump.gradients_ = gradients;
  dump.quantized_ = quantized;
  dump.operands_ = operands;
  dump.parameters_ = parameters;
  dump.buffers_ = buffers;
  return dump;
}

Status StepDump::write_loss(float loss) {
  if (!loss_) return Ok{};
  return writer_.write(*loss_, std::as_bytes(std::span(&loss, 1)));
}

Status StepDump::write_logits(const runtime::Session& session, int64_t micro_batch) {
  if (!logits_) return Ok{};
  const int64_t bytes = session.type(planner::kLogitsState).bytes().count;
  return session.read_pieces(planner::kLogitsState, 0, bytes,
                             [&](std::span<const std::byte> piece, int64_t at) {
                               return writer_.write(*logits_, piece, micro_batch * bytes + at);
                             });
}

Status StepDump::write_gradients(const runtime::Session& session, std::span<std::byte> scratch) {
  if (!gradients_) return Ok{};
  size_t index = *gradients_;
  auto states = prepared_->programs.gradients.begin();  // of trained parameters alone
  const bool scaled = session.plan().find_state(optimizers::kScalerState) != nullptr;
  float scale = 1;
  if (scaled) {
    PLIMSOLL_ASSIGN(scale, session.value<float>(optimizers::kScalerState, ops::kScale));
  }
  const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale));
  return checkpoints::for_each_view(
      *prepared_->model, [&](size_t p, const models::ParameterView& view, int64_t first) -> Status {
        const models::Parameter& parameter = prepared_->model->parameters()[p];
        if (!parameter.trained) return Ok{};
        while (states->parameter != parameter.name) ++states;
        const int64_t offset = first * 4;
        const int64_t bytes = view.shape.num_elements() * 4;
        const Sum sum{session, states->accumulators, scaled ? inverse : 1, scratch};
        const size_t tensor = index++;
        return checkpoints::read_in_file_order(
            checkpoints::file_order(view), 4, bytes,
            [&](int64_t begin, int64_t count, const runtime::TakePiece& take) {
              return sum(offset + begin, count, take);
            },
            [&](std::span<const std::byte> piece, int64_t at) { return writer_.write(tensor, piece, at); });
      });
}

Status StepDump::write_quantized(const runtime::Session& session) {
  if (!quantized_) return Ok{};
  size_t index = *quantized_;
  for (const ir::StateDecl* state : operand_states(session.plan(), kQuantized)) {
    const size_t tensor = index++;
    if (state->name.ends_with(kAmax)) {  // as files of formats have it: the scale that follows from it
      PLIMSOLL_ASSIGN(const float amax, session.value<float>(state->name));
      const float scale = numerics::tensor_scale(numerics::Scheme::kNvfp4, amax).scale;
      PLIMSOLL_TRY(writer_.write(tensor, std::as_bytes(std::span(&scale, 1))));
      continue;
    }
    PLIMSOLL_TRY(session.read_pieces(
        state->name, 0, state->type.bytes().count,
        [&](std::span<const std::byte> piece, int64_t at) { return writer_.write(tensor, piece, at); }));
  }
  return Ok{};
}

Status StepDump::write_operands(const runtime::Session& session) {
  if (!operands_) return Ok{};
  size_t index = *operands_;
  for (const ir::StateDecl* state : operand_states(session.plan(), kOperands)) {
    const size_t tensor = index++;
    PLIMSOLL_TRY(session.read_pieces(
        state->name, 0, state->type.bytes().count,
        [&](std::span<const std::byte> piece, int64_t at) { return writer_.write(tensor, piece, at); }));
  }
  return Ok{};
}

Status StepDump::write_parameters(const runtime::Session& session) {
  if (!parameters_) return Ok{};
  return write_views(*prepared_->model, session, writer_, *parameters_);
}

Status StepDump::write_buffers(const runtime::Session& session) {
  if (!buffers_) return Ok{};
  size_t index = *buffers_;
  for (const models::Buffer& buffer : prepared_->model->buffers()) {
    std::vector<std::byte> bytes(static_cast<size_t>(models::state_of(buffer).type.bytes().count));
    PLIMSOLL_TRY(session.read(buffer.name, bytes));
    PLIMSOLL_TRY(writer_.write(index++, bytes));
  }
  return Ok{};
}

}  // namespace plimsoll::training
