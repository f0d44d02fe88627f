// The stream that kernels are launched on.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "ir/dtype.h"
#include "runtime/tensor_ref.h"

namespace plimsoll::cuda {

/// As kernels/common.cuh declares it: elements at an address, of a floating dtype or i32.
struct Operand {
  void* data = nullptr;  ///< null where an optional operand is absent
  int32_t dtype = 0;     ///< ir::DType's number
  int32_t padding = 0;
};
inline Operand operand(const runtime::TensorRef& ref) {
  return {ref.data, static_cast<int32_t>(ref.type.dtype), 0};
}

struct Dim {
  uint32_t x = 1, y = 1, z = 1;
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
  bool tf32 = false;
  void* workspace = nullptr;  ///< kProductWorkspace bytes, aligned to 256
};
inline constexpr int64_t kProductWorkspace = int64_t{32} << 20;

/// Async: each call queues and returns. Errors: kIo with the function or the library's call.
class Stream {
 public:
  virtual ~Stream() = default;

  /// A function of kernels/*.cu with its arguments by value, of the types that it declares: Operand,
  /// pointers, int32_t, int64_t, uint32_t, uint64_t, float, double, or a struct of those.
  template <typename... Args>
  Status launch(const char* function, Dim grid, Dim block, uint32_t shared_bytes, const Args&... args) {
    std::array<void*, sizeof...(Args) + 1> pointers{const_cast<void*>(static_cast<const void*>(&args))...,
                                                    nullptr};
    return launch_raw(function, grid, block, shared_bytes, pointers.data());
  }
  /// The card's compute capability: 90 for an H100.
  [[nodiscard]] virtual int capability() const = 0;
  virtual Status multiply(const Product& product) = 0;
  virtual Status fill(void* data, int64_t bytes, uint32_t pattern) = 0;
  virtual Status copy(void* to, const void* from, int64_t bytes) = 0;

 protected:
  virtual Status launch_raw(const char* function, Dim grid, Dim block, uint32_t shared_bytes,
                            void** arguments) = 0;
};

}  // namespace plimsoll::cuda
