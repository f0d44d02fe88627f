// Products with weights in few bits: the same bits as with the numbers that these stand for.
#include <gtest/gtest.h>

#include <vector>

#include "backends/cpu/quantized_weight.h"

namespace plimsoll::cpu {
namespace {

using namespace fixtures;

std::vector<uint32_t> product(const cpu::fixtures::QuantizedWeight& w, const cpu::fixtures::Tensor& x,
                              const Attrs& attrs, int threads) {
  return cpu::fixtures::run_with_quantized({"linear", {x, {w.type, {}}}, attrs}, 1, w, threads);
}

TEST(LinearQuantized, SameBitsAsWithItsNumbers) {
  using enum ir::DType;
  for (const ir::DType dtype : {kNf4, kNf4Double, kFp4, kFp4Double, kI8Rows})
    for (const bool transposed : {false, true})
      for (const char* precision : {"", "bf16"}) {
        const cpu::fixtures::QuantizedWeight w = cpu::fixtures::quantized_weight(dtype, 331, 200);
        const cpu::fixtures::Tensor x = cpu::fixtures::normal({2, 9, transposed ? 331 : 200}, 3);
        Attrs attrs{{"transposed", transposed}};
        if (*precision != 0) attrs.set("precision", std::string(precision));
        const std::vector<cpu::fixtures::Tensor> plain =
            cpu::fixtures::run_cpu({"linear", {x, w.numbers}, attrs});
        for (const int threads : {1, 3})
          EXPECT_EQ(product(w, x, attrs, threads), plain[0].bits)
              << ir::name(dtype) << " " << transposed << " " << precision << " " << threads;
      }
}

TEST(LinearQuantized, BandsAreOfTheResultsColumns) {
  const cpu::fixtures::QuantizedWeight w = cpu::fixtures::quantized_weight(ir::DType::kNf4Double, 300, 17000);
  const cpu::fixtures::Tensor x = cpu::fixtures::normal({2, 17000}, 3);
  EXPECT_EQ(product(w, x, {}, 2), cpu::fixtures::run_cpu({"linear", {x, w.numbers}, {}})[0].bits);
}

}  // namespace
}  // namespace plimsoll::cpu
