// The update of one tensor, and of many in one op (tensor_chunks.h), in chunks (update_chunk.h).
#include <vector>

#include "backends/cpu/kernels/operands.h"
#include "backends/cpu/kernels/optimizer/update_chunk.h"
#include "backends/cpu/kernels/tensor_chunks.h"
#include "base/check.h"
#include "ops/update_draws.h"

namespace plimsoll::cpu {
namespace {

using ir::DType;

// What all tensors of an update share.
struct UpdateCall {
  ops::UpdateForm form;
  ChunkFunction function;
  std::span<const TensorRef> shared;  // clip, groups, random

  UpdateCall(const ir::Op& op, std::span<const TensorRef> operands)
      : form(ops::update_form(op.def->name, op.attrs)),
        function(chunk_function(*form.rule)),
        shared(operands) {}

  [[nodiscard]] ops::UpdateDraws draws(int64_t key) const {
    const auto* random = reinterpret_cast<const uint32_t*>(shared[2].as<const int32_t>());
    return ops::update_draws(
        shared[2].num_elements(), [&](size_t i) { return random[i]; }, key, form.first);
  }
};

// `in`: parameter, gradient, states; `out`: parameter, states, copy.
void update_chunk(const UpdateCall& call, std::span<const TensorRef> in, std::span<const TensorRef> out,
                  int64_t group, int64_t key, int64_t chunk) {
  const int64_t at = chunk * kChunk, n = std::min(kChunk, in[0].num_elements() - at);
  UpdateChunk a{};
  a.group = call.shared[1].as<const float>() + group * call.shared[1].type.shape.dim(1);
  a.clip = *call.shared[0].as<const float>();
  a.rounded = call.form.rounded.value_or(DType::kF32);
  a.is_plain = !call.form.copy && !call.form.rounded;
  const auto part = [&](const TensorRef& ref) { return ref.data + at * (ir::bits(ref.type.dtype) / 8); };
  for (size_t i = 0; i < in.size(); ++i) {
    a.in[i] = part(in[i]);
    a.in_dtype[i] = in[i].type.dtype;
    a.is_plain = a.is_plain && a.in_dtype[i] == DType::kF32;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    a.out[i] = part(out[i]);
    a.out_dtype[i] = out[i].type.dtype;
  }
  a.draws = call.form.draws;
  const ops::UpdateDraws draws = a.draws ? call.draws(key) : ops::UpdateDraws{};
  a.stream = draws.stream;
  a.block = static_cast<uint32_t>((draws.first + at) / 4);
  call.function(a, n);
}

void update(const KernelCall& call, ThreadPool& pool) {
  const size_t operands = ops::update_form(call.op->def->name, call.op->attrs).rule->num_operands();
  const UpdateCall update(*call.op, call.inputs.subspan(operands));
  const auto tensor = call.inputs.first(operands);
  const int64_t group = call.op->attrs.i64("group");
  const int64_t key = update.form.draws ? call.op->attrs.i64("key") : 0;
  pool.run(ceil_div(tensor[0].num_elements(), kChunk),
           [&](int64_t chunk, int) { update_chunk(update, tensor, call.outputs, group, key, chunk); });
}

int64_t tensors_bytes(const ir::OpTypes& types, int /*num_threads*/) {
  return TensorChunks::table_bytes(static_cast<int64_t>(types.attrs.ints("group").size()));
}

void update_tensors(const KernelCall& call, ThreadPool& pool) {
  const UpdateCall update(*call.op, call.inputs);
  const auto& group_of = call.op->attrs.ints("group");
  const auto* keys = update.form.draws ? &call.op->attrs.ints("key") : nullptr;
  const auto in = call.inputs.subspan(update.form.num_shared());
  const size_t operands = update.form.rule->num_operands(), results = update.form.num_results();
  const TensorChunks chunks(call.workspace.data(), static_cast<int64_t>(group_of.size()),
                            [&](int64_t t) { return in[operands * static_cast<size_t>(t)].num_elements(); });
  pool.run(chunks.num_chunks(), [&](int64_t chunk, int) {
    const int64_t t = chunks.tensor_of(chunk);
    const auto i = static_cast<size_t>(t);
    update_chunk(update, in.subspan(operands * i, operands), call.outputs.subspan(results * i, results),
                 group_of[i], keys == nullptr ? 0 : (*keys)[i], chunk - chunks.first(t));
  });
}

}  // namespace

std::span<const Kernel> optimizer_kernels() {
  static const std::vector<Kernel> kernels = [] {
    std::vector<Kernel> list;
    for (const ops::UpdateRule& rule : ops::update_rules()) {
      list.push_back({.op = rule.name, .run = update, .stored_dtypes = true});
      list.push_back({.op = rule.multi_tensor,
                      .run = update_tensors,
                      .workspace_bytes = tensors_bytes,
                      .stored_dtypes = true});
    }
    return list;
  }();
  return kernels;
}

}  // namespace plimsoll::cpu
