// The text of kernels and the host's side of them name the same things.
#include "backends/cuda/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

namespace plimsoll::cuda {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kKernels = "backends/cuda/kernels/";

/// "module name" → type of arguments, of each match of `pattern` in the files that end so.
using Names = std::map<std::string, std::string>;

/// As launches name them: inline constexpr DeviceKernel<NormRows> kNormRows{"norm/norm", "norm_rows"};
Names declared() {
  static const std::regex kDeclared(
      R"re(inline constexpr DeviceKernel<(\w+)> k\w+\{\s*"([\w/]+)",\s*"(\w+)"\};)re");
  Names names;
  for (const SourceFile& file : kernel_files()) {
    const std::string text(file.text);
    for (std::sregex_iterator at(text.begin(), text.end(), kDeclared), end; at != end; ++at)
      names[(*at)[2].str() + " " + (*at)[3].str()] = (*at)[1];
  }
  return names;
}

/// As the text has them: extern "C" __global__ void norm_rows(NormRows a) {
Names defined() {
  static const std::regex kDefined(
      R"re(extern "C" __global__ void (?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(\s*(?:const __grid_constant__ )?(\w+) \w+\) \{)re");
  Names names;
  for (const SourceFile& file : kernel_files()) {
    if (!file.path.ends_with(".cu")) continue;
    const std::string text(file.text);
    std::string module(file.path.substr(kKernels.size()));
    module.resize(module.size() - 3);
    for (std::sregex_iterator at(text.begin(), text.end(), kDefined), end; at != end; ++at)
      names[module + " " + (*at)[1].str()] = (*at)[2];
  }
  return names;
}

size_t count(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// A launch is checked against its declaration by the compiler, and that against the kernel here.
TEST(DeviceKernels, AreDeclaredWithTheArgumentsThatTheTextHas) {
  EXPECT_GT(declared().size(), 50U);
  EXPECT_EQ(declared(), defined());
}

TEST(DeviceKernels, AreAllRead) {
  size_t kernels = 0, declarations = 0;
  for (const SourceFile& file : kernel_files()) {
    kernels += count(file.text, "__global__");
    declarations += count(file.text, "inline constexpr DeviceKernel<");
  }
  EXPECT_EQ(kernels, defined().size()) << "a kernel is written in another form than this test reads";
  EXPECT_EQ(declarations, declared().size());
}

// The card may let its blocks in before the kernel before it has written what it reads.
TEST(DeviceKernels, BeginWithTheWaitForTheGridsBefore) {
  static const std::regex kBegun(R"re(__global__ void[^{]*\{\n  begin_grid\(\);\n)re");
  for (const SourceFile& file : kernel_files()) {
    const std::string text(file.text);
    const auto begun = std::distance(std::sregex_iterator(text.begin(), text.end(), kBegun), {});
    EXPECT_EQ(static_cast<size_t>(begun), count(text, "__global__")) << file.path;
  }
}

TEST(DeviceSource, HasAssemblyInFourFilesAlone) {
  for (const SourceFile& file : kernel_files()) {
    const bool may =
        file.path == "backends/cuda/device/convert.cuh" || file.path == "backends/cuda/device/mma.cuh" ||
        file.path == "backends/cuda/device/async.cuh" || file.path == "backends/cuda/device/grid.cuh";
    EXPECT_TRUE(may || file.text.find("asm") == std::string_view::npos) << file.path;
  }
}

TEST(ModuleSource, HoldsWhatItIncludesOnce) {
  const std::string source = module_source("norm/norm");
  EXPECT_EQ(count(source, "struct Operand {"), 1U);
  EXPECT_EQ(count(source, "__device__ __forceinline__ u16 to_bf16"), 1U);
  EXPECT_LT(source.find("struct Operand {"), source.find("struct NormRows {"));
  EXPECT_LT(source.find("struct NormRows {"), source.find("void norm_rows("));
  EXPECT_EQ(count(source, "philox4"), 0U) << "what it does not include";
  EXPECT_EQ(count(source, "#include \"") + count(source, "#pragma once"), 0U);
}

TEST(ModuleSource, SaysWhereALineIsFrom) {
  const std::string source = module_source("elementwise/random");
  const SourceFile* file = find_kernel_file("backends/cuda/kernels/elementwise/random.cu");
  ASSERT_NE(file, nullptr);
  const size_t line = count(file->text.substr(0, file->text.find("\nnamespace")), "\n") + 1;
  EXPECT_THAT(source,
              HasSubstr("#line " + std::to_string(line) +
                        " \"backends/cuda/kernels/elementwise/random.cu\"\n\nnamespace plimsoll::cuda {"));
}

TEST(ModuleNames, AreTheFilesOfKernels) {
  const std::vector<std::string> names = module_names();
  EXPECT_THAT(names, testing::Contains("norm/norm"));
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(find_kernel_file("backends/cuda/kernels/none.cu"), nullptr);
}

}  // namespace
}  // namespace plimsoll::cuda
