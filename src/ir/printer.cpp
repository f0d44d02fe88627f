// See printer.h. Defaults are left out: the compute queue, device memory, no block, no layer.
#include "ir/printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/op_def.h"

namespace plimsoll::ir {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

/// Layer names are dotted words; anything else is quoted.
std::string layer_text(std::string_view layer) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '/';
  };
  return std::all_of(layer.begin(), layer.end(), plain) ? std::string(layer) : quoted(layer);
}

/// Shortest form that reads back to the same bits.
std::string float_text(double v) {
  std::string text = fmt::format("{}", v);
  if (std::isfinite(v) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string space_suffix(MemorySpace space) {
  return space == MemorySpace::kDevice ? "" : fmt::format(" {}", name(space));
}

}  // namespace

std::string to_string(const Attr& attr) {
  if (const auto* flag = std::get_if<bool>(&attr)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&attr)) return fmt::format("{}", *number);
  if (const auto* real = std::get_if<double>(&attr)) return float_text(*real);
  if (const auto* text = std::get_if<std::string>(&attr)) return quoted(*text);
  return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(attr), ","));
}

std::string Printer::program() {
  std::string text = fmt::format("graph {}\n", quoted(graph_.name));
  for (const StateDecl& s : graph_.states())
    text += fmt::format("state {} : {} {}{}\n", quoted(s.name), to_string(s.type), name(s.state_class),
                        space_suffix(s.space));
  for (const OpId id : graph_.order())
    text += (id.valid() && static_cast<size_t>(id.index) < graph_.num_ops() ? op_line(graph_.op(id)) : "?") +
            '\n';
  return text;
}

std::string Printer::op_line(const Op& op) {
  // Operands are numbered first where they are used before they are made, which only a broken program does.
  std::vector<std::string> inputs;
  for (const ValueId v : op.inputs) inputs.push_back(v.valid() ? value_name(v) : "_");
  std::vector<std::string> outputs;
  std::vector<std::string> types;
  for (const ValueId v : op.outputs) {
    outputs.push_back(value_name(v));
    types.push_back(type_of(v));
  }
  std::vector<std::string> attrs;
  for (const auto& [key, value] : op.attrs.entries())
    attrs.push_back(fmt::format("{}={}", key, to_string(value)));
  std::string line = outputs.empty() ? "" : fmt::format("{} = ", fmt::join(outputs, ", "));
  line += op.def != nullptr ? op.def->name : "?";
  if (!inputs.empty()) line += fmt::format("({})", fmt::join(inputs, ", "));
  if (!attrs.empty()) line += fmt::format(" {{{}}}", fmt::join(attrs, ", "));
  if (!types.empty()) line += fmt::format(" : {}", fmt::join(types, ", "));
  if (op.recomputed) line += " recomputed";
  if (op.queue != Queue::kCompute) line += fmt::format(" queue={}", name(op.queue));
  if (op.block == kUpdateBlock) line += " block=update";
  if (op.block >= 0) line += fmt::format(" block={}", op.block);
  if (!op.layer.empty()) line += " @" + layer_text(op.layer);
  return line;
}

std::string Printer::value_name(ValueId v) {
  return fmt::format("%{}", numbers_.try_emplace(v.index, numbers_.size()).first->second);
}

std::string Printer::type_of(ValueId v) const {
  if (static_cast<size_t>(v.index) >= graph_.num_values()) return "?";
  return to_string(graph_.type(v)) + space_suffix(graph_.value(v).space);
}

std::string print(const Graph& graph) { return Printer(graph).program(); }

}  // namespace plimsoll::ir
