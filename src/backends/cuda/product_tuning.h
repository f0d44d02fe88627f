// Times the algorithms that cuBLASLt proposes for products, and chooses the fastest of each.
#pragma once

#include <span>

#include "backends/cuda/api.h"
#include "backends/cuda/product_choices.h"
#include "backends/cuda/products.h"
#include "backends/cuda/stream.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// Of each product the form alone counts: it is computed in memory that is taken for it and given back, on
/// random operands. Another algorithm than the library's favourite is taken if it is quicker by a fiftieth.
/// Products of operands in FP8 or FP4 keep the favourite, and so do those that the library refuses.
/// The context is current. Errors: of the driver, where there is too little memory too.
Result<ProductChoices> tune_products(const Driver& driver, const Blas& blas, Products& products,
                                     std::span<const Product> wanted, Handle stream);

}  // namespace plimsoll::cuda
