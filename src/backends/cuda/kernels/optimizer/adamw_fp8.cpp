// AdamW with moments in FP8.
#include "backends/cuda/kernels/optimizer/adamw_fp8_args.h"
#include "backends/cuda/kernels/optimizer/tensor_update.h"

namespace plimsoll::cuda {
namespace {

static_assert(8 * kFp8LmLanes == ops::kCodeBlock && 8 * kCoatLanes == ops::kCoatBlock);

template <bool kIsCoat>
Status adamw_fp8(const KernelCall& call, Stream& stream) {
  PLIMSOLL_ASSIGN(const TensorUpdate update, tensor_update(call, stream));
  AdamwFp8 a;
  a.t = update.step;
  a.m_codes = update.states[0].as<unsigned char>();
  a.v_codes = update.states[1].data;
  a.m_absmax = update.states[2].as<float>();
  a.v_absmax = update.states[3].as<float>();
  if (kIsCoat) a.m_power = update.states[4].as<float>(), a.v_power = update.states[5].as<float>();
  return stream.launch(kIsCoat ? kAdamwCoat : kAdamwFp8Lm, blocks(a.t.n, int64_t{kFp8Warps} * kFp8Elements),
                       {32 * kFp8Warps}, 0, a);
}

}  // namespace

std::span<const Kernel> adamw_fp8_kernels() {
  static constexpr Kernel kernels[] = {{.op = "adamw_fp8_lm", .run = adamw_fp8<false>},
                                       {.op = "adamw_coat", .run = adamw_fp8<true>}};
  return kernels;
}

}  // namespace plimsoll::cuda
