# cmake -DOUTPUT=FILE.cpp -DROOT=src -DSOURCES="a;b" -P embed_kernels.cmake: the texts of CUDA sources as a C++ file that
# gives them by their paths below ROOT.
set(text "// Made by cmake/embed_kernels.cmake.\n#include \"backends/cuda/source.h\"\n\nnamespace plimsoll::cuda {\n\n")
string(APPEND text "std::span<const SourceFile> kernel_files() {\n  static constexpr SourceFile files[] = {\n")
foreach(source ${SOURCES})
  file(READ ${source} content)
  file(RELATIVE_PATH path ${ROOT} ${source})
  string(APPEND text "      {\"${path}\", R\"PLIMSOLL(${content})PLIMSOLL\"},\n")
endforeach()
string(APPEND text "  };\n  return files;\n}\n\n}  // namespace plimsoll::cuda\n")
file(WRITE ${OUTPUT} "${text}")
