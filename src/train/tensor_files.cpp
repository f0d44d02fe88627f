#include "train/tensor_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/session.h"
#include "train/master_weights.h"

namespace plimsoll::train {
namespace {

std::vector<int64_t> extents(const ir::Shape& shape) {
  const auto dims = shape.dims();
  return {dims.begin(), dims.end()};
}

/// Calls visit(parameter, view, the view's first element in the parameter's storage) in the model's order.
template <typename F>
Status for_each_view(const models::Model& model, F&& visit) {
  for (size_t p = 0; p < model.parameters().size(); ++p) {
    const models::Parameter& parameter = model.parameters()[p];
    const int64_t row = parameter.shape.num_elements() / parameter.shape.dim(0);
    for (const models::ParameterView& view : parameter.views) PLIMSOLL_TRY(visit(p, view, view.row * row));
  }
  return Ok{};
}

size_t add_views(const models::Model& model, const std::string& prefix, const std::string& dtype,
                 std::vector<SafetensorsEntry>& entries) {
  const size_t first = entries.size();
  for (const auto& parameter : model.parameters())
    for (const auto& view : parameter.views)
      entries.push_back({prefix + view.name, dtype, extents(view.shape)});
  return first;
}

Status write_views(const models::Model& model, const runtime::Session& session, SafetensorsWriter& writer,
                   size_t index) {
  return for_each_view(model, [&](size_t p, const models::ParameterView& view, int64_t first) -> Status {
    const models::Parameter& parameter = model.parameters()[p];
    const int64_t bytes = ir::bits(parameter.dtype) / 8;
    const size_t tensor = index++;
    return session.read_pieces(
        parameter.name, first * bytes, view.shape.num_elements() * bytes,
        [&](std::span<const std::byte> piece, int64_t at) { return writer.write(tensor, piece, at); });
  });
}

/// A state that no parameter's views divide: whole, a block type as its bytes.
StoredTensor whole(const ir::StateDecl& decl) {
  const int64_t bytes = decl.type.bytes().count;
  const std::string dtype = safetensors_name(decl.type.dtype);
  const bool plain = bytes == decl.type.num_elements() * safetensors_dtype_bytes(dtype);
  const std::vector<int64_t> shape = plain ? extents(decl.type.shape) : std::vector{bytes};
  return {{decl.name, plain ? dtype : "U8", shape}, {decl.name, 0, bytes}};
}

void add_cut(const models::Parameter& parameter, const std::string& prefix, const ir::StateDecl& state,
             std::vector<StoredTensor>& tensors) {
  const int64_t row_bytes = state.type.bytes().count / parameter.shape.dim(0);
  const int64_t element_bytes = state.type.bytes().count / parameter.shape.num_elements();
  int64_t covered = 0;
  for (const models::ParameterView& view : parameter.views) {
    const int64_t bytes = view.shape.num_elements() * element_bytes;
    covered += bytes;
    tensors.push_back({{prefix + view.name, safetensors_name(state.type.dtype), extents(view.shape)},
                       {state.name, view.row * row_bytes, bytes}});
  }
  PLIMSOLL_CHECK(covered == state.type.bytes().count, "the views leave rows out: " + parameter.name);
}

/// The parameter that a state belongs to by its name, "<rule>.<parameter>", or null.
const models::Parameter* owner(const models::Model& model, const ir::StateDecl& decl) {
  const models::Parameter* longest = nullptr;
  const std::string_view name = decl.name;
  for (const models::Parameter& p : model.parameters())
    if (name.ends_with(p.name) && name.size() > p.name.size() + 1 &&
        name[name.size() - p.name.size() - 1] == '.' && decl.type.shape == p.shape &&
        ir::bits(decl.type.dtype) % 8 == 0 && (longest == nullptr || p.name.size() > longest->name.size()))
      longest = &p;
  return longest;
}

}  // namespace

std::vector<StoredTensor> parameter_tensors(const models::Model& model, const passes::SessionPlan& session) {
  std::vector<StoredTensor> tensors;
  for (const models::Parameter& p : model.parameters())
    add_cut(p, "", session.find_state(p.name)->decl, tensors);
  return tensors;
}

std::string safetensors_name(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kF32:
      return "F32";
    case ir::DType::kBf16:
      return "BF16";
    case ir::DType::kF16:
      return "F16";
    case ir::DType::kE4m3:
      return "F8_E4M3";
    case ir::DType::kE5m2:
      return "F8_E5M2";
    case ir::DType::kI8:
      return "I8";
    case ir::DType::kI32:
      return "I32";
    case ir::DType::kE8m0:
    case ir::DType::kU8:
    case ir::DType::kNf4:
      break;
  }
  return "U8";
}

bool is_optimizer_tensor(const ir::StateDecl& decl) {
  return ir::is_saved(decl.state_class) && decl.state_class != ir::StateClass::kParameter;
}

std::vector<StoredTensor> optimizer_tensors(const models::Model& model, const passes::SessionPlan& session) {
  std::vector<StoredTensor> tensors;
  for (const passes::SessionState& s : session.states) {
    if (!is_optimizer_tensor(s.decl)) continue;
    if (const models::Parameter* p = owner(model, s.decl)) {
      const std::string prefix = s.decl.name.substr(0, s.decl.name.size() - p->name.size());
      add_cut(*p, prefix, s.decl, tensors);
    } else {
      tensors.push_back(whole(s.decl));
    }
  }
  return tensors;
}

Result<StepDump> StepDump::create(const RunConfig& config, const Prepared& prepared, int64_t step,
                                  bool initial) {
  std::vector<SafetensorsEntry> entries;
  std::optional<size_t> loss, logits, gradients, parameters;
  if (!initial && config.dumps("loss")) {
    loss = entries.size();
    entries.push_back({"loss", "F32", {1}});
  }
  if (!initial && config.dumps("logits")) {
    logits = entries.size();
    entries.push_back(
        {"logits",
         "F32",
         {config.training.global_batch_size, config.data.sequence_length, prepared.model->vocab_size()}});
  }
  if (!initial && config.dumps("gradients")) gradients = add_views(*prepared.model, "grad.", "F32", entries);
  if (config.dumps("parameters"))
    parameters = add_views(*prepared.model, "param.",
                           safetensors_name(prepared.model->parameters().front().dtype), entries);
  PLIMSOLL_ASSIGN(
      SafetensorsWriter writer,
      SafetensorsWriter::create(fmt::format("{}/step-{:06}.safetensors", config.debug.dump_dir, step),
                                std::move(entries)));
  StepDump dump(std::move(writer), prepared);
  dump.loss_ = loss;
  dump.logits_ = logits;
  dump.gradients_ = gradients;
  dump.parameters_ = parameters;
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
  const auto& states = prepared_->programs.gradients;
  const bool scaled = session.plan().find_state(optimizers::kScalerState) != nullptr;
  float scale = 1;
  if (scaled) {
    PLIMSOLL_ASSIGN(scale, session.value<float>(optimizers::kScalerState, ops::kScale));
  }
  const auto inverse = static_cast<float>(1.0 / static_cast<double>(scale));
  return for_each_view(
      *prepared_->model, [&](size_t p, const models::ParameterView& view, int64_t first) -> Status {
        const int64_t offset = first * 4;
        const int64_t bytes = view.shape.num_elements() * 4;
        const auto chunk = static_cast<int64_t>(scratch.size() / 64 * 64);
        auto* sum = reinterpret_cast<float*>(scratch.data());
        for (int64_t begin = 0; begin < bytes; begin += chunk) {
          const int64_t count = std::min(chunk, bytes - begin) / 4;
          for (size_t use = 0; use < states[p].accumulators.size(); ++use)
            PLIMSOLL_TRY(session.read_pieces(states[p].accumulators[use], offset + begin, 4 * count,
                                             [&](std::span<const std::byte> piece, int64_t at) -> Status {
                                               const auto* g = reinterpret_cast<const float*>(piece.data());
                                               float* const to = sum + at / 4;
                                               for (size_t i = 0; i < piece.size() / 4; ++i)
                                                 to[i] = use == 0 ? g[i] : to[i] + g[i];
                                               return Ok{};
                                             }));
          for (int64_t i = 0; scaled && i < count; ++i) sum[i] *= inverse;
          PLIMSOLL_TRY(writer_.write(index, scratch.first(static_cast<size_t>(count) * 4), begin));
        }
        ++index;
        return Ok{};
      });
}

Status StepDump::write_parameters(const runtime::Session& session) {
  if (!parameters_) return Ok{};
  return write_views(*prepared_->model, session, writer_, *parameters_);
}

}  // namespace plimsoll::train
