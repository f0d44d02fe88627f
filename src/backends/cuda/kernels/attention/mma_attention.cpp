#include "backends/cuda/kernels/attention/mma_attention.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include "backends/cuda/kernels/attention/mma_args.h"
#include "backends/cuda/kernels/operands.h"
#include "base/units.h"

namespace plimsoll::cuda {
namespace {

/// The kernels of a width, and their extents for operands of a dtype.
struct Form {
  int width, type;
  const DeviceKernel<Attention>&forward, &dq, &dkv;
  int64_t queries, own;
  uint32_t forward_bytes, dq_bytes, dkv_bytes, dkv_threads;
};
template <int kWidth, int kType>
constexpr Form form(const DeviceKernel<Attention>& forward, const DeviceKernel<Attention>& dq,
                    const DeviceKernel<Attention>& dkv) {
  using Sizes = MmaSizes<kWidth, kType>;
  return {kWidth,
          kType,
          forward,
          dq,
          dkv,
          Sizes::kQueries,
          Sizes::kOwn,
          Sizes::kForwardBytes,
          Sizes::kQueryBytes,
          Sizes::kKeyBytes,
          Sizes::kKeyThreads};
}
/// Widths of a type ascend.
constexpr Form kForms[] = {form<64, kBf16>(kMmaForward64, kMmaDq64, kMmaDkv64),
                           form<64, kF16>(kMmaForward64, kMmaDq64, kMmaDkv64),
                           form<64, kF32>(kMmaForward64, kMmaDq64, kMmaDkv64),
                           form<128, kBf16>(kMmaForward128, kMmaDq128, kMmaDkv128),
                           form<128, kF16>(kMmaForward128, kMmaDq128, kMmaDkv128),
                           form<128, kF32>(kMmaForward128, kMmaDq128, kMmaDkv128),
                           form<256, kBf16>(kMmaForward256, kMmaDq256, kMmaDkv256),
                           form<256, kF16>(kMmaForward256, kMmaDq256, kMmaDkv256),
                           form<256, kF32>(kMmaForward256, kMmaDq256, kMmaDkv256)};
constexpr uint32_t kMmaThreads = MmaSizes<64, kBf16>::kThreads;

const Form* form_of(const Attention& a) {
  const auto* const found = std::ranges::find_if(
      kForms, [&](const Form& f) { return f.type == a.q.dtype && a.head_dim <= f.width; });
  return found == std::end(kForms) ? nullptr : found;
}

/// What mma_forms.cuh reads.
std::string macros(const Form& form, bool drops) {
  return "MMA_WIDTH=" + std::to_string(form.width) + " MMA_TYPE=" + std::to_string(form.type) +
         " MMA_DROPS=" + (drops ? "1" : "0");
}

}  // namespace

bool runs_on_matrix_units(const Attention& a, int capability) {
  if (capability < 80 || a.scale <= 0 || (a.q.dtype == kF32 && a.tf32 == 0)) return false;
  constexpr int64_t kMostTiles = 65535;  // the second dimension of the grids
  const Form* form = form_of(a);
  if (form == nullptr || ceil_div(a.tokens, form->own) > kMostTiles) return false;
  const auto is_other = [&](const Operand* x) { return x->data != nullptr && x->dtype != a.q.dtype; };
  return std::ranges::none_of(
      std::initializer_list<const Operand*>{&a.k, &a.v, &a.out, &a.dout, &a.dq, &a.dk, &a.dv}, is_other);
}

int num_parts(int64_t batch, int64_t tokens, int64_t heads, int64_t kv_heads) {
  constexpr int64_t kFew = 128,
                    kWanted = 256,  // blocks: about one and two for each multiprocessor of large cards
      kOwn = 64;                    // keys of one, as most forms have them
  const int64_t blocks = batch * kv_heads * ceil_div(tokens, kOwn), group = heads / kv_heads;
  return blocks >= kFew ? 1
                        : static_cast<int>(
                              std::clamp<int64_t>(ceil_div(kWanted, std::max<int64_t>(blocks, 1)), 1, group));
}

std::vector<std::string> mma_forms() {
  std::vector<std::string> all;
  for (const Form& form : kForms)
    for (const bool drops : {false, true}) all.push_back(macros(form, drops));
  return all;
}

Status queue_mma_forward(const Attention& a, int64_t batch, Stream& stream) {
  const Form& form = *form_of(a);
  const Dim grid{static_cast<uint32_t>(batch * a.heads),
                 static_cast<uint32_t>(ceil_div(a.tokens, form.queries))};
  return stream.launch(form.forward, grid, {kMmaThreads}, form.forward_bytes, a,
                       macros(form, a.random != nullptr));
}

Status queue_mma_backward(const Attention& a, int64_t batch, Stream& stream) {
  const Form& form = *form_of(a);
  const std::string defines = macros(form, a.random != nullptr);
  const auto tiles = static_cast<uint32_t>(ceil_div(a.tokens, form.own));
  PLIMSOLL_TRY(stream.launch(form.dq, {static_cast<uint32_t>(batch * a.heads), tiles}, {kMmaThreads},
                             form.dq_bytes, a, defines));
  PLIMSOLL_TRY(stream.launch(form.dkv, {static_cast<uint32_t>(batch * a.kv_heads * a.parts), tiles},
                             {form.dkv_threads}, form.dkv_bytes, a, defines));
  if (a.parts == 1) return Ok{};
  const AttentionParts parts{.partial = a.partial,
                             .dk = a.dk,
                             .dv = a.dv,
                             .rows = batch * a.tokens,
                             .cols = int64_t{a.kv_heads} * a.head_dim,
                             .stride = a.dkv_stride,
                             .parts = a.parts};
  return stream.launch(kAttentionParts, blocks(2 * parts.rows * parts.cols, 256), {256}, 0, parts);
}

}  // namespace plimsoll::cuda
