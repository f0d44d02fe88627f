// The choice of instruction set by PLIMSOLL_ISA.
#include "backends/cpu/kernels/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace plimsoll::cpu {
namespace {

class IsaTest : public ::testing::Test {
 protected:
  void TearDown() override { (void)select_isa(nullptr); }
};

TEST_F(IsaTest, NoCapTakesTheFastest) {
  for (const char* env : {static_cast<const char*>(nullptr), ""}) {
    const auto isa = select_isa(env);
    ASSERT_TRUE(isa.ok());
    EXPECT_EQ(*isa, fastest_isa());
    EXPECT_EQ(current_isa(), *isa);
    if (best_isa() != Isa::kAvx512Bf16) {
      EXPECT_EQ(*isa, best_isa());
    } else {  // whose vdpbf16ps is slower than fp32's fma on some
      EXPECT_TRUE(*isa == Isa::kAvx512 || *isa == Isa::kAvx512Bf16);
    }
  }
}

TEST_F(IsaTest, CapIsACap) {
  const Isa best = best_isa();
  for (const Isa cap : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16, Isa::kAmx}) {
    const auto isa = select_isa(std::string(isa_name(cap)).c_str());
    ASSERT_TRUE(isa.ok());
    EXPECT_EQ(*isa, std::min(cap, best));
    EXPECT_EQ(current_isa(), *isa);
    EXPECT_EQ(best_isa(), best) << "asking changed the answer";
    EXPECT_EQ(current_isa(), *isa) << "asking lifted the cap";
  }
}

TEST_F(IsaTest, UnknownWordIsAnErrorThatNamesTheVariable) {
  for (const char* bad : {"AVX2", "avx1024", "sse", " avx2", "portable "}) {
    const auto isa = select_isa(bad);
    ASSERT_FALSE(isa.ok()) << bad;
    EXPECT_EQ(isa.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(isa.error().message(), ::testing::HasSubstr(bad));
    EXPECT_THAT(isa.error().message(), ::testing::HasSubstr("PLIMSOLL_ISA"));
    EXPECT_THAT(isa.error().hint, ::testing::HasSubstr("avx512"));
  }
}

TEST_F(IsaTest, FeaturesAgreeWithTheChoice) {
  const auto features = cpu_features();
  const auto has = [&](const char* name) { return std::ranges::find(features, name) != features.end(); };
  EXPECT_EQ(best_isa() >= Isa::kAvx2, has("avx2") && has("fma"));
  const bool avx512 = has("avx512f") && has("avx512vl") && has("avx512dq") && has("avx512bw");
  EXPECT_EQ(best_isa() >= Isa::kAvx512, avx512);
  EXPECT_EQ(best_isa() >= Isa::kAvx512Bf16, avx512 && has("avx512_bf16"));
  if (best_isa() == Isa::kAmx) {  // but not the other way round: the system may refuse the tiles
    EXPECT_TRUE(has("amx_tile") && has("amx_bf16"));
  }
}

}  // namespace
}  // namespace plimsoll::cpu
