#include "backends/cuda/kernels/gemm/scaled_codes.h"

#include <algorithm>

namespace plimsoll::cuda {

CodeScheme code_scheme(numerics::Scheme scheme) {
  const numerics::SchemeInfo& s = numerics::info(scheme);
  CodeScheme code;
  code.format = s.codes == numerics::Format::kE5m2   ? CodeFormat::kE5m2
                : s.codes == numerics::Format::kE2m1 ? CodeFormat::kE2m1
                                                     : CodeFormat::kE4m3;
  if (s.block_rows == 0) return code;
  code.scales = s.scales == numerics::Format::kE8m0   ? BlockScales::kE8m0
                : s.scales == numerics::Format::kE4m3 ? BlockScales::kE4m3
                                                      : BlockScales::kPowerOfTwo;
  code.block_rows = static_cast<int>(s.block_rows);
  code.block_cols = static_cast<int>(s.block_cols);
  return code;
}

}  // namespace plimsoll::cuda
