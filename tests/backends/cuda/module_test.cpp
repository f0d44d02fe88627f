#include "backends/cuda/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>

#include "backends/cuda/source.h"
#include "card.h"
#include "io/temporary_folder.h"

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
  c.compile = [](Handle, int count, const char** texts) {
    static std::mutex turn;  // modules are compiled side by side
    const std::lock_guard lock(turn);
    return given.assign(texts, texts + count), 0;
  };
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

/// A driver that loads what it is given; the names of functions that were looked up.
std::vector<std::string> looked_up;
Driver loading() {
  static int one = 0;
  Driver d;
  d.error_name = d.error_text = [](int, const char** text) { return *text = "refused", 0; };
  d.module_load = [](Handle* module, const void*) { return *module = &one, 0; };
  d.module_unload = [](Handle) { return 0; };
  d.module_function = [](Handle* function, Handle, const char* name) {
    looked_up.emplace_back(name);
    return *function = &one, 0;
  };
  d.function_set = [](Handle, int, int bytes) { return bytes > 200 << 10 ? 1 : 0; };
  return d;
}

class ModulesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    looked_up.clear();
  }
  void TearDown() override {
    if (before_.empty())
      unsetenv("XDG_CACHE_HOME");
    else
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }
  [[nodiscard]] size_t num_cached() const {
    std::error_code none;
    const std::filesystem::directory_iterator files(cache_.path() + "/plimsoll/cuda", none);
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }
  const io::TemporaryFolder cache_;
  std::string before_;
  const Driver driver_ = loading();
  const Compiler compiler_ = recording();
};

TEST_F(ModulesTest, FindsAFunctionOnce) {
  Modules modules(driver_, compiler_, 80, true);
  ASSERT_TRUE(modules.find_images(plain_modules()));
  ASSERT_TRUE(modules.load());
  EXPECT_EQ(num_cached(), module_names().size());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(modules.function("norm/norm", "", "norm_rows", 0));
  EXPECT_THAT(looked_up, ElementsAre("norm_rows"));
  const auto too_much = modules.function("norm/norm", "", "norm_rows", 300 << 10);
  ASSERT_FALSE(too_much);
  EXPECT_THAT(too_much.error().message(), HasSubstr("shared memory of CUDA kernel norm_rows"));
  modules.unload();
}

TEST_F(ModulesTest, CompilesAFormWhenItIsNeededAndKeepsIt) {
  Modules modules(driver_, compiler_, 80, true);
  given.clear();
  ASSERT_TRUE(modules.function("norm/norm", "SOME_FORM=64", "norm_rows", 0));
  EXPECT_THAT(given, Contains("-DSOME_FORM=64"));
  EXPECT_EQ(num_cached(), 1U);
  given.clear();
  ASSERT_TRUE(modules.function("norm/norm", "SOME_FORM=64", "norm_rows", 0));
  EXPECT_TRUE(given.empty()) << "it was compiled again";
  ASSERT_TRUE(modules.function("norm/norm", "SOME_FORM=128", "norm_rows", 0));
  EXPECT_THAT(given, Contains("-DSOME_FORM=128"));
  EXPECT_THAT(looked_up, ElementsAre("norm_rows", "norm_rows"));
  modules.unload();
}

TEST_F(ModulesTest, CompilesTogetherWhatReadsTheSameMacros) {
  Modules modules(driver_, compiler_, 80, true);
  ASSERT_TRUE(modules.function("norm/norm_parts", "add_parts=add_parts", "add_parts",
                               0));  // a word of that module alone
  EXPECT_EQ(num_cached(), 1U);
  ASSERT_TRUE(modules.function("norm/sums", "granule_begin=granule_begin", "sum_columns", 0));
  EXPECT_GT(num_cached(), 3U) << "those that sum by granules";
  modules.unload();
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
