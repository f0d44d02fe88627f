#include "checkpoints/tensor_files.h"

#include <algorithm>

#include "base/check.h"
#include "io/safetensors_reader.h"

namespace plimsoll::checkpoints {
namespace {

/// A state that no parameter's views divide: whole, a block type as its bytes.
StoredTensor whole(const ir::StateDecl& decl) {
  const int64_t bytes = decl.type.bytes().count;
  const std::string dtype = safetensors_name(decl.type.dtype);
  const bool plain = bytes == decl.type.num_elements() * io::safetensors_dtype_bytes(dtype);
  const std::vector<int64_t> shape = plain ? extents_of(decl.type.shape) : std::vector{bytes};
  return {{decl.name, plain ? dtype : "U8", shape}, {decl.name, 0, bytes}};
}

/// How a state follows the views of its parameter: as the parameter itself, a value a row (Adafactor's rows),
/// or a row a view (its columns).
enum class Cut : uint8_t { kNone, kAlike, kByRow, kByView };

Cut cut_of(const models::Parameter& parameter, const ir::TensorType& state) {
  if (ir::bits(state.dtype) % 8 != 0) return Cut::kNone;
  if (state.shape == parameter.shape) return Cut::kAlike;
  if (parameter.kind == models::ParameterKind::kVector) return Cut::kNone;
  const ir::Shape by_row{parameter.shape.dim(0)};
  const ir::Shape by_view{static_cast<int64_t>(parameter.views.size()),
                          parameter.shape.num_elements() / parameter.shape.dim(0)};
  return state.shape == by_row ? Cut::kByRow : state.shape == by_view ? Cut::kByView : Cut::kNone;
}

void add_cut(const models::Parameter& parameter, const std::string& prefix, const ir::StateDecl& state,
             std::vector<StoredTensor>& tensors) {
  const Cut cut = cut_of(parameter, state.type);
  const int64_t element_bytes = state.type.bytes().count / state.type.num_elements();
  const int64_t row_bytes = state.type.bytes().count / state.type.shape.dim(0);
  int64_t covered = 0;
  for (size_t v = 0; v < parameter.views.size(); ++v) {
    const models::ParameterView& view = parameter.views[v];
    const ir::Shape shape = cut == Cut::kAlike   ? view.file_shape()
                            : cut == Cut::kByRow ? ir::Shape{view.shape.dim(0)}
                                                 : ir::Shape{state.type.shape.dim(1)};
    const int64_t row = cut == Cut::kByView ? static_cast<int64_t>(v) : view.row;
    const int64_t bytes = shape.num_elements() * element_bytes;
    covered += bytes;
    tensors.push_back({{prefix + view.name, safetensors_name(state.type.dtype), extents_of(shape)},
                       {state.name, row * row_bytes, bytes},
                       cut == Cut::kAlike ? file_order(view) : FileOrder{}});
  }
  PLIMSOLL_CHECK(covered == state.type.bytes().count, "the views leave rows out: " + parameter.name);
}

/// The parameter that a state belongs to by its name, "<rule>.<parameter>", or null.
const models::Parameter* owner(const models::Model& model, const ir::StateDecl& decl) {
  const models::Parameter* longest = nullptr;
  const std::string_view name = decl.name;
  for (const models::Parameter& p : model.parameters())
    if (name.ends_with(p.name) && name.size() > p.name.size() + 1 &&
        name[name.size() - p.name.size() - 1] == '.' && cut_of(p, decl.type) != Cut::kNone &&
        (longest == nullptr || p.name.size() > longest->name.size()))
      longest = &p;
  return longest;
}

void add_state(const models::Model& model, const ir::StateDecl& decl, std::vector<StoredTensor>& tensors) {
  if (const models::Parameter* p = owner(model, decl)) {
    const std::string prefix = decl.name.substr(0, decl.name.size() - p->name.size());
    add_cut(*p, prefix, decl, tensors);
  } else {
    tensors.push_back(whole(decl));
  }
}

}  // namespace

Result<io::SafetensorsLayout> layout_of(const std::vector<StoredTensor>& tensors) {
  std::vector<io::SafetensorsEntry> entries;
  entries.reserve(tensors.size());
  for (const StoredTensor& t : tensors) entries.push_back(t.entry);
  return io::SafetensorsLayout::create(entries, {{"format", "pt"}});
}

std::vector<int64_t> extents_of(const ir::Shape& shape) {
  const auto dims = shape.dims();
  return {dims.begin(), dims.end()};
}

Status for_each_view(
    const models::Model& model,
    const std::function<Status(size_t parameter, const models::ParameterView& view, int64_t first)>& visit) {
  for (size_t p = 0; p < model.parameters().size(); ++p) {
    const models::Parameter& parameter = model.parameters()[p];
    const int64_t row = parameter.shape.num_elements() / parameter.shape.dim(0);
    for (const models::ParameterView& view : parameter.views) PLIMSOLL_TRY(visit(p, view, view.row * row));
  }
  return Ok{};
}

std::vector<StoredTensor> parameter_tensors(const models::Model& model, const passes::SessionPlan& session) {
  std::vector<StoredTensor> tensors;
  for (const models::Parameter& p : model.parameters())
    if (!ir::is_block(p.dtype))  // frozen beside adapters: in no file of ours
      add_cut(p, "", session.whole(p.name), tensors);
  if (!model.adapters()) {
    for (const models::Buffer& buffer : model.buffers()) tensors.push_back(buffer_tensor(buffer));
    return tensors;
  }
  for (StoredTensor& t : tensors) t.entry.name = model.saved_name(t.entry.name);
  std::erase_if(tensors, [](const StoredTensor& t) { return t.entry.name.empty(); });
  return tensors;
}

StoredTensor buffer_tensor(const models::Buffer& buffer) {
  const int64_t bytes = models::state_of(buffer).type.bytes().count;
  if (buffer.is_count) return {{buffer.view, "I64", {}}, {buffer.name, 0, bytes}};
  return {{buffer.view, "F32", extents_of(buffer.shape)}, {buffer.name, 0, bytes}};
}

std::string weights_file(const models::Model& model) {
  return model.adapters() ? "adapter_model.safetensors" : "model.safetensors";
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
    case ir::DType::kNf4Double:
    case ir::DType::kFp4:
    case ir::DType::kFp4Double:
    case ir::DType::kI8Rows:
      break;
  }
  return "U8";
}

bool is_optimizer_tensor(const ir::StateDecl& decl) {
  return ir::is_saved(decl.state_class) && decl.state_class != ir::StateClass::kParameter &&
         decl.state_class != ir::StateClass::kBuffer;
}

std::vector<StoredTensor> optimizer_tensors(const models::Model& model, const passes::SessionPlan& session) {
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < session.states.size(); ++i) {
    const ir::StateDecl& decl = session.states[i].decl;
    if (!is_optimizer_tensor(decl)) continue;
    bool is_shared = false;
    for (const passes::SharedState& s : session.shared) {
      if (s.state != static_cast<int32_t>(i)) continue;
      add_state(model, {s.name, s.type, decl.state_class}, tensors);
      is_shared = true;
    }
    if (!is_shared) add_state(model, decl, tensors);
  }
  return tensors;
}

}  // namespace plimsoll::checkpoints
