// cuBLASLt for tests: products as its documents define them, on the fake driver's streams. It refuses what
// they refuse - shapes that do not fit, types that do not go together, less workspace than was agreed,
// addresses that are aligned to less - and leaves no numbers in the workspace that it was given.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>

#include "driver.h"
#include "narrow_product.h"

using fake::Matrix;
using fake::MatrixProduct;
using plimsoll::cuda::Handle;

namespace {

enum { kSuccess = 0, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };  // CUBLAS_STATUS_*
constexpr int kSumsF32 = 68, kSumsTf32 = 77;                    // CUBLAS_COMPUTE_32F, _FAST_TF32
constexpr uint32_t kInPlace = 1, kOrdered = 2, kAnyScheme = 7;  // CUBLASLT_REDUCTION_SCHEME_*
constexpr size_t kWorkspaceAlignment = 256;

struct Description {
  int compute, scale;
  int32_t transpose_a = 0, transpose_b = 0;
  uint32_t epilogue = fake::kPlain;
  void* bias = nullptr;
  int32_t bias_type = -1;
  int32_t pointer_mode = 0;  // CUBLASLT_POINTER_MODE_HOST, 1: _DEVICE
  fake::Scales a_scales = {}, b_scales = {};
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t schemes = kAnyScheme;
  uint32_t alignments[4] = {256, 256, 256, 256};  // of a, b, c, d
};

/// cublasLtMatmulAlgo_t, which is the library's: the problem that it was chosen for, and which one it is.
struct Algorithm {
  uint64_t problem, workspace;
  uint32_t alignments[4];
  uint64_t variant;
  uint64_t rest[3];
};
/// What an algorithm takes of the time of the first. The second sums in another order.
constexpr double kTimes[] = {1, 0.6, 1.2};
constexpr uint64_t kBackwards = 1;
static_assert(sizeof(Algorithm) == 64);
/// cublasLtMatmulHeuristicResult_t.
struct Choice {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

template <typename T>
int set(T& field, const void* value, size_t bytes) {
  if (bytes != sizeof(T)) return kInvalidValue;
  return std::memcpy(&field, value, bytes), kSuccess;
}

bool is_type(int type) { return type == fake::kF32 || type == fake::kF16 || type == fake::kBf16; }

MatrixProduct product_of(Handle description, Handle a, Handle b, Handle c, Handle d) {
  const auto& about = *static_cast<Description*>(description);
  MatrixProduct p;
  p.a = *static_cast<Matrix*>(a), p.b = *static_cast<Matrix*>(b);
  p.c = *static_cast<Matrix*>(c), p.d = *static_cast<Matrix*>(d);
  p.a_transposed = about.transpose_a == 1, p.b_transposed = about.transpose_b == 1;
  p.rounds_to_tf32 = about.compute == kSumsTf32;
  p.epilogue = about.epilogue;
  p.a_scales = about.a_scales, p.b_scales = about.b_scales;
  p.bias = about.bias;
  p.bias_type = about.bias_type < 0 ? p.d.type : about.bias_type;
  return p;
}

bool shapes_fit(const MatrixProduct& p) {
  const uint64_t m = p.a_transposed ? p.a.columns : p.a.rows, k = p.a_transposed ? p.a.rows : p.a.columns;
  const uint64_t k_b = p.b_transposed ? p.b.columns : p.b.rows, n = p.b_transposed ? p.b.rows : p.b.columns;
  bool fit = k == k_b && p.d.rows == m && p.d.columns == n && p.c.rows == m && p.c.columns == n;
  for (const Matrix& x : {p.a, p.b, p.c, p.d})
    fit =
        fit && x.rows > 0 && x.columns > 0 && x.pitch >= static_cast<int64_t>(x.rows) && x.batch == p.d.batch;
  return fit;
}

int check(const MatrixProduct& p, const Description& about, const uint32_t (&alignments)[4]) {
  if (!shapes_fit(p)) return kInvalidValue;
  if (fake::is_narrow(p.a.type) || fake::is_narrow(p.b.type)) {
    if (about.compute != kSumsF32 || about.scale != fake::kF32 || p.c.type != p.d.type) return kNotSupported;
    // A library that is older than the card, or has no algorithm for it.
    if (std::getenv("PLIMSOLL_FAKE_NO_NARROW") != nullptr) return kNotSupported;
    return fake::check_narrow(p, alignments, plimsollFakeCapability());
  }
  if (p.a_scales.data != nullptr || p.b_scales.data != nullptr) return kInvalidValue;
  if (about.compute != kSumsF32 && about.compute != kSumsTf32) return kNotSupported;
  if (about.scale != fake::kF32 || p.a.type != p.b.type || p.c.type != p.d.type) return kNotSupported;
  if (!is_type(p.a.type) || (p.d.type != p.a.type && p.d.type != fake::kF32)) return kNotSupported;
  if (about.compute == kSumsTf32 && p.a.type != fake::kF32) return kNotSupported;
  const bool known = p.epilogue == fake::kPlain || p.epilogue == fake::kBias ||
                     p.epilogue == fake::kSumRowsOfA || p.epilogue == fake::kSumColumnsOfB;
  if (!known || !is_type(p.bias_type)) return kNotSupported;
  return p.epilogue != fake::kPlain && p.bias == nullptr ? kInvalidValue : kSuccess;
}

/// Two problems of one number take the same algorithm.
uint64_t number_of(const MatrixProduct& p) {
  uint64_t sum = 1469598103934665603u;
  const auto add = [&](auto value) { sum = (sum ^ static_cast<uint64_t>(value)) * 1099511628211u; };
  for (const Matrix& x : {p.a, p.b, p.c, p.d})
    add(x.type), add(x.rows), add(x.columns), add(x.pitch), add(x.batch), add(x.batch_stride);
  add(p.a_scales.mode), add(p.b_scales.mode), add(p.a_transposed), add(p.b_transposed), add(p.rounds_to_tf32),
      add(p.epilogue);
  return sum;
}

std::atomic<int64_t> narrow_products{0};

bool is_aligned(const void* at, size_t bytes) { return reinterpret_cast<uintptr_t>(at) % bytes == 0; }

}  // namespace

extern "C" {

int cublasLtCreate(Handle* handle) {
  static int one = 0;
  return *handle = &one, kSuccess;
}
int cublasLtDestroy(Handle) { return kSuccess; }
size_t cublasLtGetVersion() { return 130000; }

int cublasLtMatmulDescCreate(Handle* made, int compute, int scale) {
  return *made = new Description{compute, scale}, kSuccess;
}
int cublasLtMatmulDescDestroy(Handle given) { return delete static_cast<Description*>(given), kSuccess; }
int cublasLtMatmulDescSetAttribute(Handle handle, int attribute, const void* value, size_t bytes) {
  auto& about = *static_cast<Description*>(handle);
  switch (attribute) {  // CUBLASLT_MATMUL_DESC_*
    case 2:
      return set(about.pointer_mode, value, bytes);
    case 3:
      return set(about.transpose_a, value, bytes);
    case 4:
      return set(about.transpose_b, value, bytes);
    case 7:
      return set(about.epilogue, value, bytes);
    case 8:
      return set(about.bias, value, bytes);
    case 17:
      return set(about.a_scales.data, value, bytes);
    case 18:
      return set(about.b_scales.data, value, bytes);
    case 26:
      return set(about.bias_type, value, bytes);
    case 31:
      return set(about.a_scales.mode, value, bytes);
    case 32:
      return set(about.b_scales.mode, value, bytes);
    default:
      return kNotSupported;
  }
}

int cublasLtMatrixLayoutCreate(Handle* made, int type, uint64_t rows, uint64_t columns, int64_t pitch) {
  return *made = new Matrix{type, rows, columns, pitch}, kSuccess;
}
int cublasLtMatrixLayoutDestroy(Handle given) { return delete static_cast<Matrix*>(given), kSuccess; }
int cublasLtMatrixLayoutSetAttribute(Handle handle, int attribute, const void* value, size_t bytes) {
  auto& layout = *static_cast<Matrix*>(handle);
  switch (attribute) {  // CUBLASLT_MATRIX_LAYOUT_*
    case 5:
      return set(layout.batch, value, bytes);
    case 6:
      return set(layout.batch_stride, value, bytes);
    default:
      return kNotSupported;  // the order of elements, too: columns
  }
}

int cublasLtMatmulPreferenceCreate(Handle* made) { return *made = new Preference, kSuccess; }
int cublasLtMatmulPreferenceDestroy(Handle given) { return delete static_cast<Preference*>(given), kSuccess; }
int cublasLtMatmulPreferenceSetAttribute(Handle handle, int attribute, const void* value, size_t bytes) {
  auto& preference = *static_cast<Preference*>(handle);
  switch (attribute) {  // CUBLASLT_MATMUL_PREF_*
    case 1:
      return set(preference.workspace, value, bytes);
    case 3:
      return set(preference.schemes, value, bytes);
    case 5:
    case 6:
    case 7:
    case 8:
      return set(preference.alignments[attribute - 5], value, bytes);
    default:
      return kNotSupported;
  }
}

/// Algorithms, which take a workspace where one is allowed and the sums may be joined out of it.
int cublasLtMatmulAlgoGetHeuristic(Handle, Handle description, Handle a, Handle b, Handle c, Handle d,
                                   Handle wishes, int wanted, void* results, int* found) {
  const MatrixProduct p = product_of(description, a, b, c, d);
  *found = 0;
  if (wanted < 1) return kInvalidValue;
  const auto& preference = *static_cast<Preference*>(wishes);
  if (const int error = check(p, *static_cast<Description*>(description), preference.alignments);
      error != kSuccess)
    return error;
  Choice choice{};
  choice.algorithm.problem = number_of(p);
  const uint64_t partial = 4 * p.d.rows * p.d.columns * 2;
  if ((preference.schemes & (kInPlace | kOrdered)) != 0 && partial <= preference.workspace)
    choice.workspace = choice.algorithm.workspace = partial;
  std::memcpy(choice.algorithm.alignments, preference.alignments, sizeof preference.alignments);
  for (const int most = std::min<int>(wanted, std::size(kTimes)); *found < most; ++*found) {
    choice.algorithm.variant = static_cast<uint64_t>(*found);
    std::memcpy(static_cast<Choice*>(results) + *found, &choice, sizeof choice);
  }
  return kSuccess;
}

/// Whether the algorithm is one of that problem.
int cublasLtMatmulAlgoCheck(Handle, Handle description, Handle a, Handle b, Handle c, Handle d,
                            const void* chosen, void* result) {
  const MatrixProduct p = product_of(description, a, b, c, d);
  Choice choice{};
  std::memcpy(&choice.algorithm, chosen, sizeof choice.algorithm);
  const Algorithm& algorithm = choice.algorithm;
  if (const int error = check(p, *static_cast<Description*>(description), algorithm.alignments);
      error != kSuccess)
    return error;
  if (algorithm.problem != number_of(p) || algorithm.variant >= std::size(kTimes)) return kNotSupported;
  choice.workspace = algorithm.workspace;
  return std::memcpy(result, &choice, sizeof choice), kSuccess;
}

int cublasLtMatmul(Handle, Handle description, const void* alpha, const void* a, Handle a_layout,
                   const void* b, Handle b_layout, const void* beta, const void* c, Handle c_layout, void* d,
                   Handle d_layout, const void* chosen, void* workspace, size_t workspace_bytes,
                   Handle stream) {
  MatrixProduct p = product_of(description, a_layout, b_layout, c_layout, d_layout);
  Algorithm algorithm{};
  if (chosen == nullptr) return kInvalidValue;
  std::memcpy(&algorithm, chosen, sizeof algorithm);
  if (const int error = check(p, *static_cast<Description*>(description), algorithm.alignments);
      error != kSuccess)
    return error;
  if (algorithm.problem != number_of(p) || algorithm.workspace > workspace_bytes) return kInvalidValue;
  if (algorithm.variant >= std::size(kTimes)) return kInvalidValue;
  p.sums_backwards = algorithm.variant == kBackwards;
  if (algorithm.workspace > 0 && (workspace == nullptr || !is_aligned(workspace, kWorkspaceAlignment)))
    return kInvalidValue;
  const void* addresses[] = {a, b, c, d};
  const int types[] = {p.a.type, p.b.type, p.c.type, p.d.type};
  for (size_t i = 0; i < 4; ++i)
    if (addresses[i] == nullptr || !is_aligned(addresses[i], fake::bytes_of(types[i])) ||
        !is_aligned(addresses[i], algorithm.alignments[i]))
      return kInvalidValue;
  p.a_data = a, p.b_data = b, p.c_data = c, p.d_data = d;
  const auto read_factors = [=](MatrixProduct& product) {
    std::memcpy(&product.alpha, alpha, sizeof product.alpha);
    std::memcpy(&product.beta, beta, sizeof product.beta);
  };
  const bool on_device = static_cast<Description*>(description)->pointer_mode == 1;
  if (!on_device) read_factors(p);  // the host's are read now, the device's when the product runs
  std::function<void()> work = [=]() mutable {
    if (on_device) read_factors(p);
    if (fake::is_narrow(p.a.type)) ++narrow_products;
    if (algorithm.workspace > 0) std::memset(workspace, 0xff, algorithm.workspace);
    fake::multiply(p);
  };
  const double depth = static_cast<double>(p.a_transposed ? p.a.rows : p.a.columns);
  const double sums = depth * static_cast<double>(p.d.rows) * static_cast<double>(p.d.columns);
  const double seconds = kTimes[algorithm.variant] * (1e-6 + 2e-13 * sums);
  return plimsollFakeQueue(stream, seconds, &work) == 0 ? kSuccess : kExecutionFailed;
}

/// How many products of operands in FP8 and FP4 have run.
int64_t plimsollFakeNarrowProducts() { return narrow_products; }

}  // extern "C"
