// Programs that the tests of printer, parser and verifier share.
#pragma once

#include <limits>
#include <stdexcept>
#include <string>

#include "ir/builder.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "ops/op_list.h"
#include "ops/ops.h"

namespace plimsoll::ir_testing {

using ir::Builder;
using ir::DType;
using ir::Graph;
using ir::Shape;
using ir::StateClass;
using ir::ValueId;

/// The graph of a text that is known to be sound.
inline Graph parsed(const std::string& text) {
  auto graph = ir::parse(text, ops::find_op);
  if (!graph) throw std::runtime_error(graph.error().message());
  return std::move(*graph);
}

/// A little of everything that the text can say.
inline Graph sample() {
  Graph graph;
  graph.name = "step";
  Builder b(graph, ops::find_op);
  const ValueId table = b.state({"embed.weight", {DType::kF32, {7, 4}}, StateClass::kParameter});
  const ValueId ids =
      b.state({"ids", {DType::kI32, {2, 3}}, StateClass::kInput, ir::MemorySpace::kHostPinned});
  const ValueId scale = b.state({"a \"b\"\\\n", {DType::kF32, {1}}, StateClass::kScalars});
  const ValueId acc = b.state({"grad", {DType::kF32, {7, 4}}, StateClass::kGradient});
  {
    const auto layers = b.scope("layers");
    const auto first = b.block(0, "0");
    const ValueId x = ops::embedding(b, table, ids);
    const auto norm = ops::rms_norm(b, x, ops::fill(b, {4}, 0.1), std::numeric_limits<double>::denorm_min());
    const ValueId loss = b.op("head_loss", {norm.y, table, ids, scale, {}, acc},
                              {{"grad", true}, {"transposed", false}, {"chunk_tokens", int64_t{256}}});
    const ir::OpId id = graph.value(loss).producer;
    b.assign("grad", graph.op(id).outputs[2]);
    b.assign("a \"b\"\\\n", loss);
    graph.op(id).recomputed = true;
    ops::copy_done(b, ops::copy_start(b, x, ir::MemorySpace::kDisk));
  }
  b.set_layer("odd layer");
  ops::fill(b, {1, 2}, -0.0);
  ops::fill(b, {1}, -std::numeric_limits<double>::infinity());
  const auto update = b.block(ir::kUpdateBlock, "last");
  ops::fill(b, {1}, 1e300);
  return graph;
}

inline constexpr const char* kSampleText = R"(graph "step"
state "embed.weight" : f32[7,4] parameter
state "ids" : i32[2,3] input host_pinned
state "a \"b\"\\\x0a" : f32[1] scalars
state "grad" : f32[7,4] gradient
%0 = state {name="embed.weight"} : f32[7,4]
%1 = state {name="ids"} : i32[2,3] host_pinned
%2 = state {name="a \"b\"\\\x0a"} : f32[1]
%3 = state {name="grad"} : f32[7,4]
%4 = embedding(%0, %1) : f32[2,3,4] block=0 @layers.0
%5 = fill {shape=[4], value=0.1} : f32[4] block=0 @layers.0
%6, %7 = rms_norm(%4, %5) {eps=5e-324} : f32[2,3,4], f32[2,3] block=0 @layers.0
%8, %9, %10 = head_loss(%6, %0, %1, %2, _, %3) {chunk_tokens=256, grad=true, transposed=false} : f32[1], f32[2,3,4], f32[7,4] recomputed block=0 @layers.0
state_assign(%10) {name="grad"} block=0 @layers.0
state_assign(%8) {name="a \"b\"\\\x0a"} block=0 @layers.0
%11 = copy_start(%4) {to="disk"} : f32[2,3,4] disk queue=copy_out block=0 @layers.0
%12 = copy_done(%11, %4) : f32[2,3,4] disk block=0 @layers.0
%13 = fill {shape=[1,2], value=-0.0} : f32[1,2] @"odd layer"
%14 = fill {shape=[1], value=-inf} : f32[1] @"odd layer"
%15 = fill {shape=[1], value=1e+300} : f32[1] block=update @"odd layer.last"
)";

}  // namespace plimsoll::ir_testing
