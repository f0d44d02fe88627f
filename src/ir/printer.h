// The textual form of a program, as shown in graph.h: what --dump-ir writes, golden tests hold and the
// parser reads back bit for bit.
#pragma once

#include <string>
#include <unordered_map>

#include "ir/graph.h"

namespace plimsoll::ir {

/// Prints the ops of the order, one a line. Values are numbered in order of appearance, so two graphs that
/// differ in their ids alone print alike. Also prints what the verifier would reject.
class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  /// The whole program: a line "graph", the states, the ops.
  std::string program();
  /// The ops' line numbers in `program()` start here; the first op of the order stands at this line.
  [[nodiscard]] size_t first_op_line() const { return 2 + graph_.states().size(); }

 private:
  std::string op_line(const Op& op);
  std::string value_name(ValueId v);
  std::string type_of(ValueId v) const;

  const Graph& graph_;
  std::unordered_map<int32_t, size_t> numbers_;
};

/// The program as text.
std::string print(const Graph& graph);
/// An attribute's value as text; a float always carries a point, an exponent, "inf" or "nan".
std::string to_string(const Attr& attr);

}  // namespace plimsoll::ir
