// The fastest algorithms on the fake card, whose library proposes three: the second is the quickest, and sums
// in another order. See tests/CMakeLists.txt.
#include "backends/cuda/product_tuning.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cuda/cuda_device.h"
#include "ir/builder.h"
#include "ops/op_list.h"

namespace plimsoll::cuda {
namespace {

/// Where the fake library keeps which of its algorithms it is.
constexpr size_t kVariant = 4;

ir::Graph products() {
  ir::Graph graph;
  ir::Builder b(graph, ops::find_op);
  const auto input = [&](const char* name, const ir::Shape& shape) {
    return b.state({.name = name, .type = {ir::DType::kF32, shape}, .state_class = ir::StateClass::kInput});
  };
  const ir::ValueId x = input("x", {1, 64, 48}), w = input("w", {80, 48});
  b.op("linear", {b.op("linear", {x, w}, {{"transposed", false}}), w}, {{"transposed", true}});
  EXPECT_TRUE(b.status().ok());
  return graph;
}

TEST(ProductTuning, TakesTheQuickestOfWhatTheLibraryProposes) {
  if (std::getenv("PLIMSOLL_FAKE_CARD") == nullptr) GTEST_SKIP() << "ctest runs this with a fake card";
  const ir::Graph graph = products();
  const ir::Graph* const programs[] = {&graph};
  auto device = CudaDevice::create({.compiles_within = true});
  ASSERT_TRUE(device) << device.error().message();
  const auto text = (*device)->tune_products(programs);
  ASSERT_TRUE(text) << text.error().message();
  const auto choices = parse_choices(*text);
  ASSERT_TRUE(choices);
  EXPECT_EQ(choices->by_form.size(), 2U);
  for (const auto& [form, algorithm] : choices->by_form) EXPECT_EQ(algorithm[kVariant], 1U) << form;
  EXPECT_EQ(*(*device)->tune_products(programs), *text) << "the same again";
  EXPECT_TRUE(CudaDevice::create({.products = *text, .compiles_within = true}));
  EXPECT_FALSE(CudaDevice::create({.products = text->substr(1), .compiles_within = true}));
}

TEST(ProductTuning, NeedsMemoryForTheOperands) {
  if (std::getenv("PLIMSOLL_FAKE_CARD") == nullptr) GTEST_SKIP() << "ctest runs this with a fake card";
  setenv("PLIMSOLL_FAKE_CUDA", "small", 1);
  const ir::Graph graph = products();
  const ir::Graph* const programs[] = {&graph};
  auto device = CudaDevice::create({.compiles_within = true});
  ASSERT_TRUE(device);
  const auto text = (*device)->tune_products(programs);
  unsetenv("PLIMSOLL_FAKE_CUDA");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace plimsoll::cuda
