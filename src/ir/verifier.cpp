// One walk over the order. Storages are tracked as bind_storage will place them: views share their operand's,
// a read of a state is the state's.
#include "ir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "base/at.h"
#include "ir/network_queue.h"
#include "ir/op_query.h"
#include "ir/printer.h"

namespace plimsoll::ir {
namespace {

/// Where a value lies: it is a view of columns [first, end) of the last axis of `parent`, or a storage of its
/// own.
struct Placement {
  ValueId parent;
  int64_t first = 0, end = 0;
  int32_t root = -1;  ///< storage
};

/// Something took over the storage of a value, or elements [begin, end) of it.
struct Taken {
  ValueId value;
  std::string_view by;  ///< op
  int64_t begin = 0, end = kMaxElements;
};

class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph) {}

  Status run() {
    for (const StateDecl& s : graph_.states()) {
      if (!is_sound(s.type.shape))
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("state \"{}\" has the impossible type {}", s.name, to_string(s.type))};
      if (!states_.emplace(s.name, State{&s, -1}).second)
        return Error{ErrorCode::kInvalidArgument, fmt::format("state \"{}\" is declared twice", s.name)};
    }
    made_.assign(graph_.num_values(), false);
    seen_.assign(graph_.num_ops(), false);
    places_.resize(graph_.num_values());
    for (size_t p = 0; p < graph_.order().size(); ++p) {
      const OpId id = graph_.order()[p];
      Status status = visit(id);
      if (!status) return located(std::move(status).error(), id, p);
    }
    return Ok{};
  }

 private:
  struct State {
    const StateDecl* decl;
    int32_t root;  ///< the storage that its next read gives; -1 before the first
    std::vector<AssignedElements> windows = {};  ///< that have been assigned
  };

  [[nodiscard]] Error located(Error error, OpId id, size_t position) const {
    const std::string line = fmt::format("line {}", Printer(graph_).first_op_line() + position);
    const bool known = id.valid() && at(id) < graph_.num_ops() && !graph_.op(id).layer.empty();
    error.where = known ? fmt::format("{}, {}", graph_.op(id).layer, line) : line;
    return error;
  }

  template <typename... Args>
  static Error broken(const Op& op, fmt::format_string<Args...> what, Args&&... args) {
    return {ErrorCode::kInvalidArgument,
            fmt::format("{}: {}", op.def->name, fmt::format(what, std::forward<Args>(args)...))};
  }

  Status visit(OpId id) {
    if (!id.valid() || at(id) >= graph_.num_ops() || graph_.op(id).def == nullptr)
      return Error{ErrorCode::kInvalidArgument, "the order names an op that does not exist"};
    const Op& op = graph_.op(id);
    if (seen_[at(id)]) return broken(op, "stands twice in the order");
    seen_[at(id)] = true;
    PLIMSOLL_TRY(check_attrs(*op.def, op.attrs));
    PLIMSOLL_TRY(check_operands(op));
    PLIMSOLL_TRY(check_results(op, id));
    if (op.def->state == StateAccess::kRead) return read_state(op);
    PLIMSOLL_TRY(check_types(op));
    PLIMSOLL_TRY(check_places(op));
    PLIMSOLL_TRY(take(op));
    if (op.def->state == StateAccess::kAssign) return assign_state(op);
    place_results(op);
    return Ok{};
  }

  Status check_operands(const Op& op) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const ValueId v = op.inputs[i];
      if (!v.valid()) continue;
      if (at(v) >= graph_.num_values()) return broken(op, "operand {} does not exist", i);
      if (!made_[at(v)]) return broken(op, "operand {} is used before it is made", i);
      if (const Taken* taken = overlapping(v))
        return broken(op, "operand {} is read after {} has taken its storage", i, taken->by);
    }
    return Ok{};
  }

  Status check_results(const Op& op, OpId id) {
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const ValueId v = op.outputs[i];
      if (!v.valid() || at(v) >= graph_.num_values()) return broken(op, "result {} does not exist", i);
      if (made_[at(v)]) return broken(op, "result {} is made twice", i);
      const Value& value = graph_.value(v);
      if (value.producer != id || value.result_index != static_cast<int32_t>(i))
        return broken(op, "result {} belongs to another op", i);
      made_[at(v)] = true;
    }
    return Ok{};
  }

  Status check_types(const Op& op) {
    auto inferred = op.def->infer(op_types(graph_, op));
    if (!inferred) return std::move(inferred).error();
    if (inferred->size() != op.outputs.size())
      return broken(op, "has {} results, inference gives {}", op.outputs.size(), inferred->size());
    for (size_t i = 0; i < op.outputs.size(); ++i)
      if (graph_.type(op.outputs[i]) != (*inferred)[i])
        return broken(op, "result {} is {}, inference gives {}", i, to_string(graph_.type(op.outputs[i])),
                      to_string((*inferred)[i]));
    return Ok{};
  }

  // ---- spaces and queues
  // -----------------------------------------------------------------------------------------------

  [[nodiscard]] const Op& producer(ValueId v) const { return graph_.op(graph_.value(v).producer); }

  Status check_places(const Op& op) {
    for (size_t i = 0; i < op.outputs.size(); ++i)
      if (const MemorySpace space = graph_.value(op.outputs[i]).space; space != graph_.result_space(op))
        return broken(op, "result {} lies in {}, not in {}", i, name(space), name(graph_.result_space(op)));
    const bool copies = op.queue == Queue::kCopyIn || op.queue == Queue::kCopyOut;
    const bool is_kernel = !op.def->is_copy && !op.def->is_view && op.def->state == StateAccess::kNone;
    const bool talks = op.queue != kNetworkQueue || op.def->traffic != nullptr;
    if (op.def->is_copy != copies || (op.queue == Queue::kHost && !is_kernel) || !talks)
      return broken(op, "stands on the queue {}", name(op.queue));
    for (size_t i = 0; op.queue == Queue::kHost && i < op.inputs.size(); ++i)
      if (op.inputs[i].valid() && graph_.value(op.inputs[i]).space != MemorySpace::kHostPinned)
        return broken(op, "operand {} lies in {}, where the host's kernels do not reach it", i,
                      name(graph_.value(op.inputs[i]).space));
    if (op.def->is_copy && graph_.value(op.inputs[0]).space == graph_.value(op.outputs[0]).space)
      return broken(op, "copies within {}", name(graph_.value(op.inputs[0]).space));
    const bool ends_copy = op.def->ends_copy;
    if (ends_copy && !producer(op.inputs[0]).def->is_copy)
      return broken(op, "operand 0 is no copy under way");
    if (ends_copy && producer(op.inputs[0]).inputs[0] != op.inputs[1])
      return broken(op, "operand 1 is not the copy's source");
    for (size_t i = ends_copy ? 1 : 0; i < op.inputs.size(); ++i)
      if (op.inputs[i].valid() && producer(op.inputs[i]).def->is_copy)
        return broken(op, "operand {} is a copy under way", i);
    return Ok{};
  }

  // ---- states
  // ----------------------------------------------------------------------------------------------------

  Result<State*> find_state(const Op& op) {
    const auto it = states_.find(op.attrs.str("name"));
    if (it == states_.end()) return broken(op, "state \"{}\" is not declared", op.attrs.str("name"));
    return &it->second;
  }

  Status read_state(const Op& op) {
    PLIMSOLL_ASSIGN(State * state, find_state(op));
    if (!op.inputs.empty() || op.outputs.size() != 1) return broken(op, "takes nothing and gives one result");
    const TensorType& type = graph_.type(op.outputs[0]);
    if (type != state->decl->type)
      return broken(op, "result 0 is {}, \"{}\" is declared {}", to_string(type), state->decl->name,
                    to_string(state->decl->type));
    if (!state->windows.empty())
      return broken(op, "\"{}\" is read after windows of it have been assigned", state->decl->name);
    if (state->root < 0) state->root = new_root();
    if (!taken_[static_cast<size_t>(state->root)].empty())
      return broken(op, "\"{}\" is read after {} has taken its storage", state->decl->name,
                    taken_[static_cast<size_t>(state->root)][0].by);
    places_[at(op.outputs[0])].root = state->root;
    state_values_[state->root].push_back(op.outputs[0]);
    return Ok{};
  }

  Status assign_state(const Op& op) {
    PLIMSOLL_ASSIGN(State * state, find_state(op));
    const AssignedElements elements = assigned_elements(graph_, op);
    PLIMSOLL_TRY(check_assigned(op, *state, elements));
    if (const MemorySpace space = graph_.value(op.inputs[0]).space; space != state->decl->space)
      return broken(op, "the value lies in {}, \"{}\" in {}", name(space), state->decl->name,
                    name(state->decl->space));
    const int32_t old = state->root;
    if (old >= 0 && places_[at(op.inputs[0])].root == old) return Ok{};  // its own value
    if (old >= 0)
      for (const ValueId v : state_values_[old])
        taken_[static_cast<size_t>(old)].push_back({v, op.def->name, elements.begin, elements.end});
    if (!elements.is_window) state->root = -1;
    return Ok{};
  }

  /// The value is of the state's type, or a window of its elements that none was assigned to.
  Status check_assigned(const Op& op, State& state, const AssignedElements& elements) {
    const TensorType &type = graph_.type(op.inputs[0]), &whole = state.decl->type;
    const bool is_window = type.shape.rank() == 1 && type.dtype == whole.dtype && !is_block(type.dtype);
    if (elements.is_window ? !is_window : type != whole)
      return broken(op, "the value is {}, \"{}\" is declared {}", to_string(type), state.decl->name,
                    to_string(whole));
    if (elements.begin < 0 || elements.end > whole.num_elements())
      return broken(op, "elements {} to {} are not in \"{}\", which has {}", elements.begin, elements.end,
                    state.decl->name, whole.num_elements());
    for (const AssignedElements& w : state.windows)
      if (w.begin < elements.end && elements.begin < w.end)
        return broken(op, "elements of \"{}\" are assigned twice", state.decl->name);
    if (elements.is_window) state.windows.push_back(elements);
    return Ok{};
  }

  // ---- storages
  // --------------------------------------------------------------------------------------------------

  int32_t new_root() {
    taken_.emplace_back();
    return static_cast<int32_t>(taken_.size()) - 1;
  }

  /// Marks what the op consumes; no other operand of it may lie in the same place.
  Status take(const Op& op) {
    const std::vector<Alias> aliases = op_consumes(op);
    // By storage first: an update of all parameters consumes hundreds of operands, each in a storage of its
    // own.
    std::unordered_map<int32_t, std::vector<size_t>> by_root;
    if (!aliases.empty())
      for (size_t i = 0; i < op.inputs.size(); ++i)
        if (op.inputs[i].valid()) by_root[places_[at(op.inputs[i])].root].push_back(i);
    for (const Alias& a : aliases) {
      const auto consumed = static_cast<size_t>(a.input);
      for (const size_t i : by_root[places_[at(op.inputs[consumed])].root])
        if (i != consumed && overlap(op.inputs[i], op.inputs[consumed]))
          return broken(op, "operand {} is consumed and operand {} reads it", consumed, i);
    }
    for (const Alias& a : aliases) {
      const ValueId v = op.inputs[static_cast<size_t>(a.input)];
      taken_[static_cast<size_t>(places_[at(v)].root)].push_back({v, op.def->name});
    }
    return Ok{};
  }

  void place_results(const Op& op) {
    int64_t column = 0;
    const int64_t width = op.def->is_view && !op.inputs.empty() ? graph_.type(op.inputs[0]).shape.dim(-1) : 0;
    for (const ValueId v : op.outputs) {
      if (!op.def->is_view) {
        places_[at(v)].root = new_root();
        continue;
      }
      const int64_t size = op.outputs.size() == 1 ? width : graph_.type(v).shape.dim(-1);
      places_[at(v)] = {op.inputs[0], column, column + size, places_[at(op.inputs[0])].root};
      column += size;
    }
  }

  [[nodiscard]] const Taken* overlapping(ValueId v) const {
    for (const Taken& t : taken_[static_cast<size_t>(places_[at(v)].root)])
      if (overlap(v, t.value) && shows(v, t.begin, t.end)) return &t;
    return nullptr;
  }

  /// Whether it may show any of elements [begin, end) of its storage, as a row of them.
  [[nodiscard]] bool shows(ValueId v, int64_t begin, int64_t end) const {
    int64_t first = 0, last = kMaxElements;
    for (const ValueId on_the_way : path(v)) {
      const Placement& p = places_[at(on_the_way)];
      const bool narrows = p.parent.valid() && graph_.type(p.parent).shape.rank() == 1;
      if (narrows) last = first + p.end, first += p.first;
    }
    return first < end && begin < last;
  }

  /// From the value to its storage's owner.
  [[nodiscard]] std::vector<ValueId> path(ValueId v) const {
    std::vector<ValueId> path = {v};
    while (places_[at(path.back())].parent.valid()) path.push_back(places_[at(path.back())].parent);
    std::reverse(path.begin(), path.end());
    return path;
  }

  /// False where the two are of different storages, or their paths part at disjoint columns of one value. Two
  /// reads of a state are one value here.
  [[nodiscard]] bool overlap(ValueId a, ValueId b) const {
    if (places_[at(a)].root != places_[at(b)].root) return false;
    const std::vector<ValueId> pa = path(a);
    const std::vector<ValueId> pb = path(b);
    for (size_t i = 1; i < pa.size() && i < pb.size(); ++i) {
      if (pa[i] == pb[i]) continue;
      const Placement& x = places_[at(pa[i])];
      const Placement& y = places_[at(pb[i])];
      return x.first < y.end && y.first < x.end;
    }
    return true;
  }

  const Graph& graph_;
  std::unordered_map<std::string_view, State> states_;
  std::unordered_map<int32_t, std::vector<ValueId>> state_values_;  ///< reads, by storage
  std::vector<bool> made_, seen_;
  std::vector<Placement> places_;
  std::vector<std::vector<Taken>> taken_;  ///< by storage
};

}  // namespace

Status verify(const Graph& graph) { return Walk(graph).run(); }

Status check_attrs(const OpDef& def, const Attrs& attrs) {
  static constexpr std::array<std::string_view, 5> kKinds = {"a bool", "an int", "a float", "a string",
                                                             "a list of ints"};
  for (const auto& [name, value] : attrs.entries()) {
    const std::string& key = name;  // clang 14 captures no structured binding
    const auto spec =
        std::find_if(def.attrs.begin(), def.attrs.end(), [&](const AttrSpec& s) { return s.name == key; });
    if (spec == def.attrs.end())
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: unknown attribute {}", def.name, key)};
    if (value.index() != static_cast<size_t>(spec->kind))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: attribute {} must be {}, is {}", def.name, key,
                               kKinds[static_cast<size_t>(spec->kind)], to_string(value))};
  }
  for (const AttrSpec& spec : def.attrs)
    if (spec.required && attrs.find(spec.name) == nullptr)
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: attribute {} is missing", def.name, spec.name)};
  return Ok{};
}

bool is_sound(const Shape& shape) {
  if (shape.rank() < 1) return false;
  int64_t product = 1;
  for (const int64_t extent : shape.dims()) {
    if (extent < 1 || extent > kMaxElements / product) return false;
    product *= extent;
  }
  return true;
}

}  // namespace plimsoll::ir
