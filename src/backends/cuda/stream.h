// The stream that kernels are launched on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>

#include "backends/cuda/device/types.cuh"
#include "base/result.h"
#include "ir/dtype.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::cuda {

// device/types.cuh has the numbers of ir::DType.
static_assert(kF32 == static_cast<int>(ir::DType::kF32) && kBf16 == static_cast<int>(ir::DType::kBf16) &&
              kF16 == static_cast<int>(ir::DType::kF16) && kU8 == static_cast<int>(ir::DType::kU8) &&
              kI32 == static_cast<int>(ir::DType::kI32));

inline Operand operand_at(void* data, ir::DType dtype) { return {data, static_cast<int>(dtype), 0}; }
inline Operand operand(const runtime::TensorRef& ref) { return operand_at(ref.data, ref.type.dtype); }

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
};

/// The type of an operand in FP8 or FP4, and the elements that share a scale of it.
enum class CodeType : int { kE4m3, kE5m2, kE2m1 };
enum class ScaleMode : int { kTensor, kRow16, kRow32, kRow128, kTile128 };
/// Scales lie as cuBLASLt's documents lay them out ("Narrow Precision Data Types Usage"), aligned to 16: an
/// f32 (kTensor), E4M3 (kRow16) or E8M0 (kRow32) in tiles of 128 x 4, f32 (kRow128, kTile128).
struct CodedOperand {
  CodeType type = CodeType::kE4m3;
  ScaleMode mode = ScaleMode::kTensor;
  const void* scales = nullptr;
};

/// d[m, n] = op(a) op(b) + (adds ? d : 0), all row-major: op(a) [m, k], op(b) [k, n]; a is stored [k, m]
/// where `a_transposed`, b [n, k] where `b_transposed`. a and b are of one dtype, f32, bf16 or f16; d is f32
/// or of that. Sums are f32. `tf32`: f32 operands are rounded to TF32 before they are multiplied.
struct Product {
  const void *a = nullptr, *b = nullptr;
  void* d = nullptr;
  ir::DType in = ir::DType::kF32, out = ir::DType::kF32;
  int64_t m = 0, n = 0, k = 0;
  bool a_transposed = false, b_transposed = false;
  int64_t lda = 0, ldb = 0, ldd = 0;  ///< elements from a stored row to the next; 0: dense
  bool adds = false;
  const void* bias =
      nullptr;  ///< added to each row of d where it does not add: n elements as d's, aligned to 16
  /// The sums over k of a (m of them) or, with `sums_of_b`, of b (n) go there, as d's dtype, aligned to 16.
  /// Not with a bias or codes, and not of operands that are rounded within the product.
  void* sums = nullptr;
  bool sums_of_b = false;
  bool tf32 = false;
  /// On the card: what the product is multiplied with, and behind it 1 where it `adds`, else 0. Null: 1.
  const float* factor = nullptr;
  /// Given: a and b are codes, not of `in`; neither is transposed but b (both lie along k).
  std::optional<CodedOperand> a_codes = {}, b_codes = {};
  void* workspace = nullptr;  ///< kProductWorkspace bytes, aligned to 256
};
inline constexpr int64_t kProductWorkspace = int64_t{32} << 20;

class Collectives;

/// Async: each call queues and returns. Errors: kIo with the function or the library's call.
class Stream {
 public:
  virtual ~Stream() = default;

  /// A kernel with its arguments. `defines`: the macros that its module is compiled with, "HEAD_DIM=128
  /// CAUSAL=1": one form of a kernel that is compiled for what it is launched with. What differs in order or
  /// spaces is another module.
  template <typename Args>
  Status launch(const DeviceKernel<Args>& kernel, Dim grid, Dim block, uint32_t shared_bytes,
                const std::type_identity_t<Args>& args, std::string_view defines = {}) {
    static_assert(std::is_standard_layout_v<Args> && std::is_trivially_copyable_v<Args>);
    static_assert(sizeof(Args) <= kMostArgumentBytes);
    return launch_raw({kernel.module, defines, kernel.name}, grid, block, shared_bytes, &args);
  }
  /// The card's compute capability: 90 for an H100.
  [[nodiscard]] virtual int capability() const = 0;
  virtual Status multiply(const Product& product) = 0;
  /// Whether the card's library has an algorithm for it. Queues nothing.
  virtual bool multiplies(const Product& product) = 0;
  virtual Status fill(void* data, int64_t bytes, uint32_t pattern) = 0;
  /// Between memory of the card and pinned memory of the host, either way.
  virtual Status copy(void* to, const void* from, int64_t bytes) = 0;
  /// Runs it on a thread of the host, behind what is queued; it calls nothing of the card, and may be run
  /// again with what is captured.
  virtual Status run_on_host(std::function<void()> work) = 0;
  /// To the other ranks of the run; null: there are none.
  [[nodiscard]] virtual Collectives* collectives() const = 0;
  /// The driver's, for libraries.
  [[nodiscard]] virtual void* handle() const = 0;

 protected:
  struct Function {
    std::string_view module, defines, name;
  };
  virtual Status launch_raw(const Function& function, Dim grid, Dim block, uint32_t shared_bytes,
                            const void* arguments) = 0;
};

}  // namespace plimsoll::cuda
