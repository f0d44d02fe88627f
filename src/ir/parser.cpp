// See parser.h. A cursor over the text; one function a construct, no recursion, so depth cannot hurt.
#include "ir/parser.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <unordered_map>

#include "ir/network_queue.h"
#include "ir/printer.h"
#include "ir/text_cursor.h"
#include "ir/verifier.h"

namespace plimsoll::ir {
namespace {

/// The value up to `last` that goes by that name.
template <typename T>
std::optional<T> find_name(std::string_view text, T last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name(static_cast<T>(i)) == text) return static_cast<T>(i);
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::string_view text, OpLookup lookup) : in_(text), lookup_(lookup) {}

  Result<Graph> run() {
    skip_empty_lines();
    if (in_.run(is_word) != "graph") return in_.error("expected 'graph \"<name>\"'");
    PLIMSOLL_ASSIGN(graph_.name, in_.quoted());
    PLIMSOLL_TRY(end_line());
    while (skip_empty_lines()) {
      PLIMSOLL_TRY(statement());
      PLIMSOLL_TRY(end_line());
    }
    return std::move(graph_);
  }

 private:
  /// False at the end of the text.
  bool skip_empty_lines() {
    while (!in_.done() && (in_.peek() == '\n' || in_.at_comment())) in_.next_line();
    return !in_.done();
  }
  Status end_line() {
    if (in_.peek() != '\n') return in_.error("unexpected text");
    in_.next_line();
    return Ok{};
  }

  Status statement() {
    const std::string place = in_.here();
    Op op;
    std::vector<int64_t> results;
    if (in_.peek() == '%') {
      do {
        PLIMSOLL_ASSIGN(const int64_t number, value_number());
        results.push_back(number);
      } while (in_.take(','));
      PLIMSOLL_TRY(in_.expect('='));
    }
    PLIMSOLL_ASSIGN(const std::string_view name, in_.word("an op"));
    if (results.empty() && name == "state" && in_.peek() == '"') return state_declaration();
    op.def = lookup_(name);
    if (op.def == nullptr) return Error{ErrorCode::kBadData, fmt::format("unknown op '{}'", name), place};
    PLIMSOLL_TRY(operands(op));
    PLIMSOLL_TRY(attributes(op));
    std::vector<TensorType> types;
    std::vector<MemorySpace> spaces;
    if (in_.take(':')) PLIMSOLL_TRY(result_types(types, spaces));
    PLIMSOLL_TRY(suffixes(op));
    Status checked = check(op, types);
    if (!checked) return Error{ErrorCode::kBadData, std::move(checked).error().what, place};
    return append(std::move(op), results, types, spaces, place);
  }

  Status state_declaration() {
    StateDecl decl;
    PLIMSOLL_ASSIGN(decl.name, in_.quoted());
    PLIMSOLL_TRY(in_.expect(':'));
    PLIMSOLL_ASSIGN(decl.type, type());
    PLIMSOLL_ASSIGN(const std::string_view word, in_.word("the state's class"));
    const auto state_class = find_name(word, StateClass::kBuffer);
    if (!state_class) return in_.error(fmt::format("unknown class '{}'", word));
    decl.state_class = *state_class;
    PLIMSOLL_ASSIGN(decl.space, space());
    if (states_.size() == kMaxStates) return in_.error(fmt::format("more than {} states", kMaxStates));
    if (!states_.emplace(decl.name, decl.type).second)
      return in_.error(fmt::format("state \"{}\" is declared twice", decl.name));
    graph_.declare_state(decl);
    return Ok{};
  }

  Result<int64_t> value_number() {
    PLIMSOLL_TRY(in_.expect('%'));
    return in_.count("a value's number", std::numeric_limits<int32_t>::max());
  }

  Status operands(Op& op) {
    if (!in_.take('(')) return Ok{};
    if (in_.take(')')) return Ok{};
    do {
      if (in_.take('_')) {
        op.inputs.emplace_back();
        continue;
      }
      PLIMSOLL_ASSIGN(const int64_t number, value_number());
      const auto it = values_.find(number);
      if (it == values_.end()) return in_.error(fmt::format("%{} is used before it is made", number));
      op.inputs.push_back(it->second);
    } while (in_.take(','));
    return in_.expect(')');
  }

  Status attributes(Op& op) {
    if (!in_.take('{')) return Ok{};
    if (in_.take('}')) return Ok{};
    do {
      PLIMSOLL_ASSIGN(const std::string_view key, in_.word("an attribute"));
      if (op.attrs.find(key) != nullptr) return in_.error(fmt::format("attribute {} stands twice", key));
      PLIMSOLL_TRY(in_.expect('='));
      PLIMSOLL_ASSIGN(Attr value, attribute_value());
      op.attrs.set(key, std::move(value));
    } while (in_.take(','));
    return in_.expect('}');
  }

  Result<Attr> attribute_value() {
    const char first = in_.peek();
    if (first == '"') {
      PLIMSOLL_ASSIGN(std::string text, in_.quoted());
      return Attr(std::move(text));
    }
    if (first == '[') return int_list();
    if (first == 't' || first == 'f' || first == 'i' || first == 'n') return named_value(1.0);
    const std::string_view text = in_.run(is_number);
    if (text == "-") return named_value(-1.0);
    const bool real = text.find_first_of(".eE") != std::string_view::npos;
    int64_t integer = 0;
    double number = 0;
    const auto [end, failed] = real ? std::from_chars(text.data(), text.data() + text.size(), number)
                                    : std::from_chars(text.data(), text.data() + text.size(), integer);
    if (text.empty() || failed != std::errc{} || end != text.data() + text.size())
      return in_.error("expected a value");
    return real ? Attr(number) : Attr(integer);
  }

  Result<Attr> named_value(double sign) {
    const std::string_view word = in_.run(is_word);
    if (sign > 0 && (word == "true" || word == "false")) return Attr(word == "true");
    if (word == "inf") return Attr(sign * std::numeric_limits<double>::infinity());
    if (word == "nan") return Attr(sign * std::numeric_limits<double>::quiet_NaN());
    return in_.error("expected a value");
  }

  Result<Attr> int_list() {
    PLIMSOLL_TRY(in_.expect('['));
    std::vector<int64_t> list;
    if (in_.take(']')) return Attr(std::move(list));
    do {
      PLIMSOLL_ASSIGN(Attr element, attribute_value_of_list());
      list.push_back(std::get<int64_t>(element));
    } while (in_.take(','));
    PLIMSOLL_TRY(in_.expect(']'));
    return Attr(std::move(list));
  }

  Result<Attr> attribute_value_of_list() {
    if (in_.peek() == '[' || in_.peek() == '"') return in_.error("expected an integer");
    PLIMSOLL_ASSIGN(Attr element, attribute_value());
    if (!std::holds_alternative<int64_t>(element)) return in_.error("expected an integer");
    return element;
  }

  Result<TensorType> type() {
    PLIMSOLL_ASSIGN(const std::string_view word, in_.word("a type"));
    const auto dtype = parse_dtype(word);
    if (!dtype) return in_.error(fmt::format("unknown element type '{}'", word));
    PLIMSOLL_TRY(in_.expect('['));
    std::vector<int64_t> extents;
    do {
      PLIMSOLL_ASSIGN(const int64_t extent, in_.count("an extent", kMaxElements));
      extents.push_back(extent);
      if (extents.size() > Shape::kMaxRank) return in_.error("too many axes");
    } while (in_.take(','));
    PLIMSOLL_TRY(in_.expect(']'));
    const Shape shape{std::span<const int64_t>(extents)};
    if (!is_sound(shape)) return in_.error(fmt::format("impossible shape {}", to_string(shape)));
    return TensorType{*dtype, shape};
  }

  /// Optional; the device where none stands.
  Result<MemorySpace> space() {
    if (in_.peek() != 'h' && in_.peek() != 'd') return MemorySpace::kDevice;
    const std::string_view word = in_.run(is_word);
    const auto found = parse_space(word);
    if (!found) return in_.error(fmt::format("unknown memory space '{}'", word));
    return *found;
  }

  Status result_types(std::vector<TensorType>& types, std::vector<MemorySpace>& spaces) {
    do {
      PLIMSOLL_ASSIGN(types.emplace_back(), type());
      PLIMSOLL_ASSIGN(spaces.emplace_back(), space());
    } while (in_.take(','));
    return Ok{};
  }

  Result<int64_t> block() {
    if (in_.peek() == 'u' && in_.run(is_word) == "update") return kUpdateBlock;
    return in_.count("a block's number", std::numeric_limits<int32_t>::max());
  }

  Status suffixes(Op& op) {
    while (in_.peek() != '\n' && in_.peek() != '@') {
      const std::string_view word = in_.run(is_word);
      if (word == "recomputed") {
        op.recomputed = true;
      } else if (word == "queue" && in_.take('=')) {
        const auto queue = find_name(in_.run(is_word), kNetworkQueue);
        if (!queue) return in_.error("unknown queue");
        op.queue = *queue;
      } else if (word == "block" && in_.take('=')) {
        PLIMSOLL_ASSIGN(const int64_t number, block());
        op.block = static_cast<int32_t>(number);
      } else {
        return in_.error("expected 'recomputed', 'queue=', 'block=', '@<layer>' or the line's end");
      }
    }
    if (!in_.take('@')) return Ok{};
    if (in_.peek() != '"') {
      op.layer = in_.run(is_layer);
      return Ok{};
    }
    PLIMSOLL_ASSIGN(op.layer, in_.quoted());
    return Ok{};
  }

  /// The op against its definition and the types as written.
  Status check(const Op& op, const std::vector<TensorType>& types) {
    PLIMSOLL_TRY(check_attrs(*op.def, op.attrs));
    std::vector<TensorType> inferred;
    if (op.def->state == StateAccess::kRead) {
      const auto it = states_.find(op.attrs.str("name"));
      if (it == states_.end())
        return Error{ErrorCode::kBadData, fmt::format("state \"{}\" is not declared", op.attrs.str("name"))};
      if (!op.inputs.empty()) return Error{ErrorCode::kBadData, "state takes no operands"};
      inferred = {it->second};
    } else {
      PLIMSOLL_ASSIGN(inferred, op.def->infer(op_types(graph_, op)));
    }
    if (inferred == types) return Ok{};
    return Error{ErrorCode::kBadData,
                 fmt::format("{}: types as written differ from ({})", op.def->name, listed(inferred))};
  }

  static std::string listed(const std::vector<TensorType>& types) {
    std::string out;
    for (const TensorType& t : types) out += (out.empty() ? "" : ", ") + to_string(t);
    return out;
  }

  Status append(Op op, const std::vector<int64_t>& results, const std::vector<TensorType>& types,
                const std::vector<MemorySpace>& spaces, const std::string& place) {
    if (results.size() != types.size())
      return Error{ErrorCode::kBadData, fmt::format("{} results, {} types", results.size(), types.size()),
                   place};
    const OpId id = graph_.append(std::move(op), types);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId v = graph_.op(id).outputs[i];
      if (graph_.value(v).space != spaces[i])
        return Error{ErrorCode::kBadData,
                     fmt::format("%{} lies in {}, not in {}", results[i], name(graph_.value(v).space),
                                 name(spaces[i])),
                     place};
      if (!values_.emplace(results[i], v).second)
        return Error{ErrorCode::kBadData, fmt::format("%{} is made twice", results[i]), place};
    }
    return Ok{};
  }

  Cursor in_;
  OpLookup lookup_;
  Graph graph_;
  std::unordered_map<int64_t, ValueId> values_;
  std::unordered_map<std::string, TensorType> states_;
};

}  // namespace

Result<Graph> parse(std::string_view text, OpLookup lookup) {
  if (text.size() > kMaxTextBytes)
    return Error{ErrorCode::kBadData,
                 fmt::format("the text has {} bytes, at most {} are read", text.size(), kMaxTextBytes)};
  return Parser(text, lookup).run();
}

}  // namespace plimsoll::ir
