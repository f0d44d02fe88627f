#include "backends/cuda/products.h"

#include <utility>

namespace plimsoll::cuda {
namespace {

// cublasLt.h, cublas_api.h and library_types.h of CUDA 13.0.
constexpr int kTransposeA = 3, kTransposeB = 4;          // CUBLASLT_MATMUL_DESC_*
constexpr int kMaxWorkspace = 1, kReductionSchemes = 3;  // CUBLASLT_MATMUL_PREF_*
constexpr int kAlignments[] = {5, 6, 7, 8};              // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{A,B,C,D}_BYTES
constexpr uint32_t kInOrder = 2;                         // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, and none
constexpr int kSumsF32 = 68, kSumsTf32 = 77;             // CUBLAS_COMPUTE_32F, _FAST_TF32
constexpr int kRealF32 = 0, kRealF16 = 2, kRealBf16 = 14;  // CUDA_R_*
constexpr int32_t kPlain = 0, kTransposed = 1;             // CUBLAS_OP_*

struct Choice {
  uint64_t algorithm[8];
  size_t workspace_bytes;
  int state;
  float waves;
  int reserved[4];
};

/// Of an address, at most 16: more than that depends on where the plan put a storage, and the algorithm that
/// is chosen, and with it the bits, must not.
uint32_t alignment(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  uint32_t bytes = 16;
  while (address % bytes != 0) bytes /= 2;
  return bytes;
}

int real_type(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kBf16:
      return kRealBf16;
    case ir::DType::kF16:
      return kRealF16;
    default:
      return kRealF32;
  }
}

/// A description of the library's, destroyed with the object.
struct Owned {
  Handle handle = nullptr;
  int (*destroy)(Handle) = nullptr;
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (handle != nullptr) destroy(handle);
  }
};

struct Descriptions {
  Owned product, preference, a, b, d;
};

/// cuBLASLt counts in columns: a row-major matrix is its transpose's column-major one, so that d = a b is
/// computed as dᵀ = bᵀ aᵀ, with b its first operand.
int describe(const Blas& blas, const Product& p, Descriptions& out) {
  out.product.destroy = blas.product_destroy;
  out.preference.destroy = blas.preference_destroy;
  out.a.destroy = out.b.destroy = out.d.destroy = blas.layout_destroy;
  const int64_t columns_a = p.a_transposed ? p.m : p.k, rows_a = p.a_transposed ? p.k : p.m;
  const int64_t columns_b = p.b_transposed ? p.k : p.n, rows_b = p.b_transposed ? p.n : p.k;
  const int32_t first = p.b_transposed ? kTransposed : kPlain, second = p.a_transposed ? kTransposed : kPlain;
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  const auto pitch = [](int64_t given, int64_t dense) { return given == 0 ? dense : given; };
  int error = blas.product_create(&out.product.handle, p.tf32 ? kSumsTf32 : kSumsF32, kRealF32);
  const auto then = [&](auto call) {
    if (error == 0) error = call();
  };
  then([&] { return blas.product_set(out.product.handle, kTransposeA, &first, sizeof first); });
  then([&] { return blas.product_set(out.product.handle, kTransposeB, &second, sizeof second); });
  then([&] {
    return blas.layout_create(&out.b.handle, real_type(p.in), size(columns_b), size(rows_b),
                              pitch(p.ldb, columns_b));
  });
  then([&] {
    return blas.layout_create(&out.a.handle, real_type(p.in), size(columns_a), size(rows_a),
                              pitch(p.lda, columns_a));
  });
  then([&] {
    return blas.layout_create(&out.d.handle, real_type(p.out), size(p.n), size(p.m), pitch(p.ldd, p.n));
  });
  then([&] { return blas.preference_create(&out.preference.handle); });
  const uint64_t workspace = p.workspace == nullptr ? 0 : static_cast<uint64_t>(kProductWorkspace);
  then([&] {
    return blas.preference_set(out.preference.handle, kMaxWorkspace, &workspace, sizeof workspace);
  });
  then([&] {
    return blas.preference_set(out.preference.handle, kReductionSchemes, &kInOrder, sizeof kInOrder);
  });
  const void* addresses[] = {p.b, p.a, p.d, p.d};
  for (size_t i = 0; i < 4; ++i) {
    const uint32_t bytes = alignment(addresses[i]);
    then([&] { return blas.preference_set(out.preference.handle, kAlignments[i], &bytes, sizeof bytes); });
  }
  return error;
}

}  // namespace

Result<Products> Products::create(const Blas& blas) {
  Handle handle = nullptr;
  if (const int error = blas.create(&handle); error != 0)
    return Error{ErrorCode::kIo, "cuBLASLt cannot begin: status " + std::to_string(error), "runtime.device",
                 "free memory on the card"};
  return Products(blas, handle);
}

Products::Products(Products&& other) noexcept
    : blas_(other.blas_), handle_(std::exchange(other.handle_, nullptr)) {}

Products::~Products() {
  if (handle_ != nullptr) blas_->destroy(handle_);
}

Status Products::multiply(const Product& p, Handle stream) const {
  Descriptions about;
  int error = describe(*blas_, p, about), found = 0;
  Choice choice{};
  if (error == 0)
    error = blas_->choose(handle_, about.product.handle, about.b.handle, about.a.handle, about.d.handle,
                          about.d.handle, about.preference.handle, 1, &choice, &found);
  if (error == 0 && found == 0) error = -1;
  if (error == 0) error = choice.state;  // of what it proposes it may say that it cannot do it
  const float one = 1, beta = p.adds ? 1.0F : 0.0F;
  if (error == 0)
    error = blas_->multiply(handle_, about.product.handle, &one, p.b, about.b.handle, p.a, about.a.handle,
                            &beta, p.d, about.d.handle, p.d, about.d.handle, choice.algorithm, p.workspace,
                            p.workspace == nullptr ? 0 : static_cast<size_t>(kProductWorkspace), stream);
  if (error == 0) return Ok{};
  return Error{ErrorCode::kIo,
               "cuBLASLt refuses a product of " + std::to_string(p.m) + " x " + std::to_string(p.k) +
                   " and " + std::to_string(p.k) + " x " + std::to_string(p.n) + ": status " +
                   std::to_string(error),
               std::string(ir::name(p.in))};
}

}  // namespace plimsoll::cuda
