#include "passes/memory/bind_storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/at.h"
#include "base/check.h"
#include "ir/op_query.h"
#include "passes/memory/touched_ranges.h"
#include "passes/recompute/overwritten.h"

namespace plimsoll::passes {
namespace {

using ir::Graph;
using ir::Op;
using ir::OpId;
using ir::Strides;
using ir::ValueId;

/// Whether the last `row_axes` axes are rows without gaps, all rows one stride apart: what kernels that take
/// views can read.
bool is_rows(const ir::Shape& shape, const Strides& strides, int row_axes) {
  int64_t row = 1, next = 0;  // elements of a row; the stride that the next axis is to have
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape.dim(i) == 1) continue;
    const int64_t stride = strides[at(i)];
    if (i >= shape.rank() - row_axes) {
      if (stride != row) return false;
      row *= shape.dim(i);
    } else {
      if (next == 0 ? stride < row : stride != next) return false;
      next = stride * shape.dim(i);
    }
  }
  return true;
}

/// A row of four axes is the heads of a token and their size, but where rows are summed or multiplied.
int row_axes_of(const Op& op, const ir::Shape& shape) {
  using enum ir::WorkKind;
  const bool of_last_axis = op.def->work.kind == kProduct || op.def->work.kind == kLossHead ||
                            op.def->is_loss || op.def->columns_to_rows != nullptr;
  return shape.rank() == 4 && !of_last_axis ? 2 : 1;
}

std::vector<ValueId> sorted(std::vector<ValueId> values) {
  std::ranges::sort(values);
  return values;
}

class Binder {
 public:
  Binder(Graph& graph, const BindOptions& options, ir::OpLookup lookup)
      : graph_(graph), options_(options), lookup_(lookup) {
    for (const auto& [op, alias] : options.in_place) in_place_[op.index].push_back(alias);
    gradients_ = sorted(options.gradients), gathered_ = sorted(options.gathered);
  }

  Result<Binding> run() {
    bind_states();
    // Inserting copies shifts positions, so the order is rebuilt while it is walked.
    const std::vector<OpId> old_order = graph_.order();
    order_.reserve(old_order.size());
    for (const OpId id : old_order) {
      densify_operands(id);
      order_.push_back(id);
      place_results(id);
    }
    graph_.set_order(order_);
    PLIMSOLL_TRY(check_kernels());
    compute_lifetimes();
    bind_assigns();
    put_on_pages();
    PLIMSOLL_TRY(check_consumed());
    add_workspaces();
    if (options_.runs_twice) add_double_runs();
    return std::move(binding_);
  }

 private:
  void bind_states() {
    for (size_t i = 0; i < graph_.states().size(); ++i) {
      const auto& decl = graph_.states()[i];
      binding_.storages.push_back({static_cast<int>(i), decl.type.bytes().count, 0, 0, {}, decl.space, {}});
      state_storage_[decl.name] = static_cast<int32_t>(i);
    }
  }

  Place& place(ValueId v) {
    if (binding_.places.size() < graph_.num_values()) binding_.places.resize(graph_.num_values());
    return binding_.places[at(v)];
  }

  bool is_dense(ValueId v) { return place(v).strides == ir::dense_strides(graph_.type(v).shape); }

  /// Puts a copy before `id` for each strided operand that its kernel does not take.
  void densify_operands(OpId id) {
    if (graph_.op(id).def->takes_any_view) return;
    if (graph_.op(id).def->ends_copy) {  // what the copy reads, which may be a dense copy by now
      graph_.op(id).inputs[1] = graph_.op(graph_.value(graph_.op(id).inputs[0]).producer).inputs[0];
      return;
    }
    const auto is_strided = [&](ValueId in) { return in.valid() && !is_dense(in); };
    if (std::ranges::none_of(graph_.op(id).inputs, is_strided)) return;
    const Op op = graph_.op(id);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const ValueId in = op.inputs[i];
      if (!in.valid() || is_dense(in)) continue;
      if (op.def->is_view) {
        if (op.def->view(op_types(graph_, op), place(in).strides, 0)) continue;
      } else if (takes_view(op, i)) {
        continue;
      }
      Op dense{.def = lookup_("copy"), .inputs = {in}, .layer = op.layer, .block = op.block};
      if (op.queue == ir::Queue::kHost) dense.queue = op.queue;
      const OpId copy = graph_.append(std::move(dense), {graph_.type(in)});
      order_.push_back(copy);
      place_results(copy);
      graph_.op(id).inputs[i] = graph_.op(copy).outputs[0];
    }
  }

  /// Whether the op's kernel reads its operand i as the view that it is.
  bool takes_view(const Op& op, size_t i) {
    const auto& accepts = traits_of(op).accepts_strided;
    const ir::Shape& shape = graph_.type(op.inputs[i]).shape;
    return accepts && accepts(op.def->name, i) &&
           is_rows(shape, place(op.inputs[i]).strides, row_axes_of(op, shape));
  }

  void place_results(OpId id) {
    const Op& op = graph_.op(id);
    if (op.def->state == ir::StateAccess::kRead) {
      place(op.outputs[0]) = {state_storage_.at(op.attrs.str("name")), 0,
                              ir::dense_strides(graph_.type(op.outputs[0]).shape)};
      return;
    }
    if (op.def->is_view) return place_views(op);
    std::vector<ir::Alias> aliases = ir::op_consumes(op);
    if (const auto it = in_place_.find(id.index); it != in_place_.end())
      aliases.insert(aliases.end(), it->second.begin(), it->second.end());
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto alias = std::find_if(aliases.begin(), aliases.end(),
                                      [&](const auto& a) { return a.output == static_cast<int32_t>(i); });
      const ValueId out = op.outputs[i];
      if (alias != aliases.end()) {
        const ValueId in = op.inputs[static_cast<size_t>(alias->input)];
        place(out) = Place(place(in));
        // Of an operand with fewer axes, which broadcasts to the result's.
        if (graph_.type(out).shape != graph_.type(in).shape)
          place(out).strides = ir::dense_strides(graph_.type(out).shape);
        note_gradient(out);
        continue;
      }
      binding_.storages.push_back(
          {-1, graph_.type(out).bytes().count, 0, 0, category_of(out), graph_.value(out).space, id});
      place(out) = {static_cast<int32_t>(binding_.storages.size()) - 1, 0,
                    ir::dense_strides(graph_.type(out).shape)};
      note_gradient(out);
    }
  }

  [[nodiscard]] Category category_of(ValueId v) const {
    return std::ranges::binary_search(gathered_, v) ? Category::kGathered : Category::kActivations;
  }
  /// What becomes a gradient in place, as a tied head's does at the embedding, was one from the start.
  void note_gradient(ValueId v) {
    Category& category = binding_.storages[static_cast<size_t>(place(v).storage)].category;
    if (category == Category::kActivations && std::binary_search(gradients_.begin(), gradients_.end(), v))
      category = Category::kGradients;
  }

  void place_views(const Op& op) {
    const Place source = place(op.inputs[0]);
    const ir::OpTypes types = op_types(graph_, op);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const auto view = op.def->view(types, source.strides, i);
      PLIMSOLL_CHECK(view.has_value(), std::string(op.def->name));
      const int64_t offset_bytes = view->offset * ir::bits(types.inputs[0].dtype) / 8;
      place(op.outputs[i]) = {source.storage, source.offset_bytes + offset_bytes, view->strides};
    }
  }

  [[nodiscard]] static bool runs_kernel(const Op& op) {
    return !op.def->is_view && !op.def->is_copy && op.def->state != ir::StateAccess::kRead &&
           op.def->state != ir::StateAccess::kAssign;
  }

  [[nodiscard]] const KernelTraits& traits_of(const Op& op) const {
    return op.queue == ir::Queue::kHost ? options_.host : options_.device;
  }

  /// That each op has a kernel, and each kernel operands that it reaches.
  Status check_kernels() const {
    const auto refused = [](const Op& op, std::string what) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", op.def->name, what), op.layer,
                   "this is a bug in Plimsoll: please report it with the run file"};
    };
    for (const OpId id : order_) {
      const Op& op = graph_.op(id);
      if (!runs_kernel(op)) continue;
      const KernelTraits& traits = traits_of(op);
      if (traits.accepts) PLIMSOLL_TRY(traits.accepts(op_types(graph_, op)));
      if (!traits.reaches) continue;
      for (const auto* values : {&op.inputs, &op.outputs})
        for (const ValueId v : *values)
          if (v.valid() && !traits.reaches(graph_.value(v).space))
            return refused(op, fmt::format("an operand lies in {}, which its kernel cannot reach",
                                           name(graph_.value(v).space)));
    }
    return Ok{};
  }

  void touch(ValueId v, int32_t position, bool defines) {
    Storage& s = binding_.storages[static_cast<size_t>(place(v).storage)];
    if (defines && s.first < 0) s.first = position;
    s.last = std::max(s.last, position);
  }

  void compute_lifetimes() {
    for (Storage& s : binding_.storages) s.first = s.last = -1;
    for (int32_t p = 0; p < static_cast<int32_t>(order_.size()); ++p) {
      const Op& op = graph_.op(order_[static_cast<size_t>(p)]);
      for (const ValueId v : op.inputs)
        if (v.valid()) touch(v, p, false);
      for (const ValueId v : op.outputs) touch(v, p, true);
    }
  }

  [[nodiscard]] TouchedRanges reads_of_states() const {
    TouchedRanges reads;
    for (int32_t p = 0; p < static_cast<int32_t>(order_.size()); ++p)
      for (const ValueId v : graph_.op(order_[static_cast<size_t>(p)]).inputs) {
        const StorageRange range = v.valid() ? range_of(graph_, binding_, v) : StorageRange{};
        if (v.valid() && binding_.storages[static_cast<size_t>(range.storage)].state >= 0)
          reads.note(range, p);
      }
    return reads;
  }

  /// The bytes of its state that an assignment gives a value.
  [[nodiscard]] StorageRange assigned_range(const Op& op) const {
    const ir::TensorType& type = graph_.type(op.inputs[0]);
    const int64_t begin = ir::assigned_elements(graph_, op).begin * ir::bits(type.dtype) / 8;
    return {state_storage_.at(op.attrs.str("name")), begin, begin + type.bytes().count};
  }

  void bind_assigns() {
    const TouchedRanges reads = reads_of_states();
    std::map<int32_t, StorageRange> moved;  // by arena storage
    for (const OpId id : order_) {
      const Op& op = graph_.op(id);
      if (op.def->state != ir::StateAccess::kAssign) continue;
      const StorageRange target = assigned_range(op);
      const Place& source = place(op.inputs[0]);
      if (source.storage == target.storage) continue;
      const Storage& s = binding_.storages[static_cast<size_t>(source.storage)];
      const Storage& state = binding_.storages[static_cast<size_t>(target.storage)];
      const bool whole = s.state < 0 && s.space == state.space && source.offset_bytes == 0 &&
                         is_dense(op.inputs[0]) && s.bytes == target.end - target.begin;
      if (!whole || moved.contains(source.storage) || reads.last(target) >= s.first) {
        binding_.copied_assigns.push_back(id);
        continue;
      }
      moved[source.storage] = target;
    }
    for (Place& p : binding_.places)
      if (const auto it = moved.find(p.storage); it != moved.end()) {
        p.storage = it->second.storage;
        p.offset_bytes += it->second.begin;
      }
    for (const auto& [from, to] : moved) binding_.storages[static_cast<size_t>(from)].bytes = 0;
  }

  /// What a disk reads or writes, as far as a page for its sake is little beside it.
  void put_on_pages() {
    constexpr int64_t kLeastBytes = 64 << 10;
    for (const OpId id : order_) {
      const Op& op = graph_.op(id);
      if (!op.def->is_copy) continue;
      const ValueId in = op.inputs[0], out = op.outputs[0];
      if (graph_.value(in).space != ir::MemorySpace::kDisk &&
          graph_.value(out).space != ir::MemorySpace::kDisk)
        continue;
      for (const ValueId v : {in, out}) {
        Storage& s = binding_.storages[static_cast<size_t>(place(v).storage)];
        s.on_pages = s.on_pages || s.bytes >= kLeastBytes;
      }
    }
  }

  /// Bytes that an op writes over must not be read through an older value afterwards.
  Status check_consumed() const {
    TouchedRanges written;
    std::vector<int32_t> made(graph_.num_values(), -1);
    for (int32_t p = 0; p < static_cast<int32_t>(order_.size()); ++p) {
      const Op& op = graph_.op(order_[static_cast<size_t>(p)]);
      for (const ValueId v : op.inputs) {
        const int32_t writer = v.valid() ? written.last(range_of(graph_, binding_, v)) : -1;
        if (v.valid() && made[at(v)] < writer)
          return Error{ErrorCode::kInvalidArgument,
                       fmt::format("{} reads %{} after {} has overwritten it", op.def->name, v.index,
                                   graph_.op(order_[static_cast<size_t>(writer)]).def->name),
                       op.layer, "this is a bug in a pass"};
      }
      for (const ValueId v : op.outputs) made[at(v)] = op.def->is_view ? made[at(op.inputs[0])] : p;
      if (op.def->is_view || op.def->state == ir::StateAccess::kRead) continue;
      for (const ValueId v : op.outputs) written.note(range_of(graph_, binding_, v), p);
    }
    return Ok{};
  }

  void add_workspaces() {
    binding_.workspaces.assign(order_.size(), -1);
    for (size_t p = 0; p < order_.size(); ++p) {
      const Op& op = graph_.op(order_[p]);
      const auto& workspace_bytes = traits_of(op).workspace_bytes;
      if (!workspace_bytes || !runs_kernel(op)) continue;
      const int64_t bytes = workspace_bytes(ir::op_types(graph_, op));
      if (bytes == 0) continue;
      const auto position = static_cast<int32_t>(p);
      binding_.workspaces[p] = static_cast<int32_t>(binding_.storages.size());
      binding_.storages.push_back(
          {-1, bytes, position, position, Category::kWorkspace, ir::kernel_space(op.queue), order_[p]});
    }
  }

  void add_double_runs() {
    binding_.double_runs.assign(order_.size(), -1);
    for (size_t p = 0; p < order_.size(); ++p) {
      const Op& op = graph_.op(order_[p]);
      if (!runs_kernel(op)) continue;
      const int64_t bytes = double_run_bytes(overwritten(graph_, binding_, op));
      if (bytes == 0) continue;
      const auto position = static_cast<int32_t>(p);
      binding_.double_runs[p] = static_cast<int32_t>(binding_.storages.size());
      binding_.storages.push_back(
          {-1, bytes, position, position, Category::kWorkspace, ir::kernel_space(op.queue), order_[p]});
    }
  }

  Graph& graph_;
  const BindOptions& options_;
  ir::OpLookup lookup_;
  Binding binding_;
  std::vector<OpId> order_;
  std::map<int32_t, std::vector<ir::Alias>> in_place_;
  std::map<std::string, int32_t, std::less<>> state_storage_;
  std::vector<ValueId> gradients_, gathered_;  // sorted
};

}  // namespace

std::string_view name(Category category) {
  static constexpr std::array<std::string_view, kNumCategories> kNames = {"activations", "gradients",
                                                                          "workspace", "gathered_parameters"};
  return kNames[static_cast<size_t>(category)];
}

Result<Binding> bind_storage(Graph& graph, const BindOptions& options, ir::OpLookup lookup) {
  return Binder(graph, options, lookup).run();
}

}  // namespace plimsoll::passes
