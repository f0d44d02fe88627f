// What the verifier lets pass and what it refuses, with op, layer and line.
#include "ir/verifier.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/graph_testing.h"

namespace plimsoll::ir_testing {
namespace {

std::string complaint(const Graph& graph) {
  const Status status = ir::verify(graph);
  return status ? std::string() : status.error().message();
}

TEST(Verifier, PassesTheSample) { EXPECT_EQ(complaint(sample()), ""); }

/// Programs in text: the parser has checked each op, the verifier sees what spans ops.
struct Case {
  std::string name;
  std::string text;
  std::string message;  ///< empty: sound
};

constexpr const char* kStates = R"(graph "g"
state "w" : f32[4,6] parameter
state "v" : f32[4,6] parameter
%0 = state {name="w"} : f32[4,6]
%1 = state {name="v"} : f32[4,6]
%2 = fill {shape=[2,6], value=1.0} : f32[2,6]
%3 = fill {shape=[2,4], value=1.0} : f32[2,4]
)";

TEST(Verifier, FollowsConsumedStorages) {
  const std::vector<Case> rows = {
      {"consumed and assigned", R"(%4 = linear_dw(%2, %3, %0) : f32[4,6]
state_assign(%4) {name="w"}
%5 = state {name="w"} : f32[4,6]
%6 = add(%4, %5) : f32[4,6]
)",
       ""},
      {"read after its consumer", R"(%4 = linear_dw(%2, %3, %0) : f32[4,6] @a
%5 = silu(%0) : f32[4,6] @b
)",
       "silu: operand 0 is read after linear_dw has taken its storage: b, line 9"},
      {"consumed twice", R"(%4 = linear_dw(%2, %3, %0) : f32[4,6]
%5 = linear_dw(%2, %3, %0) : f32[4,6]
)",
       "linear_dw: operand 2 is read after linear_dw has taken its storage: line 9"},
      {"read through a view", R"(%4 = reshape(%0) {shape=[24]} : f32[24]
%5 = linear_dw(%2, %3, %0) : f32[4,6]
%6 = silu(%4) : f32[24]
)",
       "silu: operand 0 is read after linear_dw has taken its storage: line 10"},
      {"consumed through a view", R"(%4 = reshape(%0) {shape=[24]} : f32[24]
%5 = reshape(%4) {shape=[4,6]} : f32[4,6]
%6 = linear_dw(%2, %3, %5) : f32[4,6]
%7 = silu(%0) : f32[4,6]
)",
       "silu: operand 0 is read after linear_dw has taken its storage: line 11"},
      {"another part of a split", R"(%4, %5 = split(%0) {sizes=[2,4]} : f32[4,2], f32[4,4]
%6, %7 = split(%5) {sizes=[1,3]} : f32[4,1], f32[4,3]
%8 = fill {shape=[2,2], value=1.0} : f32[2,2]
%9 = linear_dw(%8, %3, %4) : f32[4,2]
%10 = silu(%7) : f32[4,3]
%11 = state {name="v"} : f32[4,6]
)",
       ""},
      {"the same part of a split", R"(%4, %5 = split(%0) {sizes=[2,4]} : f32[4,2], f32[4,4]
%6, %7 = split(%0) {sizes=[1,5]} : f32[4,1], f32[4,5]
%8 = fill {shape=[2,2], value=1.0} : f32[2,2]
%9 = linear_dw(%8, %3, %4) : f32[4,2]
%10 = silu(%5) : f32[4,4]
%11 = silu(%7) : f32[4,5]
)",
       "silu: operand 0 is read after linear_dw has taken its storage: line 13"},
      {"the same operand consumed and read", R"(%4 = fill {shape=[1], value=0.0} : f32[1]
%5 = fill {shape=[1,8], value=0.0} : f32[1,8]
%6, %7, %8 = adamw(%0, %0, %1, %1, %4, %5) {group=0} : f32[4,6], f32[4,6], f32[4,6]
)",
       "adamw: operand 0 is consumed and operand 1 reads it: line 10"},
      {"a state read again after it was consumed", R"(%4 = linear_dw(%2, %3, %0) : f32[4,6]
%5 = state {name="w"} : f32[4,6]
)",
       "state: \"w\" is read after linear_dw has taken its storage: line 9"},
      {"another read of the state, after it was consumed", R"(%4 = state {name="w"} : f32[4,6]
%5 = linear_dw(%2, %3, %0) : f32[4,6]
%6 = silu(%4) : f32[4,6]
)",
       "silu: operand 0 is read after linear_dw has taken its storage: line 10"},
      {"an old value after the assignment", R"(%4 = silu(%1) : f32[4,6]
state_assign(%4) {name="w"}
%5 = silu(%0) : f32[4,6]
)",
       "silu: operand 0 is read after state_assign has taken its storage: line 10"},
      {"a state assigned to itself", R"(state_assign(%0) {name="w"}
%4 = silu(%0) : f32[4,6]
)",
       ""},
      {"a value of another type assigned", R"(state_assign(%2) {name="w"}
)",
       "state_assign: the value is f32[2,6], \"w\" is declared f32[4,6]: line 8"},
      {"a copy out and back", R"(%4 = copy_start(%0) {to="host_pinned"} : f32[4,6] host_pinned queue=copy_out
%5 = copy_done(%4, %0) : f32[4,6] host_pinned
%6 = copy_start(%5) {to="device"} : f32[4,6] queue=copy_in
%7 = copy_done(%6, %5) : f32[4,6]
%8 = silu(%7) : f32[4,6]
)",
       ""},
      {"a copy read before it is done", R"(%4 = copy_start(%0) {to="disk"} : f32[4,6] disk queue=copy_out
%5 = silu(%4) : f32[4,6]
)",
       "silu: operand 0 is a copy under way: line 9"},
      {"a done that is no copy's", R"(%4 = copy_done(%0, %0) : f32[4,6]
)",
       "copy_done: operand 0 is no copy under way: line 8"},
      {"a done of another source", R"(%4 = copy_start(%0) {to="disk"} : f32[4,6] disk queue=copy_out
%5 = copy_done(%4, %1) : f32[4,6] disk
)",
       "copy_done: operand 1 is not the copy's source: line 9"},
      {"a source consumed under way", R"(%4 = copy_start(%0) {to="disk"} : f32[4,6] disk queue=copy_out
%5 = linear_dw(%2, %3, %0) : f32[4,6]
%6 = copy_done(%4, %0) : f32[4,6] disk
)",
       "copy_done: operand 1 is read after linear_dw has taken its storage: line 10"},
      {"a copy within a space", R"(%4 = copy_start(%0) {to="device"} : f32[4,6] queue=copy_in
)",
       "copy_start: copies within device: line 8"},
      {"a kernel on a copy queue", R"(%4 = silu(%0) : f32[4,6] queue=copy_in
)",
       "silu: stands on the queue copy_in: line 8"},
      {"a kernel of the host", R"(%4 = copy_start(%0) {to="host_pinned"} : f32[4,6] host_pinned queue=copy_out
%5 = copy_done(%4, %0) : f32[4,6] host_pinned
%6 = silu(%5) : f32[4,6] host_pinned queue=host
%7 = copy_start(%6) {to="device"} : f32[4,6] queue=copy_in
%8 = copy_done(%7, %6) : f32[4,6]
)",
       ""},
      {"a kernel of the host on the device's memory", R"(%4 = silu(%0) : f32[4,6] host_pinned queue=host
)",
       "silu: operand 0 lies in device, where the host's kernels do not reach it: line 8"},
      {"a copy on the host's queue", R"(%4 = copy_start(%0) {to="disk"} : f32[4,6] disk queue=host
)",
       "copy_start: stands on the queue host: line 8"},
      {"a kernel on the network's queue", R"(%4 = silu(%0) : f32[4,6] queue=network
)",
       "silu: stands on the queue network: line 8"},
      {"a view on the host's queue", R"(%4 = reshape(%0) {shape=[24]} : f32[24] queue=host
)",
       "reshape: stands on the queue host: line 8"},
      {"a value of another space assigned", R"(%4 = copy_start(%0) {to="disk"} : f32[4,6] disk queue=copy_out
%5 = copy_done(%4, %0) : f32[4,6] disk
state_assign(%5) {name="w"}
)",
       "state_assign: the value lies in disk, \"w\" in device: line 10"},
      {"windows assigned beside windows that are read", R"(%4 = reshape(%0) {shape=[24]} : f32[24]
%5, %6 = split(%4) {sizes=[8,16]} : f32[8], f32[16]
%7 = silu(%5) : f32[8]
state_assign(%7) {begin=0, name="w"}
%8 = silu(%6) : f32[16]
state_assign(%8) {begin=8, name="w"}
)",
       ""},
      {"a window read that was assigned", R"(%4 = reshape(%0) {shape=[24]} : f32[24]
%5, %6 = split(%4) {sizes=[8,16]} : f32[8], f32[16]
%7 = silu(%5) : f32[8]
state_assign(%7) {begin=4, name="w"}
%8 = silu(%6) : f32[16]
)",
       "silu: operand 0 is read after state_assign has taken its storage: line 12"},
      {"a state read behind windows", R"(%4 = fill {shape=[8], value=1.0} : f32[8]
state_assign(%4) {begin=0, name="w"}
%5 = state {name="w"} : f32[4,6]
)",
       "state: \"w\" is read after windows of it have been assigned: line 10"},
      {"windows that overlap", R"(%4 = fill {shape=[8], value=1.0} : f32[8]
state_assign(%4) {begin=0, name="w"}
state_assign(%4) {begin=7, name="w"}
)",
       "state_assign: elements of \"w\" are assigned twice: line 10"},
      {"a window beyond its state", R"(%4 = fill {shape=[8], value=1.0} : f32[8]
state_assign(%4) {begin=17, name="w"}
)",
       "state_assign: elements 17 to 25 are not in \"w\", which has 24: line 9"},
      {"a window of two axes", R"(state_assign(%2) {begin=0, name="w"}
)",
       "state_assign: the value is f32[2,6], \"w\" is declared f32[4,6]: line 8"},
      {"an assignment to nothing", R"(state_assign(%2) {name="u"} @layers.1
)",
       "state_assign: state \"u\" is not declared: layers.1, line 8"},
  };
  for (const auto& row : rows) EXPECT_EQ(complaint(parsed(kStates + row.text)), row.message) << row.name;
}

/// Damage that no text can express, done to `%2 = add(%0, %1)` in layer "sum", the third op.
struct Damage {
  std::string name;
  std::function<void(Graph&)> spoil;
  std::string message;
};

TEST(Verifier, RefusesABrokenGraph) {
  const auto add = [](Graph& g) -> ir::Op& { return g.op(ir::OpId{2}); };
  const auto order = [](Graph& g, std::vector<int32_t> ids) {
    std::vector<ir::OpId> changed;
    for (const int32_t id : ids) changed.push_back({id});
    g.set_order(changed);
  };
  const std::vector<Damage> rows = {
      {"nothing", [](Graph&) {}, ""},
      {"used before made",
       [&](Graph& g) {
         order(g, {0, 2, 1});
       },
       "add: operand 1 is used before it is made: sum, line 3"},
      {"operand's op removed",
       [&](Graph& g) {
         order(g, {1, 2});
       },
       "add: operand 0 is used before it is made: sum, line 3"},
      {"twice in the order",
       [&](Graph& g) {
         order(g, {0, 1, 2, 2});
       },
       "add: stands twice in the order: sum, line 5"},
      {"no such op",
       [&](Graph& g) {
         order(g, {0, 9});
       },
       "the order names an op that does not exist: line 3"},
      {"no definition", [&](Graph& g) { add(g).def = nullptr; },
       "the order names an op that does not exist: sum, line 4"},
      {"no such operand", [&](Graph& g) { add(g).inputs[1] = {99}; },
       "add: operand 1 does not exist: sum, line 4"},
      {"absent operand", [&](Graph& g) { add(g).inputs[1] = {}; }, "add: y is absent: sum, line 4"},
      {"too few operands", [&](Graph& g) { add(g).inputs.pop_back(); },
       "add: takes (x, y), given 1 operands: sum, line 4"},
      {"result of another op", [&](Graph& g) { add(g).outputs[0] = {0}; },
       "add: result 0 is made twice: sum, line 4"},
      {"result of an op to come", [&](Graph& g) { g.op(ir::OpId{0}).outputs[0] = {2}; },
       "fill: result 0 belongs to another op: line 2"},
      {"no such result", [&](Graph& g) { add(g).outputs[0] = {-1}; },
       "add: result 0 does not exist: sum, line 4"},
      {"no result", [&](Graph& g) { add(g).outputs.clear(); },
       "add: has 0 results, inference gives 1: sum, line 4"},
      {"another type", [&](Graph& g) { g.value(ValueId{2}).type.shape = Shape{5}; },
       "add: result 0 is f32[5], inference gives f32[2]: sum, line 4"},
      {"unknown attribute", [&](Graph& g) { add(g).attrs.set("x", true); },
       "add: unknown attribute x: sum, line 4"},
      {"mistyped attribute", [&](Graph& g) { g.op(ir::OpId{0}).attrs.set("value", std::string("1")); },
       "fill: attribute value must be a float, is \"1\": line 2"},
      {"missing attribute", [&](Graph& g) { g.op(ir::OpId{0}).attrs = {}; },
       "fill: attribute shape is missing: line 2"},
      {"impossible state",
       [&](Graph& g) {
         g.declare_state({"w", {DType::kF32, {0}}});
       },
       "state \"w\" has the impossible type f32[0]"},
  };
  for (const auto& row : rows) {
    Graph graph = parsed(R"(graph "g"
%0 = fill {shape=[2], value=1.0} : f32[2]
%1 = fill {shape=[2], value=1.0} : f32[2]
%2 = add(%0, %1) : f32[2] @sum
)");
    row.spoil(graph);
    EXPECT_EQ(complaint(graph), row.message) << row.name;
    (void)ir::print(graph);
  }
}

TEST(Verifier, ATypeOtherThanTheStatesIsRefused) {
  Graph graph = parsed("graph \"g\"\nstate \"w\" : f32[2] input\n%0 = state {name=\"w\"} : f32[2]\n");
  graph.value(ValueId{0}).type.dtype = DType::kI32;
  EXPECT_EQ(complaint(graph), "state: result 0 is i32[2], \"w\" is declared f32[2]: line 3");
}

}  // namespace
}  // namespace plimsoll::ir_testing
