// A weight of a block type in a session: one logical value, whose codes and scales a kernel reaches.
#include "runtime/component.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "numerics/blocks.h"
#include "ops/ops.h"
#include "runtime/session_testing.h"

namespace plimsoll::runtime {
namespace {

using ir::DType;

TEST(Component, LieInTheValuesStorage) {
  const auto plain = ir::components(DType::kBf16, 100, 100);
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0].bytes.count, 200);
  const auto parts = ir::components(DType::kNf4Double, 64 * 300, 300);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].num_elements, 64 * 150);
  EXPECT_EQ(parts[1].num_elements, 300);
  EXPECT_EQ(parts[2].num_elements, 2);
  EXPECT_EQ(parts[3].num_elements, 1);
  int64_t end = 0;
  for (const ir::Component& part : parts) {
    EXPECT_GE(part.offset, end) << part.name;
    EXPECT_EQ(part.offset % ir::kComponentAlignment, 0) << part.name;
    end = part.offset + part.bytes.count;
  }
  EXPECT_EQ(ir::storage_bytes(DType::kNf4Double, 64 * 300, 300).count, end);
}

/// A parameter of such a type is declared, bound, planned and given memory as any other.
TEST(Component, OfABoundParameter) {
  ir::Graph graph;
  graph.name = "reads";
  ir::Builder b(graph, ops::find_op);
  const ir::ValueId weight = b.state({"w", {DType::kNf4, {3, 64}}, ir::StateClass::kParameter});
  graph.declare_state({"y", {DType::kF32, {2}}, ir::StateClass::kOutput});
  b.assign("y", ops::fill(b, {2}, 1.0));
  ASSERT_TRUE(b.status().ok());
  cpu::CpuDevice device(1);
  auto program = session_testing::plan_program(std::move(graph), device.target());
  ASSERT_TRUE(program.ok());
  const passes::Place& place = program->binding.places[static_cast<size_t>(weight.index)];
  ASSERT_GE(place.storage, 0);
  EXPECT_EQ(program->binding.storages[static_cast<size_t>(place.storage)].bytes, 3 * 32 + 32 + 3 * 4);

  std::vector<passes::Program> programs;
  programs.push_back(std::move(*program));
  auto session = Session::create(device, *passes::plan_session(std::move(programs)));
  ASSERT_TRUE(session.ok());
  const auto bytes = session_testing::on_cpu<std::byte>(**session, "w");
  const TensorRef value{bytes.data(), (*session)->type("w"), ir::dense_strides({3, 64})};
  const auto codes = component(value, 0), scales = component(value, 1);
  EXPECT_EQ(codes.type, (ir::TensorType{DType::kU8, {96}}));
  EXPECT_EQ(scales.type, (ir::TensorType{DType::kF32, {3}}));

  std::vector<float> x(3 * 64), back(3 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const std::span bytes_of_scales(scales.data, 12), bytes_of_codes(codes.data, 96);
  numerics::quantize(numerics::Scheme::kNf4, {}, x, 3, 64, bytes_of_codes, bytes_of_scales);
  ASSERT_TRUE((*session)->run(0));
  EXPECT_EQ(session_testing::read_state<float>(**session, "y"), (std::vector<float>{1, 1}));
  numerics::dequantize(numerics::Scheme::kNf4, {}, bytes_of_codes, bytes_of_scales, 3, 64, back);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 0.16) << i;
}

}  // namespace
}  // namespace plimsoll::runtime
