// The algorithms of cuBLASLt that were found to be the fastest for products, as a file keeps them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::cuda {

/// cublasLtMatmulAlgo_t, which the same version of the library takes again.
using Algorithm = std::array<uint64_t, 8>;

struct ProductChoices {
  int64_t library_version = 0;
  std::map<std::string, Algorithm> by_form = {};  ///< by the product's form, as Products::form_text has it
};

std::string choices_text(const ProductChoices& choices);
/// Strict. Errors: kBadData.
Result<ProductChoices> parse_choices(std::string_view text);

}  // namespace plimsoll::cuda
