// WebP files and stored pixels; the last byte chooses the processor. Pictures whose Huffman codes do not fit
// are refused by name.
#include "image_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  image_file::check(std::as_bytes(std::span(data, size - 1)), data[size - 1]);
  return 0;
}
