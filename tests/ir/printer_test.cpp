// The text of a program, and that it reads back as the same program.
#include "ir/printer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "ir/graph_testing.h"

namespace plimsoll::ir_testing {
namespace {

TEST(Printer, WritesTheSketchedForm) { EXPECT_EQ(ir::print(sample()), kSampleText); }

TEST(Printer, RoundTripsToTheSameProgram) {
  const Graph graph = sample();
  const Graph again = parsed(ir::print(graph));
  EXPECT_EQ(ir::print(again), ir::print(graph));
  EXPECT_EQ(again.name, graph.name);
  EXPECT_EQ(again.states(), graph.states());
  ASSERT_EQ(again.order().size(), graph.order().size());
  for (size_t i = 0; i < graph.order().size(); ++i) {
    const ir::Op& a = graph.op(graph.order()[i]);
    const ir::Op& b = again.op(again.order()[i]);
    EXPECT_EQ(a.def, b.def);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.attrs, b.attrs);
    EXPECT_EQ(a.layer, b.layer);
    EXPECT_EQ(a.queue, b.queue);
    EXPECT_EQ(a.recomputed, b.recomputed);
    EXPECT_EQ(a.block, b.block);
    for (size_t k = 0; k < a.outputs.size(); ++k) {
      EXPECT_EQ(graph.type(a.outputs[k]), again.type(b.outputs[k]));
      EXPECT_EQ(graph.value(a.outputs[k]).space, again.value(b.outputs[k]).space);
    }
  }
}

TEST(Printer, FloatsKeepTheirBits) {
  for (const double v : {1e-5, 0.1, 1.0 / 3, 1.0, -0.0, 1e22, 123456789.0, 2.2250738585072014e-308, 5e-324,
                         1.7976931348623157e308, double{INFINITY}, double{-INFINITY}}) {
    const Graph g =
        parsed("graph \"g\"\n%0 = fill {shape=[1], value=" + ir::to_string(ir::Attr(v)) + "} : f32[1]\n");
    EXPECT_EQ(std::bit_cast<uint64_t>(g.op(g.order()[0]).attrs.f64("value")), std::bit_cast<uint64_t>(v))
        << v;
  }
  const Graph g = parsed("graph \"g\"\n%0 = fill {shape=[1], value=-nan} : f32[1]\n");
  EXPECT_TRUE(std::isnan(g.op(g.order()[0]).attrs.f64("value")));
  EXPECT_EQ(ir::print(parsed(ir::print(g))), ir::print(g));
}

TEST(Printer, NumbersValuesInOrderOfAppearance) {
  Graph graph = parsed(R"(graph "g"
%0 = fill {shape=[1], value=1.0} : f32[1]
%1 = fill {shape=[1], value=2.0} : f32[1]
%2 = add(%1, %0) : f32[1]
)");
  graph.set_order({graph.order()[1], graph.order()[0], graph.order()[2]});
  EXPECT_EQ(ir::print(graph), R"(graph "g"
%0 = fill {shape=[1], value=2.0} : f32[1]
%1 = fill {shape=[1], value=1.0} : f32[1]
%2 = add(%0, %1) : f32[1]
)");
}

}  // namespace
}  // namespace plimsoll::ir_testing
