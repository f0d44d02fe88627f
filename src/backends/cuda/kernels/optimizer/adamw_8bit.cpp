// AdamW with moments of 8 bits: the maps go along with the launch.
#include <algorithm>

#include "backends/cuda/kernels/optimizer/adamw_8bit_args.h"
#include "backends/cuda/kernels/optimizer/tensor_update.h"
#include "numerics/dynamic_map.h"

namespace plimsoll::cuda {
namespace {

static_assert(kCodesOfWarp == ops::kCodeBlock);

Status adamw_8bit(const KernelCall& call, Stream& stream) {
  PLIMSOLL_ASSIGN(const TensorUpdate update, tensor_update(call, stream));
  const auto& signed_map = numerics::signed_dynamic_map();
  const auto& unsigned_map = numerics::unsigned_dynamic_map();
  Adamw8bit a;
  a.t = update.step;
  a.m_codes = update.states[0].as<unsigned char>();
  a.v_codes = update.states[1].as<unsigned char>();
  a.m_absmax = update.states[2].as<float>();
  a.v_absmax = update.states[3].as<float>();
  std::copy(signed_map.values.begin() + signed_map.zero, signed_map.values.end(), a.signed_values);
  std::copy(unsigned_map.values.begin(), unsigned_map.values.end(), a.unsigned_values);
  return stream.launch(kAdamw8bit, blocks(a.t.n, int64_t{kCodeWarps} * kCodesOfWarp), {32 * kCodeWarps}, 0,
                       a);
}

}  // namespace

std::span<const Kernel> adamw_8bit_kernels() {
  static constexpr Kernel kernels[] = {{.op = "adamw_8bit", .run = adamw_8bit}};
  return kernels;
}

}  // namespace plimsoll::cuda
