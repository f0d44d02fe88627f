// Documents shown as they are trained on.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cli/data/data_files.h"

namespace plimsoll::tokenizers {
class Tokenizer;
}

namespace plimsoll::cli {

struct SampleOptions {
  int64_t count = 3;
  const tokenizers::Tokenizer* tokenizer = nullptr;  ///< none: ids are shown, of texts the bytes
  bool json = false;
};

/// Prints the starts of documents from the whole of the data, at equal distances. Errors: kBadData, kIo.
Status print_samples(const std::vector<DataFile>& files, const SampleOptions& options);

}  // namespace plimsoll::cli
