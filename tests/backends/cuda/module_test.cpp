#include "backends/cuda/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "card.h"

namespace plimsoll::cuda {
namespace {

using ::testing::HasSubstr;

TEST(KernelSource, HasAllFilesBehindWhatTheyShare) {
  const std::string source = kernel_source();
  EXPECT_LT(source.find("#line 1 \"common.cuh\""), source.find("#line 1 \"elementwise.cu\""));
  EXPECT_THAT(source, HasSubstr("struct Operand"));
}

// Without a card: the compiler alone.
TEST(CompileKernels, CompilesForEveryGenerationOfCards) {
  const auto compiler = load_compiler();
  if (!compiler) GTEST_SKIP() << compiler.error().message();
  for (const int capability : {75, 80, 86, 89, 90, 100, 120}) {
    const auto image = compile_kernels(**compiler, capability);
    ASSERT_TRUE(image) << capability << ": " << image.error().hint;
    EXPECT_FALSE(image->empty());
  }
}

TEST(CardInfo, SaysWhatIsMissing) {
  if (fixtures::card() != nullptr) GTEST_SKIP() << "there is a card";
  const auto info = card_info(0);
  ASSERT_FALSE(info);
  EXPECT_FALSE(info.error().hint.empty());
}

TEST(CardInfo, ACardThatIsNotThereIsAnError) {
  if (fixtures::card() == nullptr) GTEST_SKIP() << "no card";
  EXPECT_EQ(card_info(99).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace plimsoll::cuda
