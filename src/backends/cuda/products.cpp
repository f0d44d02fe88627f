#include "backends/cuda/products.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/check.h"

namespace plimsoll::cuda {
namespace {

// cublasLt.h, cublas_api.h and library_types.h of CUDA 13.0.
constexpr int kTransposeA = 3, kTransposeB = 4;          // CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB
constexpr int kPointerMode = 2;                          // CUBLASLT_MATMUL_DESC_POINTER_MODE
constexpr int kEpilogue = 7, kBiasPointer = 8;           // CUBLASLT_MATMUL_DESC_EPILOGUE, _BIAS_POINTER
constexpr int kScalePointerA = 17, kScalePointerB = 18;  // CUBLASLT_MATMUL_DESC_{A,B}_SCALE_POINTER
constexpr int kScaleModeA = 31, kScaleModeB = 32;        // CUBLASLT_MATMUL_DESC_{A,B}_SCALE_MODE, since 12.8
constexpr int32_t kFactorOnDevice = 1;                   // CUBLASLT_POINTER_MODE_DEVICE
// CUBLASLT_MATMUL_MATRIX_SCALE_SCALAR_32F, _VEC16_UE4M3, _VEC32_UE8M0, _VEC128_32F, _BLK128x128_32F
constexpr int32_t kScaleOfTensor = 0, kScaleOf16 = 1, kScaleOf32 = 2, kScaleOf128 = 4, kScaleOfTile = 5;
constexpr uint32_t kEpilogueBias = 4, kEpilogueSumsOfA = 256,
                   kEpilogueSumsOfB = 512;  // CUBLASLT_EPILOGUE_BIAS, _BGRADA, _BGRADB
constexpr int kMaxWorkspace = 1,
              kReductionSchemes = 3;  // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, _REDUCTION_SCHEME_MASK
constexpr int kAlignments[] = {5, 6, 7, 8};  // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_{A,B,C,D}_BYTES
constexpr uint32_t kInOrder = 2;             // CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, and none
constexpr uint32_t kMostAlignment = 16;
constexpr int kSumsF32 = 68, kSumsTf32 = 77;                   // CUBLAS_COMPUTE_32F, _FAST_TF32
constexpr int kRealF32 = 0, kRealF16 = 2, kRealBf16 = 14;      // CUDA_R_*
constexpr int kRealE4m3 = 28, kRealE5m2 = 29, kRealE2m1 = 33;  // CUDA_R_8F_E4M3, _8F_E5M2, _4F_E2M1
constexpr int32_t kPlain = 0, kTransposed = 1;                 // CUBLAS_OP_*

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

int real_type(const std::optional<CodedOperand>& codes, ir::DType otherwise) {
  if (!codes) return real_type(otherwise);
  return codes->type == CodeType::kE4m3 ? kRealE4m3 : codes->type == CodeType::kE5m2 ? kRealE5m2 : kRealE2m1;
}

int32_t scale_mode(const std::optional<CodedOperand>& codes) {
  if (!codes) return -1;
  switch (codes->mode) {
    case ScaleMode::kRow16:
      return kScaleOf16;
    case ScaleMode::kRow32:
      return kScaleOf32;
    case ScaleMode::kRow128:
      return kScaleOf128;
    case ScaleMode::kTile128:
      return kScaleOfTile;
    default:
      return kScaleOfTensor;
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
  int error = 0;  ///< cuBLASLt's number; -1: it proposes no algorithm
};

Products::Beside Products::beside(const Product& p) {
  if (p.bias != nullptr) return Beside::kBias;
  if (p.sums == nullptr) return Beside::kNothing;
  return p.sums_of_b ? Beside::kSumsOfB : Beside::kSumsOfA;
}

Products::Form Products::form_of(const Product& p) {
  const auto pitch = [](int64_t given, int64_t dense) { return given == 0 ? dense : given; };
  return {.types = {real_type(p.a_codes, p.in), real_type(p.b_codes, p.in), real_type(p.out)},
          .scale_modes = {scale_mode(p.a_codes), scale_mode(p.b_codes)},
          .sizes = {p.m, p.n, p.k, pitch(p.lda, p.a_transposed ? p.m : p.k),
                    pitch(p.ldb, p.b_transposed ? p.k : p.n), pitch(p.ldd, p.n)},
          .a_transposed = p.a_transposed,
          .b_transposed = p.b_transposed,
          .tf32 = p.tf32,
          .beside = beside(p),
          .has_factor = p.factor != nullptr,
          .has_workspace = p.workspace != nullptr,
          .alignments = {alignment(p.a), alignment(p.b), alignment(p.d)}};
}

int Products::plan(const Form& form, Planned& out) const {
  if (const int error = describe(form, out); error != 0) return error;
  const auto chosen = choices_.by_form.find(text_of(form));
  if (chosen != choices_.by_form.end() && check(form, chosen->second, out) == 0) return 0;
  int found = 0;
  const int error = blas_->choose(handle_, out.product.handle, out.b.handle, out.a.handle, out.d.handle,
                                  out.d.handle, out.preference.handle, 1, &out.choice, &found);
  if (error == 0 && found == 0) return -1;
  return error != 0 ? error : out.choice.state;  // of what it proposes it may say that it cannot do it
}

int Products::check(const Form& form, const Algorithm& algorithm, Planned& out) const {
  Planned::Choice choice{};
  const int error = blas_->check(handle_, out.product.handle, out.b.handle, out.a.handle, out.d.handle,
                                 out.d.handle, algorithm.data(), &choice);
  if (error != 0 || choice.state != 0) return error != 0 ? error : choice.state;
  const size_t room = form.has_workspace ? static_cast<size_t>(kProductWorkspace) : 0;
  if (choice.workspace_bytes > room) return -1;
  std::ranges::copy(algorithm, choice.algorithm);
  out.choice = choice;
  return 0;
}

/// Describes it, and what an algorithm is held to.
int Products::describe(const Form& form, Planned& out) const {
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
  const auto lay = [&](Planned::Owned& layout, int type, int64_t rows, int64_t columns, int64_t pitch) {
    then([&] {
      return blas.layout_create(&layout.handle, type, static_cast<uint64_t>(columns),
                                static_cast<uint64_t>(rows), pitch);
    });
  };
  set(kTransposeA, first);
  set(kTransposeB, second);
  // The algorithm depends on the alignment of these addresses alone, and must not on what lies there.
  const auto* const somewhere = reinterpret_cast<const void*>(uintptr_t{kMostAlignment});
  if (form.beside != Beside::kNothing) {
    // Its first operand is b.
    set(kEpilogue, form.beside == Beside::kBias      ? kEpilogueBias
                   : form.beside == Beside::kSumsOfA ? kEpilogueSumsOfB
                                                     : kEpilogueSumsOfA);
    set(kBiasPointer, somewhere);
  }
  if (form.has_factor) set(kPointerMode, kFactorOnDevice);
  const auto scaled = [&](int32_t mode, int mode_attribute, int pointer_attribute) {
    if (mode > kScaleOfTensor) set(mode_attribute, mode);  // libraries before 12.8 know no other than that
    if (mode >= kScaleOfTensor) set(pointer_attribute, somewhere);
  };
  scaled(form.scale_modes[1], kScaleModeA, kScalePointerA);
  scaled(form.scale_modes[0], kScaleModeB, kScalePointerB);
  lay(out.b, form.types[1], form.b_transposed ? n : k, form.b_transposed ? k : n, ldb);
  lay(out.a, form.types[0], form.a_transposed ? k : m, form.a_transposed ? m : k, lda);
  lay(out.d, form.types[2], m, n, ldd);
  then([&] { return blas.preference_create(&out.preference.handle); });
  prefer(kMaxWorkspace, workspace);
  prefer(kReductionSchemes, kInOrder);
  const auto [of_a, of_b, of_d] = form.alignments;
  const uint32_t alignments[] = {of_b, of_a, of_d, of_d};
  for (size_t i = 0; i < 4; ++i) prefer(kAlignments[i], alignments[i]);
  return error;
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
      choices_(std::move(other.choices_)),
      planned_(std::move(other.planned_)) {}

Products::~Products() {
  planned_.clear();
  if (handle_ != nullptr) blas_->destroy(handle_);
}

Products::Planned& Products::planned(const Product& p) {
  const Form form = form_of(p);
  std::unique_ptr<Planned>& planned = planned_[form];
  if (planned == nullptr) {
    planned = std::make_unique<Planned>();
    planned->error = plan(form, *planned);
  }
  return *planned;
}

bool Products::multiplies(const Product& product) { return planned(product).error == 0; }

void Products::choose(const ProductChoices& choices) {
  if (choices.library_version == static_cast<int64_t>(blas_->version())) choices_ = choices;
}

std::string Products::text_of(const Form& form) {
  std::string text;
  const auto add = [&](auto number) { text += (text.empty() ? "" : " ") + std::to_string(number); };
  for (const int type : form.types) add(type);
  for (const int32_t mode : form.scale_modes) add(mode);
  for (const int64_t size : form.sizes) add(size);
  for (const int flag : {int{form.a_transposed}, int{form.b_transposed}, int{form.tf32},
                         static_cast<int>(form.beside), int{form.has_factor}, int{form.has_workspace}})
    add(flag);
  for (const uint32_t bytes : form.alignments) add(bytes);
  return text;
}

std::string Products::form_text(const Product& product) { return text_of(form_of(product)); }

std::vector<Algorithm> Products::proposals(const Product& product, int most) {
  const Planned& form = planned(product);
  std::vector<Planned::Choice> choices(static_cast<size_t>(most));
  int found = 0;
  if (form.error == 0)
    (void)blas_->choose(handle_, form.product.handle, form.b.handle, form.a.handle, form.d.handle,
                        form.d.handle, form.preference.handle, most, choices.data(), &found);
  std::vector<Algorithm> algorithms;
  for (const Planned::Choice& choice : std::span(choices).first(static_cast<size_t>(found)))
    if (choice.state == 0) algorithms.push_back(std::to_array(choice.algorithm));
  return algorithms;
}

bool Products::take(const Product& product, const Algorithm& algorithm) {
  Planned& form = planned(product);
  return form.error == 0 && check(form_of(product), algorithm, form) == 0;
}

Status Products::multiply(const Product& p, Handle stream) {
  PLIMSOLL_CHECK(p.bias == nullptr || (!p.adds && alignment(p.bias) == kMostAlignment), "bias of a product");
  PLIMSOLL_CHECK(p.sums == nullptr || (p.bias == nullptr && alignment(p.sums) == kMostAlignment),
                 "sums beside a product");
  Planned& form = planned(p);
  int error = form.error;
  const auto point = [&](int attribute, const void* at) {
    if (error == 0) error = blas_->product_set(form.product.handle, attribute, &at, sizeof at);
  };
  if (p.bias != nullptr) point(kBiasPointer, p.bias);
  if (p.sums != nullptr) point(kBiasPointer, p.sums);
  if (p.b_codes) point(kScalePointerA, p.b_codes->scales);
  if (p.a_codes) point(kScalePointerB, p.a_codes->scales);
  const float one = 1, beta = p.adds ? 1.0F : 0.0F;
  if (error == 0)
    error = blas_->multiply(handle_, form.product.handle, p.factor != nullptr ? p.factor : &one, p.b,
                            form.b.handle, p.a, form.a.handle, p.factor != nullptr ? p.factor + 1 : &beta,
                            p.d, form.d.handle, p.d, form.d.handle, form.choice.algorithm, p.workspace,
                            p.workspace == nullptr ? 0 : static_cast<size_t>(kProductWorkspace), stream);
  if (error == 0) return Ok{};
  planned_.erase(form_of(p));
  return Error{ErrorCode::kIo,
               "cuBLASLt refuses a product of " + std::to_string(p.m) + " x " + std::to_string(p.k) +
                   " and " + std::to_string(p.k) + " x " + std::to_string(p.n) + ": status " +
                   std::to_string(error),
               std::string(ir::name(p.in))};
}

}  // namespace plimsoll::cuda
