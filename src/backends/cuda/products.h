// Matrix products through cuBLASLt.
#pragma once

#include "backends/cuda/api.h"
#include "backends/cuda/stream.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// cuBLASLt with the scratch that a product brings along, and none of its own. Among algorithms that it
/// proposes the first is taken, from those that add up in a fixed order.
class Products {
 public:
  static Result<Products> create(const Blas& blas);
  Products(Products&& other) noexcept;
  Products& operator=(Products&&) = delete;
  ~Products();
  /// Async. Errors: kIo with cuBLASLt's number and the shape.
  Status multiply(const Product& product, Handle stream) const;

 private:
  Products(const Blas& blas, Handle handle) : blas_(&blas), handle_(handle) {}
  const Blas* blas_;
  Handle handle_;
};

}  // namespace plimsoll::cuda
