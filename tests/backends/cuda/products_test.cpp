// What cuBLASLt refuses does not run: neither a call's status nor that of the algorithm that it proposes is
// passed over.
#include "backends/cuda/products.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <utility>

namespace plimsoll::cuda {
namespace {

int state = 0, proposed = 1, multiplied = 0, asked = 0;
std::pair<const void*, const void*> factors;
constexpr uint64_t kKnown = 77;
uint64_t taken = 0;                       // the first word of the algorithm of the last product
std::map<int, const void*> set_pointers;  // attributes of a product that are addresses
std::map<int, uint32_t> set_words;        // and those of four bytes

/// A library that proposes an algorithm in the given state.
Blas blas() {
  static int one = 0;
  const auto make = [](Handle* handle) { return *handle = &one, 0; };
  Blas b;
  b.create = make;
  b.destroy = [](Handle) { return 0; };
  b.product_create = [](Handle* handle, int, int) { return *handle = &one, 0; };
  b.product_destroy = b.destroy;
  b.product_set = [](Handle, int attribute, const void* value, size_t bytes) {
    if (bytes == sizeof(void*)) std::memcpy(&set_pointers[attribute], value, bytes);
    if (bytes == sizeof(uint32_t)) std::memcpy(&set_words[attribute], value, bytes);
    return 0;
  };
  b.layout_create = [](Handle* handle, int, uint64_t, uint64_t, int64_t) { return *handle = &one, 0; };
  b.layout_destroy = b.destroy;
  b.preference_create = make;
  b.preference_destroy = b.destroy;
  b.preference_set = [](Handle, int, const void*, size_t) { return 0; };
  b.choose = [](Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, void* results, int* found) {
    // cublasLtMatmulHeuristicResult_t: algorithm 64 bytes, workspace 8, state.
    std::memcpy(static_cast<char*>(results) + 72, &state, sizeof state);
    ++asked;
    return *found = proposed, 0;
  };
  b.version = [] { return size_t{130000}; };
  b.check = [](Handle, Handle, Handle, Handle, Handle, Handle, const void* algorithm, void* result) {
    uint64_t first = 0;
    std::memcpy(&first, algorithm, sizeof first);
    const int refused = first == kKnown ? 0 : 15;
    std::memset(result, 0, 96);
    std::memcpy(static_cast<char*>(result) + 72, &refused, sizeof refused);
    return 0;
  };
  b.multiply = [](Handle, Handle, const void* alpha, const void*, Handle, const void*, Handle,
                  const void* beta, const void*, Handle, void*, Handle, const void* algorithm, void*, size_t,
                  Handle) {
    factors = {alpha, beta};
    std::memcpy(&taken, algorithm, sizeof taken);
    return ++multiplied, 0;
  };
  return b;
}

TEST(Products, AskOnceForEachForm) {
  const Blas library = blas();
  auto products = Products::create(library);
  ASSERT_TRUE(products);
  alignas(16) static std::byte at[256];
  asked = 0;
  Product product{.a = at, .b = at, .d = at, .m = 2, .n = 3, .k = 4};
  EXPECT_TRUE(products->multiply(product, nullptr));
  product.adds = true;  // no matter of the algorithm
  product.b = at + 16;
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(asked, 1);
  product.b = at + 4;  // another alignment
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(asked, 2);
  product.b_transposed = true;
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(asked, 3);
}

// One form for all places of a bias, and each product adds its own.
TEST(Products, AddTheBiasThatEachIsGiven) {
  constexpr int kBiasPointer = 8;
  const Blas library = blas();
  auto products = Products::create(library);
  ASSERT_TRUE(products);
  alignas(16) static std::byte at[256];
  asked = 0;
  Product product{.a = at, .b = at, .d = at, .m = 2, .n = 3, .k = 4, .bias = at + 64};
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(set_pointers[kBiasPointer], at + 64);
  product.bias = at + 16;
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(set_pointers[kBiasPointer], at + 16);
  EXPECT_EQ(asked, 1);
}

// d's transpose is computed, with b as the first operand.
TEST(Products, SumAnOperandBesideThem) {
  constexpr int kEpilogue = 7, kBiasPointer = 8, kSumsOfFirst = 256, kSumsOfSecond = 512;
  const Blas library = blas();
  auto products = Products::create(library);
  ASSERT_TRUE(products);
  alignas(16) static std::byte at[256];
  Product product{.a = at, .b = at, .d = at, .m = 2, .n = 3, .k = 4, .adds = true, .sums = at + 64};
  const std::string of_a = Products::form_text(product);
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(set_words[kEpilogue], kSumsOfSecond);
  EXPECT_EQ(set_pointers[kBiasPointer], at + 64);
  product.sums_of_b = true;
  product.sums = at + 32;
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(set_words[kEpilogue], kSumsOfFirst);
  EXPECT_EQ(set_pointers[kBiasPointer], at + 32);
  EXPECT_NE(Products::form_text(product), of_a);
}

// Scales go along with operands in FP8, the factor with the product.
TEST(Products, PointAtScalesAndFactors) {
  constexpr int kPointerOfA = 17, kPointerOfB = 18;
  const Blas library = blas();
  auto products = Products::create(library);
  ASSERT_TRUE(products);
  alignas(16) static std::byte at[256];
  asked = 0;
  Product product{.a = at, .b = at, .d = at, .m = 16, .n = 16, .k = 16, .b_transposed = true};
  product.a_codes = CodedOperand{.scales = at + 32};
  product.b_codes = CodedOperand{.type = CodeType::kE5m2, .scales = at + 64};
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(set_pointers[kPointerOfA], at + 64) << "d's transpose is computed: b is the first operand";
  EXPECT_EQ(set_pointers[kPointerOfB], at + 32);
  product.a_codes->scales = at + 96;
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(set_pointers[kPointerOfB], at + 96);
  EXPECT_EQ(asked, 1);
  product.a_codes->mode = ScaleMode::kRow128;
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(asked, 2) << "another form";
  product.factor = reinterpret_cast<const float*>(at + 128);
  EXPECT_TRUE(products->multiply(product, nullptr));
  EXPECT_EQ(factors, (std::pair<const void*, const void*>(at + 128, at + 132)));
}

TEST(Products, TakeTheAlgorithmsThatWereChosenForTheLibrary) {
  const Blas library = blas();
  const Product product{.m = 7, .n = 3, .k = 4}, other{.m = 8, .n = 3, .k = 4}, third{.m = 9, .n = 3, .k = 4};
  for (const int64_t version : {130000, 130100}) {
    auto products = Products::create(library);
    ASSERT_TRUE(products);
    products->choose(
        {version, {{Products::form_text(product), {kKnown}}, {Products::form_text(other), {kKnown + 1}}}});
    EXPECT_TRUE(products->multiply(product, nullptr));
    EXPECT_EQ(taken, version == 130000 ? kKnown : 0) << "of another version the library's favourite";
    EXPECT_TRUE(products->multiply(other, nullptr));
    EXPECT_EQ(taken, 0U) << "what the library does not take";
    EXPECT_TRUE(products->multiply(third, nullptr));
    EXPECT_EQ(taken, 0U) << "of another form";
  }
}

TEST(Products, SayWhetherThereIsAnAlgorithm) {
  const Blas library = blas();
  auto products = Products::create(library);
  ASSERT_TRUE(products);
  multiplied = asked = 0;
  EXPECT_TRUE(products->multiplies({.m = 2, .n = 3, .k = 4}));
  proposed = 0;
  const Product other{.m = 5, .n = 3, .k = 4};
  EXPECT_FALSE(products->multiplies(other));
  EXPECT_FALSE(products->multiplies(other));
  proposed = 1;
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(multiplied, 0);
}

TEST(Products, RunNoAlgorithmThatIsRefused) {
  const Blas library = blas();
  auto products = Products::create(library);
  ASSERT_TRUE(products);
  multiplied = 0;
  EXPECT_TRUE(products->multiply({.m = 2, .n = 3, .k = 4}, nullptr));
  EXPECT_EQ(multiplied, 1);
  state = 15;  // CUBLAS_STATUS_NOT_SUPPORTED
  const Product product{.m = 5, .n = 3, .k = 4};
  const Status refused = products->multiply(product, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_NE(refused.error().message().find("status 15"), std::string::npos);
  state = 0, proposed = 0;
  EXPECT_FALSE(products->multiply(product, nullptr));
  EXPECT_EQ(multiplied, 1);
}

}  // namespace
}  // namespace plimsoll::cuda
