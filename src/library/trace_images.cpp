// Adds filters to a trace, which are stored with their channels last, and buffers.
#include <fmt/format.h>

#include <algorithm>

#include "library/invalid.h"
#include "library/trace.h"
#include "ops/op_list.h"

namespace plimsoll::library {

using ir::ValueId;

ir::Shape TracedParameter::stored_shape() const {
  if (kind() != ir::ParameterKind::kFilters) return shape;
  return {shape.dim(0), shape.dim(2), shape.dim(3), shape.dim(1)};
}

models::Buffer TracedBuffer::as_buffer() const {
  if (options.is_count) return {.name = name, .shape = {2}, .view = name, .is_count = true};
  return {.name = name, .shape = shape, .init = first(), .view = name};
}

float TracedBuffer::first() const {
  return options.init == FirstValue::kOnes       ? 1.0F
         : options.init == FirstValue::kConstant ? static_cast<float>(options.number)
                                                 : 0.0F;
}

Result<ValueId> Trace::buffer(const std::string& name, const ir::Shape& shape,
                              const ParameterOptions& options) {
  if (options.init == FirstValue::kUniform || options.init == FirstValue::kNormal)
    return invalid(fmt::format("buffer '{}' cannot be drawn", name), "choose zeros, ones or constant");
  const auto found = std::ranges::find(buffers_, name, &TracedBuffer::name);
  if (found != buffers_.end() && found->options == options && (options.is_count || found->shape == shape))
    return found->value;
  if (graph_.find_state(name) != nullptr) return invalid(fmt::format("the name '{}' is taken", name));
  if (options.is_count) {
    if (shape.num_elements() != 1 || options.init != FirstValue::kZeros)
      return invalid(fmt::format("'{}' counts batches: it is one number, which begins at zero", name));
    buffers_.push_back({name, {}, options, {}});
    graph_.declare_state(models::state_of(buffers_.back().as_buffer()));
    return ValueId{};
  }
  const ValueId value = read_state(name, {ir::DType::kF32, shape}, ir::StateClass::kBuffer);
  buffers_.push_back({name, shape, options, value});
  return value;
}

ValueId Trace::shown_filters(ValueId stored) {
  ir::Builder b(graph_, ops::find_op);
  const ValueId shown = b.op("permute", {stored}, {{"axes", std::vector<int64_t>{0, 3, 1, 2}}});
  note_channels_last(shown, stored);
  return shown;
}

const TracedBuffer* Trace::find_buffer(ValueId value) const {
  const auto found = std::ranges::find(buffers_, value, &TracedBuffer::value);
  return found == buffers_.end() ? nullptr : &*found;
}

ValueId Trace::find_channels_last(ValueId first) const {
  const auto found = channels_last_.find(first.index);
  return found == channels_last_.end() ? ValueId{} : found->second;
}

}  // namespace plimsoll::library
