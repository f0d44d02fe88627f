// The ordered list of passes, and its runner.
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "ir/printer.h"
#include "ir/verifier.h"
#include "passes/fusion/common_subexpressions.h"
#include "passes/fusion/dead_code.h"
#include "passes/fusion/fuse_activations.h"
#include "passes/fusion/fuse_attention.h"
#include "passes/fusion/fuse_conv_norms.h"
#include "passes/fusion/fuse_embedding_grads.h"
#include "passes/fusion/fuse_head_loss.h"
#include "passes/fusion/fuse_linear_adds.h"
#include "passes/fusion/fuse_norm_grads.h"
#include "passes/fusion/fuse_norms.h"
#include "passes/fusion/fuse_optimizer.h"
#include "passes/fusion/fuse_pointwise.h"
#include "passes/fusion/fuse_quantize.h"
#include "passes/fusion/small_m.h"
#include "passes/offload/chunked_update.h"
#include "passes/offload/offload_knowledge.h"
#include "passes/order/schedule.h"
#include "passes/recompute/recompute.h"
#include "passes/recompute/recompute_cheap.h"
#include "passes/recompute/second_backward.h"
#include "passes/training/fp8_activations.h"
#include "passes/training/fp8_weights.h"
#include "passes/training/keep_operands.h"
#include "passes/training/optimizer_in_backward.h"

namespace plimsoll::passes {
namespace {

/// Runs a pass whose report lists replaced values, and keeps the outside holders' ids right.
Status follow_report(PassState& s, Result<Replaced> replaced) {
  if (!replaced) return std::move(replaced).error();
  follow(s.keep, *replaced);
  return Ok{};
}

Status run_common_subexpressions(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report, common_subexpressions(s.graph));
  return follow_report(s, report.replaced);
}

Status run_dead_code(PassState& s) {
  PLIMSOLL_TRY(dead_code(s.graph, {.keep = s.keep}));
  return Ok{};
}

/// A pass that replaces patterns and takes nothing but what to keep.
template <auto kPass>
Status run_fusion(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report, kPass(s.graph, {.keep = s.keep}));
  return follow_report(s, report.replaced);
}

Status run_fuse_head_loss(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report, fuse_head_loss(s.graph, {.keep = s.keep,
                                                              .grad = s.options.grad,
                                                              .frozen = s.options.frozen,
                                                              .chunk_tokens = s.options.chunk_tokens}));
  return follow_report(s, report.replaced);
}

Status run_small_m(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report,
                  small_m(s.graph, {.keep = s.keep,
                                    .most_rows = s.options.small_m,
                                    .multiplied = ops::stored_dtype(s.options.precision)}));
  return follow_report(s, report.replaced);
}

Status run_autocast(PassState& s) {
  PLIMSOLL_ASSIGN(s.precision, autocast(s.graph, {.keep = s.keep,
                                                  .precision = s.options.precision,
                                                  .short_residual = s.options.short_residual,
                                                  .overrides = s.options.precision_overrides,
                                                  .fp8 = s.options.fp8}));
  return Ok{};
}

Status run_fp8(PassState& s) {
  PLIMSOLL_ASSIGN(s.fp8,
                  fp8(s.graph, {.keep = s.keep, .fp8 = s.options.fp8, .last_forward_op = s.last_forward_op}));
  follow(s.keep, s.fp8.replaced);
  return Ok{};
}

Status run_keep_operands(PassState& s) {
  if (!s.options.fp8.dumps_operands) return Ok{};
  return keep_operands(s.graph, s.last_forward_op);
}

Status run_fp8_activations(PassState& s) {
  if (!s.options.fp8.quantised_activations) return Ok{};
  PLIMSOLL_ASSIGN(Fp8ActivationsReport report,
                  fp8_activations(s.graph, {.keep = s.keep, .last_forward_op = s.last_forward_op}));
  follow(s.keep, report.replaced);
  for (Fp8Product& copy : report.copies) s.fp8.products.push_back(std::move(copy));
  return Ok{};
}

Status run_fp8_weights(PassState& s) {
  PLIMSOLL_ASSIGN(Fp8WeightsReport report,
                  fp8_weights(s.graph, {.keep = s.keep, .copies = s.options.fp8.weights}));
  follow(s.keep, report.replaced);
  for (Fp8Product& copy : report.copies) s.fp8.products.push_back(std::move(copy));
  return Ok{};
}

Status run_autodiff(PassState& s) {
  PLIMSOLL_ASSIGN(s.derivative, autodiff(s.graph, s.request));
  return Ok{};
}

Status run_recompute(PassState& s) {
  const bool does_nothing =
      s.options.recompute.kind == RecomputePolicy::Kind::kNone && s.options.recompute.always.empty();
  if (!s.last_forward_op.valid() || (does_nothing && !s.options.look_at_blocks)) return Ok{};
  const RecomputeAnalysis program(s.graph, s.last_forward_op);
  if (s.options.look_at_blocks) s.options.look_at_blocks(program);
  if (does_nothing) return Ok{};
  PLIMSOLL_ASSIGN(s.recomputed, recompute_units(program, s.options.recompute));
  RecomputeOptions values = program.values(s.recomputed);
  values.keep = s.keep;
  PLIMSOLL_TRY(recompute(s.graph, values));
  return Ok{};
}

Status run_recompute_cheap(PassState& s) {
  if (!s.last_forward_op.valid()) return Ok{};  // a program without backward
  PLIMSOLL_TRY(recompute_cheap(s.graph, {.last_forward_op = s.last_forward_op, .keep = s.keep}));
  return Ok{};
}

Status run_half_precision_norms(PassState& s) {
  PLIMSOLL_ASSIGN(s.half_precision_norms, half_precision_norms(s.graph, {.keep = s.keep}));
  return Ok{};
}

/// One update of all tensors needs all gradients, and all states on the device.
Status run_fuse_optimizer(PassState& s) {
  const bool one_by_one = s.options.optimizer_in_backward || s.options.offload.streams_updates();
  if (one_by_one) return Ok{};
  PLIMSOLL_ASSIGN(const auto report,
                  fuse_optimizer(s.graph, {.keep = s.keep, .updates = !s.options.runs_twice}));
  return follow_report(s, report.replaced);
}

Status run_second_backward(PassState& s) {
  if (!s.last_forward_op.valid()) return Ok{};  // a program without backward
  PLIMSOLL_TRY(second_backward(s.graph, {.last_forward_op = s.last_forward_op}));
  return Ok{};
}

Status run_optimizer_in_backward(PassState& s) {
  PLIMSOLL_TRY(optimizer_in_backward(s.graph));
  return Ok{};
}

Status run_fuse_quantize(PassState& s) {
  PLIMSOLL_ASSIGN(const auto report,
                  fuse_quantize(s.graph, {.keep = s.keep, .last_forward_op = s.last_forward_op}));
  return follow_report(s, report.replaced);
}

Status run_schedule(PassState& s) {
  PLIMSOLL_TRY(schedule(s.graph, {.keep = s.keep,
                                  .in_place = s.options.in_place,
                                  .updates_stay = s.options.optimizer_in_backward,
                                  .workspace_bytes = s.options.workspace_bytes}));
  return Ok{};
}

Status run_unshard(PassState& s) {
  return unshard(s.graph, s.options.sharding, {&s.last_forward_op, s.keep});
}

Status run_chunked_update(PassState& s) {
  if (!s.options.offload.streams_updates()) return Ok{};
  PLIMSOLL_TRY(chunked_update(
      s.graph, {.offload = s.options.offload, .keep = s.keep, .workspace_bytes = s.options.workspace_bytes}));
  return Ok{};
}

Status run_offload(PassState& s) {
  return offload(s.graph, s.options.offload, {.last_forward_op = s.last_forward_op, .keep = s.keep},
                 {.scratch = {s.options.workspace_bytes, s.options.host_workspace_bytes},
                  .kernel_seconds = s.options.kernel_seconds,
                  .copy_seconds = s.options.copy_seconds});
}

Status run_in_place(PassState& s) {
  PLIMSOLL_ASSIGN(s.in_place, in_place(s.graph, {.keep = s.keep}));
  return Ok{};
}

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
    {"schedule", kSchedule, "Reorders so that less is alive at once; the last word on order.",
     &Options::schedule, run_schedule},
    {"unshard", kSchedule,
     "Parameters that ranks share are gathered where they are read; behind the order, before copies.",
     nullptr, run_unshard},
    {"update-windows", kArrange,
     "The update of a large parameter that is loaded for it goes window by window; before they are loaded.",
     &Options::chunked_update, run_chunked_update},
    {"offload", kArrange,
     "Copies to and from the host's memory or a disk, as early and as late as the final order has room for.",
     nullptr, run_offload},
    {"in-place", kArrange, "Results take the place of operands that die; needs the final order.",
     &Options::in_place, run_in_place},
});

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::span<const PassEntry> pass_list() { return kPasses; }

Status Pipeline::run(Phase phase, PassState& state) {
  for (const PassEntry& entry : kPasses)
    if (entry.phase == phase && (entry.enabled == nullptr || options_.*entry.enabled))
      PLIMSOLL_TRY(run_one(entry, state));
  return Ok{};
}

Status Pipeline::run_one(const PassEntry& entry, PassState& state) {
  const auto start = std::chrono::steady_clock::now();
  PLIMSOLL_TRY(entry.run(state));
  PassTiming timing{entry.name, ms_since(start), 0, state.graph.order().size()};
  if (!options_.dump_dir.empty()) PLIMSOLL_TRY(dump(entry, state.graph));
  const auto verify_start = std::chrono::steady_clock::now();
  if (options_.verify)
    if (Status valid = ir::verify(state.graph); !valid)
      return std::move(valid).error().at(fmt::format("after pass {}", entry.name));
  timing.verify_ms = ms_since(verify_start);
  progress_.timings.push_back(timing);
  return Ok{};
}

/// The number is the pass's place in the list, whether or not others are switched off.
Status Pipeline::dump(const PassEntry& entry, const ir::Graph& graph) const {
  std::error_code failure;
  std::filesystem::create_directories(options_.dump_dir, failure);
  const auto number = static_cast<size_t>(&entry - kPasses.data()) + 1;
  const std::string path = fmt::format("{}/{:02}-{}.ir", options_.dump_dir, number, entry.name);
  std::ofstream file(path, std::ios::binary);
  file << ir::print(graph);
  file.close();
  if (failure || !file)
    return Error{ErrorCode::kIo, "cannot write the dump of a pass", path,
                 "is the directory writable, the disk full?"};
  return Ok{};
}

Status Pipeline::run_keeping(Phase phase, PassState& state, std::span<ir::ValueId> keep) {
  state.keep.assign(keep.begin(), keep.end());
  state.last_forward_op = progress_.last_forward_op;
  PLIMSOLL_TRY(run(phase, state));
  progress_.last_forward_op = state.last_forward_op;
  std::copy(state.keep.begin(), state.keep.end(), keep.begin());
  return Ok{};
}

Status Pipeline::forward(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  PLIMSOLL_TRY(run_keeping(Phase::kForward, state, keep));
  progress_.precision = std::move(state.precision);
  return Ok{};
}

Result<AutodiffReport> Pipeline::differentiate(ir::Graph& graph, AutodiffOptions request) {
  PassState state{graph, options_};
  progress_.last_forward_op = graph.value(request.loss).producer;
  state.request = std::move(request);
  PLIMSOLL_TRY(run(Phase::kDerivative, state));
  return std::move(state.derivative);
}

Status Pipeline::tidy(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  progress_.is_tidy = true;
  PLIMSOLL_TRY(run_keeping(Phase::kTidy, state, keep));
  progress_.fp8 = std::move(state.fp8);
  empty_removed_ops(graph);
  return Ok{};
}

Status Pipeline::backward(ir::Graph& graph, std::span<ir::ValueId> keep) {
  if (!progress_.is_tidy) PLIMSOLL_TRY(tidy(graph, keep));
  PassState state{graph, options_};
  PLIMSOLL_TRY(run_keeping(Phase::kBackward, state, keep));
  note_half_precision_norms(graph, state.half_precision_norms);
  progress_.recomputed = std::move(state.recomputed);
  return Ok{};
}

void Pipeline::note_half_precision_norms(const ir::Graph& graph, const ShortNormsReport& report) {
  for (const ir::OpId id : report.shortened) {
    const ir::Op& op = graph.op(id);
    for (PrecisionChoice& choice : progress_.precision.choices) {
      if (choice.op != op.def->name || choice.layer != op.layer) continue;
      choice.stores = op.attrs.str("out");
      constexpr std::string_view kWhy = "; products alone read it";
      if (!choice.why.ends_with(kWhy)) choice.why += kWhy;  // a clone of recompute's is shortened as well
    }
  }
}

Status Pipeline::schedule(ir::Graph& graph) {
  PassState state{graph, options_};
  progress_.is_scheduled = true;
  return run_keeping(Phase::kSchedule, state, {});
}

Result<InPlaceReport> Pipeline::arrange(ir::Graph& graph, std::span<ir::ValueId> keep) {
  PassState state{graph, options_};
  if (!progress_.is_scheduled) PLIMSOLL_TRY(run_keeping(Phase::kSchedule, state, keep));
  PLIMSOLL_TRY(run_keeping(Phase::kArrange, state, keep));
  return std::move(state.in_place);
}

}  // namespace plimsoll::passes
