#include "backends/cuda/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/source.h"
#include "card.h"

namespace plimsoll::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> given;  // options of the last compilation

/// A compiler that knows two architectures.
Compiler recording() {
  static int one = 0;
  Compiler c;
  c.version = [](int* major, int* minor) { return *major = 0, *minor = 0, 0; };
  c.error_text = [](int) { return "an error"; };
  c.create = [](Handle* program, const char*, const char*, int, const char**, const char**) {
    return *program = &one, 0;
  };
  c.destroy = [](Handle*) { return 0; };
  c.compile = [](Handle, int count, const char** texts) { return given.assign(texts, texts + count), 0; };
  c.log_size = [](Handle, size_t* bytes) { return *bytes = 0, 0; };
  c.log = [](Handle, char*) { return 0; };
  c.cubin_size = c.ptx_size = [](Handle, size_t* bytes) { return *bytes = 1, 0; };
  c.cubin = [](Handle, char* image) { return *image = 'c', 0; };
  c.ptx = [](Handle, char* image) { return *image = 'p', 0; };
  c.num_architectures = [](int* count) { return *count = 2, 0; };
  c.architectures = [](int* known) { return known[0] = 80, known[1] = 90, 0; };
  return c;
}

TEST(CompileModule, MakesMachineCodeForCardsThatTheCompilerKnows) {
  const Compiler compiler = recording();
  EXPECT_EQ(*compile_module(compiler, {"norm/norm", ""}, 80), "c");
  EXPECT_THAT(given, ElementsAre("--gpu-architecture=sm_80", "--std=c++17"));
  EXPECT_EQ(*compile_module(compiler, {"norm/norm", ""}, 90), "c");
  EXPECT_THAT(given, Contains("--gpu-architecture=sm_90a"));
}

TEST(CompileModule, MakesPtxOfTheNextOlderForCardsThatItDoesNot) {
  const Compiler compiler = recording();
  EXPECT_EQ(*compile_module(compiler, {"norm/norm", ""}, 89), "p");
  EXPECT_THAT(given, Contains("--gpu-architecture=compute_80"));
  EXPECT_EQ(*compile_module(compiler, {"norm/norm", ""}, 120), "p");
  const auto older = compile_module(compiler, {"norm/norm", ""}, 75);
  ASSERT_FALSE(older);
  EXPECT_THAT(older.error().message(), HasSubstr("compute capability 7.5"));
}

TEST(CompileModule, GivesItsMacrosToTheCompiler) {
  ASSERT_TRUE(compile_module(recording(), {"norm/norm", "HEAD_DIM=128 CAUSAL=1"}, 80));
  EXPECT_THAT(given, ElementsAre("-DHEAD_DIM=128", "-DCAUSAL=1", "--gpu-architecture=sm_80", "--std=c++17"));
}

// Without a card: the compiler alone.
TEST(CompileModule, CompilesForEveryGenerationOfCards) {
  const auto compiler = load_compiler();
  if (!compiler) GTEST_SKIP() << compiler.error().message();
  for (const int capability : {75, 80, 86, 89, 90, 100, 120}) {
    for (const std::string& module : module_names()) {
      const auto image = compile_module(**compiler, {module, ""}, capability);
      ASSERT_TRUE(image) << module << " for " << capability << ": " << image.error().hint;
      EXPECT_FALSE(image->empty());
    }
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
