// Products with weights in few bits: the same bits as with the numbers that these stand for.
#include <gtest/gtest.h>

#include "backends/cpu/quantized_weight.h"

namespace plimsoll::cpu::fixtures {
namespace {

using enum ir::DType;

/// Rows that hold no whole number of blocks, and rows of 8 elements at a time.
TEST(LinearQuantized, SameBitsAsWithItsNumbers) {
  for (const ir::DType dtype : {kNf4, kNf4Double, kFp4, kFp4Double, kI8Rows})
    for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{331, 203}, {336, 200}})
      for (const bool transposed : {false, true})
        for (const char* precision : {"", "bf16", "f16", "tf32"}) {
          Attrs attrs{{"transposed", transposed}};
          if (*precision != 0) attrs.set("precision", std::string(precision));
          const bool is_f32 = *precision == 0;
          expect_as_numbers({"linear", {normal({2, 9, transposed ? rows : cols}, 3), {}}, attrs}, 1,
                            quantized_weight(dtype, rows, cols), is_f32 ? 2e-6 : 1e-5,
                            std::string(ir::name(dtype)) + " " + precision);
        }
}

TEST(LinearQuantized, BandsAreOfTheResultsColumns) {
  const QuantizedWeight w = quantized_weight(kNf4Double, 300, 17000);
  expect_as_numbers({"linear", {normal({2, 17000}, 3), {}}, {}}, 1, w, 2e-5, "bands");
}

/// A bias, and a result that a product is not stored in at once.
TEST(LinearQuantized, WithABiasInWhateverItIsStored) {
  const QuantizedWeight w = quantized_weight(kNf4, 96, 64);
  for (const char* out : {"f32", "bf16"}) {
    const Attrs attrs{{"transposed", false}, {"out", std::string(out)}};
    const double tolerance = std::string(out) == "bf16" ? kBf16Step : 2e-6;
    expect_as_numbers({"linear", {normal({3, 64}, 3), {}, normal({96}, 4)}, attrs}, 1, w, tolerance, out);
  }
}

}  // namespace
}  // namespace plimsoll::cpu::fixtures
