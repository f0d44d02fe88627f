#include "backends/cuda/products.h"

#include <utility>

#include "base/check.h"

namespace plimsoll::cuda {
namespace {

// cublasLt.h, cublas_api.h and library_types.h of CUDA 13.0.
constexpr int kTransposeA = 3, kTransposeB = 4;  // CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB
constexpr int kEpilogue = 7, kBiasPointer = 8;   // CUBLASLT_MATMUL_DESC_EPILOGUE, _BIAS_POINTER
constexpr uint32_t kEpilogueBias = 4;            // CUBLASLT_EPILOGUE_BIAS
constexpr int kMaxWorkspace = 1,
              kReductionSchemes = 3;  // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, _REDUCTION_SCHEME_MASK
constexpr int kAlignments[] = {5, 6, 7, 8};  // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{A,B,C,D}_BYTES
constexpr uint32_t kInOrder = 2;             // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, and none
constexpr uint32_t kMostAlignment = 16;
constexpr int kSumsF32 = 68, kSumsTf32 = 77;               // CUBLAS_COMPUTE_32F, _FAST_TF32
constexpr int kRealF32 = 0, kRealF16 = 2, kRealBf16 = 14;  // CUDA_R_*
constexpr int32_t kPlain = 0, kTransposed = 1;             // CUBLAS_OP_*

/// Of an address, at most 16: more than that depends on where the plan put a storage, and the algorithm that
/// is chosen, and with it the bits, must not.
uint32_t alignment(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  uint32_t bytes = kMostAlignment;
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

}  // namespace

/// cuBLASLt counts in columns: a row-major matrix is its transpose's column-major one, so that d = a b is
/// computed as dᵀ = bᵀ aᵀ, with b its first operand.
struct Products::Planned {
  /// cublasLtMatmulHeuristicResult_t.
  struct Choice {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
  };
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
  Owned product, preference, a, b, d;
  Choice choice{};
};

Products::Form Products::form_of(const Product& p) {
  const auto pitch = [](int64_t given, int64_t dense) { return given == 0 ? dense : given; };
  return {.in = p.in,
          .out = p.out,
          .sizes = {p.m, p.n, p.k, pitch(p.lda, p.a_transposed ? p.m : p.k),
                    pitch(p.ldb, p.b_transposed ? p.k : p.n), pitch(p.ldd, p.n)},
          .a_transposed = p.a_transposed,
          .b_transposed = p.b_transposed,
          .tf32 = p.tf32,
          .has_bias = p.bias != nullptr,
          .has_workspace = p.workspace != nullptr,
          .alignments = {alignment(p.a), alignment(p.b), alignment(p.d)}};
}

/// Describes it and asks for an algorithm. 0, or cuBLASLt's number; -1: it proposes none.
int Products::plan(const Form& form, Planned& out) const {
  const Blas& blas = *blas_;
  const auto [m, n, k, lda, ldb, ldd] = form.sizes;
  out.product.destroy = blas.product_destroy;
  out.preference.destroy = blas.preference_destroy;
  out.a.destroy = out.b.destroy = out.d.destroy = blas.layout_destroy;
  const int32_t first = form.b_transposed ? kTransposed : kPlain,
                second = form.a_transposed ? kTransposed : kPlain;
  const uint64_t workspace = form.has_workspace ? static_cast<uint64_t>(kProductWorkspace) : 0;
  int error = blas.product_create(&out.product.handle, form.tf32 ? kSumsTf32 : kSumsF32, kRealF32);
  const auto then = [&](auto call) {
    if (error == 0) error = call();
  };
  const auto set = [&](int attribute, const auto& value) {
    then([&] { return blas.product_set(out.product.handle, attribute, &value, sizeof value); });
  };
  const auto prefer = [&](int attribute, const auto& value) {
    then([&] { return blas.preference_set(out.preference.handle, attribute, &value, sizeof value); });
  };
  const auto lay = [&](Planned::Owned& layout, ir::DType dtype, int64_t rows, int64_t columns,
                       int64_t pitch) {
    then([&] {
      return blas.layout_create(&layout.handle, real_type(dtype), static_cast<uint64_t>(columns),
                                static_cast<uint64_t>(rows), pitch);
    });
  };
  set(kTransposeA, first);
  set(kTransposeB, second);
  if (form.has_bias) {
    set(kEpilogue, kEpilogueBias);
    // The algorithm depends on the alignment of this address alone, and must not on where the bias lies.
    set(kBiasPointer, reinterpret_cast<const void*>(uintptr_t{kMostAlignment}));
  }
  lay(out.b, form.in, form.b_transposed ? n : k, form.b_transposed ? k : n, ldb);
  lay(out.a, form.in, form.a_transposed ? k : m, form.a_transposed ? m : k, lda);
  lay(out.d, form.out, m, n, ldd);
  then([&] { return blas.preference_create(&out.preference.handle); });
  prefer(kMaxWorkspace, workspace);
  prefer(kReductionSchemes, kInOrder);
  const auto [of_a, of_b, of_d] = form.alignments;
  const uint32_t alignments[] = {of_b, of_a, of_d, of_d};
  for (size_t i = 0; i < 4; ++i) prefer(kAlignments[i], alignments[i]);
  int found = 0;
  then([&] {
    return blas.choose(handle_, out.product.handle, out.b.handle, out.a.handle, out.d.handle, out.d.handle,
                       out.preference.handle, 1, &out.choice, &found);
  });
  if (error == 0 && found == 0) return -1;
  return error != 0 ? error : out.choice.state;  // of what it proposes it may say that it cannot do it
}

Result<Products> Products::create(const Blas& blas) {
  Handle handle = nullptr;
  if (const int error = blas.create(&handle); error != 0)
    return Error{ErrorCode::kIo, "cuBLASLt cannot begin: status " + std::to_string(error), "runtime.device",
                 "free memory on the card"};
  return Products(blas, handle);
}

Products::Products(const Blas& blas, Handle handle) : blas_(&blas), handle_(handle) {}

Products::Products(Products&& other) noexcept
    : blas_(other.blas_),
      handle_(std::exchange(other.handle_, nullptr)),
      planned_(std::move(other.planned_)) {}

Products::~Products() {
  planned_.clear();
  if (handle_ != nullptr) blas_->destroy(handle_);
}

Status Products::multiply(const Product& p, Handle stream) {
  PLIMSOLL_CHECK(p.bias == nullptr || (!p.adds && alignment(p.bias) == kMostAlignment), "bias of a product");
  std::unique_ptr<Planned>& planned = planned_[form_of(p)];
  int error = 0;
  if (planned == nullptr) {
    planned = std::make_unique<Planned>();
    error = plan(form_of(p), *planned);
  }
  if (error == 0 && p.bias != nullptr)
    error = blas_->product_set(planned->product.handle, kBiasPointer, &p.bias, sizeof p.bias);
  const float one = 1, beta = p.adds ? 1.0F : 0.0F;
  if (error == 0)
    error = blas_->multiply(handle_, planned->product.handle, &one, p.b, planned->b.handle, p.a,
                            planned->a.handle, &beta, p.d, planned->d.handle, p.d, planned->d.handle,
                            planned->choice.algorithm, p.workspace,
                            p.workspace == nullptr ? 0 : static_cast<size_t>(kProductWorkspace), stream);
  if (error == 0) return Ok{};
  planned.reset();
  return Error{ErrorCode::kIo,
               "cuBLASLt refuses a product of " + std::to_string(p.m) + " x " + std::to_string(p.k) +
                   " and " + std::to_string(p.k) + " x " + std::to_string(p.n) + ": status " +
                   std::to_string(error),
               std::string(ir::name(p.in))};
}

}  // namespace plimsoll::cuda
