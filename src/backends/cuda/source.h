// The text of the kernels' device side, which the program carries: kernels/**/*.cu, and the headers that they
// share with each other and with the host.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::cuda {

struct SourceFile {
  std::string_view path;  ///< as #include lines name it: "backends/cuda/kernels/norm/norm.cu"
  std::string_view text;
};
/// All of them, sorted by path. Made by cmake/embed_kernels.cmake.
std::span<const SourceFile> kernel_files();
/// Null where there is none of that path.
const SourceFile* find_kernel_file(std::string_view path);

/// What is compiled as one: "norm/norm" for kernels/norm/norm.cu. Sorted.
std::vector<std::string> module_names();
/// The module's text with the files that it includes put in their places, each once; lines say where they are
/// from. An #include of <…> stays as it is. The module is one of module_names().
std::string module_source(std::string_view module);

}  // namespace plimsoll::cuda
