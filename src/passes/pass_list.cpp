// The ordered list of passes.
#include <array>

#include "passes/fusion/fuse_activations.h"
#include "passes/fusion/fuse_attention.h"
#include "passes/fusion/fuse_bias_grads.h"
#include "passes/fusion/fuse_conv_norms.h"
#include "passes/fusion/fuse_embedding_grads.h"
#include "passes/fusion/fuse_linear_adds.h"
#include "passes/fusion/fuse_norm_grads.h"
#include "passes/fusion/fuse_norms.h"
#include "passes/fusion/fuse_pointwise.h"
#include "passes/pass_calls.h"

namespace plimsoll::passes {
namespace {

using enum Phase;
using Options = PipelineOptions;
constexpr std::array kPasses = std::to_array<PassEntry>({
    {"common-subexpressions", kForward,
     "A model reads tables and tied weights where it needs them; one read is enough.",
     &Options::common_subexpressions, run_common_subexpressions},
    {"dead-code", kForward, "Ops that no wanted value needs are neither run nor differentiated.",
     &Options::dead_code, run_dead_code},
    {"fuse-activations", kForward,
     "SwiGLU, and GELU with its bias, cross memory once and keep one input for backward.",
     &Options::fuse_activations, run_fusion<fuse_activations>},
    {"fuse-attention", kForward,
     "Rotates and attends in the packed projection, so q, k and v need no copies.", &Options::fuse_attention,
     run_fusion<fuse_attention>},
    {"fuse-norms", kForward, "The residual stream is added and normalised in one op.", &Options::fuse_norms,
     run_fusion<fuse_norms>},
    {"fuse-head-loss", kForward, "Logits exist for a chunk of tokens only, forward and backward together.",
     &Options::fuse_head_loss, run_fuse_head_loss},
    {"fuse-pointwise", kForward,
     "Arithmetic on elements crosses memory once, and its derivative is one op an operand.",
     &Options::fuse_pointwise, run_fusion<fuse_pointwise>},
    {"few-rows", kForward, "A decoding step's linear layers read each weight once; other programs have none.",
     nullptr, run_small_m},
    {"autocast", kForward,
     "Products run in the low precision that was asked for, and their results are stored in it.", nullptr,
     run_autocast},
    {"autodiff", kDerivative,
     "Appends the backward ops; after fusion, so that fused ops have fused derivatives.", nullptr,
     run_autodiff},
    {"common-subexpressions-2", kTidy,
     "Derivatives and optimizer read states and make constants again; before recompute, whose clones stay "
     "apart.",
     &Options::common_subexpressions, run_common_subexpressions},
    {"dead-code-2", kTidy, "Derivatives that no state takes go before anything looks at lifetimes.",
     &Options::dead_code, run_dead_code},
    {"keep-operands", kTidy, "States keep the operands of products for a dump; before they are quantised.",
     nullptr, run_keep_operands},
    {"fp8", kTidy,
     "Marked products take quantised operands; behind autodiff, to which rounding is the identity, and "
     "before recompute, which may rebuild them.",
     nullptr, run_fp8},
    {"fp8-activations", kTidy,
     "Backward reads inputs of norms and activations from FP8 copies; before recompute, which makes them "
     "again.",
     nullptr, run_fp8_activations},
    {"fp8-weights", kTidy,
     "Programs of a step share quantised weights; before recompute, which finds them kept.", nullptr,
     run_fp8_weights},
    {"fuse-linear-adds", kTidy, "An adapter's part of a gradient is added to the base's in place.",
     &Options::fuse_linear_adds, run_fusion<fuse_linear_adds>},
    {"fuse-pointwise-2", kTidy, "Derivatives of neighbours are joined as their ops were.",
     &Options::fuse_pointwise, run_fusion<fuse_pointwise>},
    {"recompute", kBackward, "Backward recomputes block by block what the policy does not keep of forward.",
     nullptr, run_recompute},
    {"recompute-cheap", kBackward,
     "Norm outputs and activations are rebuilt in backward, as their operands are kept anyway.",
     &Options::recompute_cheap, run_recompute_cheap},
    {"fuse-norms-2", kBackward, "A residual sum that is rebuilt is normed in the same op.",
     &Options::fuse_norms, run_fusion<fuse_norms>},
    {"fuse-norm-grads", kBackward, "A norm's input gradient goes into the residual stream's in one op.",
     &Options::fuse_norm_grads, run_fusion<fuse_norm_grads>},
    {"fuse-embedding-grads", kBackward, "A tied table's gradient takes the embedding's rows in place.",
     &Options::fuse_embedding_grads, run_fusion<fuse_embedding_grads>},
    {"fuse-optimizer", kBackward,
     "All squares in one op, all updates in another: two launches instead of hundreds.",
     &Options::fuse_optimizer, run_fuse_optimizer},
    {"second-backward", kBackward,
     "A norm to clip by takes a backward of its own, where the updates' is to hold few gradients at once.",
     &Options::second_backward, run_second_backward},
    {"optimizer-in-backward", kBackward,
     "Each update stands where its gradient is complete, which is gone behind it.",
     &Options::optimizer_in_backward, run_optimizer_in_backward},
    {"dead-code-3", kBackward, "Ops whose results recompute and fusion have taken over go.",
     &Options::dead_code, run_dead_code},
    {"short-norms", kBackward,
     "Values that only products read, and round, are stored in their precision at once.",
     &Options::half_precision_norms, run_half_precision_norms},
    {"fuse-conv-norms", kBackward,
     "A convolution's result is normalised while it lies in the caches; behind recompute, which clones it.",
     &Options::fuse_norms, run_fusion<fuse_conv_norms>},
    {"fuse-quantize", kBackward,
     "Ops quantise what they compute for FP8 products alone; behind recompute, which clones each of both.",
     &Options::fuse_quantize, run_fuse_quantize},
    {"fuse-casts", kBackward,
     "Gradients of norms write the copy that products read themselves, where these do not round on the way.",
     &Options::share_casts, run_fuse_casts},
    {"share-casts", kBackward,
     "An operand of several products is rounded once, where the device's products do not round on the way.",
     &Options::share_casts, run_share_casts},
    {"weight-casts", kBackward,
     "Programs of a step share weights that are rounded once, where products do not round on the way; behind "
     "recompute, whose products read them too.",
     &Options::share_casts, run_weight_casts},
    {"fuse-bias-grads", kBackward,
     "A bias's gradient comes with its weight's, where the device's products sum rows on the way.",
     &Options::fuse_bias_grads, run_fusion<fuse_bias_grads>},
    {"schedule", kSchedule, "Reorders so that less is alive at once; the last word on order.",
     &Options::schedule, run_schedule},
    {"unshard", kExchange,
     "Parameters that ranks share are gathered where they are read; behind the order, before copies.",
     nullptr, run_unshard},
    {"overlap-ranks", kExchange,
     "Ranks exchange on a queue of their own; gradients travel and weights come while kernels compute.",
     nullptr, run_overlap_ranks},
    {"update-windows", kArrange,
     "The update of a large parameter that is loaded for it goes window by window; before they are loaded.",
     &Options::chunked_update, run_chunked_update},
    {"offload", kArrange,
     "Copies to and from the host's memory or a disk, as early and as late as the final order has room for.",
     nullptr, run_offload},
    {"in-place", kArrange, "Results take the place of operands that die; needs the final order.",
     &Options::in_place, run_in_place},
});

}  // namespace

std::span<const PassEntry> pass_list() { return kPasses; }

}  // namespace plimsoll::passes
