// Matrix products through cuBLASLt.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/api.h"
#include "backends/cuda/product_choices.h"
#include "backends/cuda/stream.h"
#include "base/result.h"

namespace plimsoll::cuda {

/// cuBLASLt with the scratch that a product brings along, and none of its own. A product takes the algorithm
/// that was chosen for its form, else the first that the library proposes, from those that add up in a fixed
/// order; it is asked once for each form.
class Products {
 public:
  static Result<Products> create(const Blas& blas);
  Products(Products&& other) noexcept;
  Products& operator=(Products&&) = delete;
  ~Products();
  /// Async. Errors: kIo with cuBLASLt's number and the shape.
  Status multiply(const Product& product, Handle stream);
  /// Whether cuBLASLt proposes an algorithm for it.
  bool multiplies(const Product& product);

  /// Before the first product: takes these algorithms, where the library is of the version that they were
  /// chosen with.
  void choose(const ProductChoices& choices);
  /// All of a product that the choice of an algorithm depends on, in one line.
  static std::string form_text(const Product& product);
  /// Algorithms that the library proposes for it, its favourite first, at most so many.
  std::vector<Algorithm> proposals(const Product& product, int most);
  /// Takes that algorithm for products of its form from now on. False: the library does not.
  bool take(const Product& product, const Algorithm& algorithm);

 private:
  /// What is computed beside it.
  enum class Beside : int { kNothing, kBias, kSumsOfA, kSumsOfB };
  static Beside beside(const Product& product);
  /// All of a product that the choice of an algorithm depends on.
  struct Form {
    std::array<int, 3> types;            ///< of a, b, d: cudaDataType
    std::array<int32_t, 2> scale_modes;  ///< of a and b: cublasLtMatmulMatrixScale_t; -1: none
    std::array<int64_t, 6> sizes;        ///< m, n, k and the pitches
    bool a_transposed, b_transposed, tf32;
    Beside beside;
    bool has_factor, has_workspace;
    std::array<uint32_t, 3> alignments;  ///< of a, b, d
    auto operator<=>(const Form&) const = default;
  };
  static Form form_of(const Product& product);
  /// What the library made of a form.
  struct Planned;
  Products(const Blas& blas, Handle handle);
  static std::string text_of(const Form& form);
  /// Calls return 0, or cuBLASLt's number; -1: it proposes no algorithm.
  [[nodiscard]] int plan(const Form& form, Planned& planned) const;
  [[nodiscard]] int describe(const Form& form, Planned& planned) const;
  [[nodiscard]] int check(const Form& form, const Algorithm& algorithm, Planned& planned) const;
  /// Planned once; its error says whether it can be used.
  Planned& planned(const Product& product);

  const Blas* blas_;
  Handle handle_;
  ProductChoices choices_;
  std::map<Form, std::unique_ptr<Planned>> planned_;
};

}  // namespace plimsoll::cuda
