// Runs one op on the CPU and holds it against the op's own `reference` in double: on every
// instruction set of this CPU, with 1, 2, 3 and 8 threads, dense and strided operands, guard zones around
// everything that is written. And on this machine's card, where it has one (on_card.h).
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/on_card.h"
#include "backends/cpu/op_run.h"
#include "backends/cpu/tensors.h"
#include "ops/ops.h"
#include "sanitizer.h"

namespace plimsoll::cpu::fixtures {

inline CpuDevice& device(int threads) {
  static std::map<int, std::unique_ptr<CpuDevice>> devices;
  auto& d = devices[threads];
  if (!d) d = std::make_unique<CpuDevice>(threads);
  return *d;
}

/// Results of the CPU kernel. Operands that the op consumes are consumed.
inline std::vector<Tensor> run_cpu(const OpRun& run, const RunOptions& options = {}) {
  CpuDevice& cpu = device(options.threads);
  const ir::Op op = make_op(run);
  const ir::OpTypes types = types_of(run, op);
  Memories memory;
  std::vector<runtime::TensorRef> in(run.inputs.size()), out;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!op.inputs[i].valid()) continue;
    const bool viewable = run.inputs[i].type.shape.rank() >= 2 && cpu.target().accepts_strided(run.op, i) &&
                          !ir::is_block(run.inputs[i].type.dtype);
    in[i] = place(run.inputs[i], options.strided && viewable, memory, static_cast<size_t>(options.wider));
  }
  for (const auto& type : types.outputs) out.push_back(place(Tensor{type, {}}, false, memory));
  for (const ir::Alias& a : aliases_of(op, types, options.in_place))
    out[static_cast<size_t>(a.output)].data = in[static_cast<size_t>(a.input)].data;

  const auto workspace_bytes = static_cast<size_t>(cpu.target().workspace_bytes(types));
  Guarded workspace((workspace_bytes + 3) / 4);
  const runtime::KernelCall call{
      &op, in, out, {reinterpret_cast<std::byte*>(workspace.data()), workspace_bytes}};
  EXPECT_TRUE(cpu.launch(call, ir::Queue::kCompute).ok());
  EXPECT_TRUE(workspace.intact()) << run.op << ": wrote beyond its workspace";
  for (const auto& m : memory) EXPECT_TRUE(m->intact()) << run.op << ": wrote beyond an operand";
  std::vector<Tensor> results;
  for (const auto& o : out) results.push_back(tensor_at(o.data, o.type));
  return results;
}

/// body(name) on every instruction set of this CPU; beside the thread sanitizer on the widest, as they share
/// work out alike. On none where tests are of the card alone.
template <typename F>
void for_each_isa(F body) {
  if (on_card_alone()) return;
  const std::string widest(isa_name(*select_isa(nullptr)));
  for (const char* isa : {"portable", "avx2", "avx512", "avx512_bf16", "amx"}) {
    if (kThreadSanitizer && isa != widest) continue;
    const auto chosen = select_isa(isa);
    ASSERT_TRUE(chosen.ok());
    if (isa_name(*chosen) == isa) body(std::string(isa));
  }
  ASSERT_TRUE(select_isa(nullptr).ok());
}

/// body(results, where) of every instruction set, and of the card where there is one that takes the op.
template <typename F>
void for_each_backend(const OpRun& run, F body) {
  cuda::CudaDevice* card = cuda::fixtures::card();
  if (card != nullptr && card->target().accepts(types_of(run, make_op(run)))) {
    runs_on_card().push_back(run.op);
    body(run_on_card(*card, run), "card");
  }
  if (on_card_alone()) return;
  for_each_isa([&](const std::string& isa) { body(run_cpu(run), isa); });
}

/// The whole test of an op on one set of operands.
inline void expect_op(const OpRun& run, double tolerance) {
  const auto expected = run_reference(run);
  expect_op_on_card(run, expected, tolerance);
  if (on_card_alone()) return;
  for_each_isa([&](const std::string& isa) {
    const std::string what = run.op + " (" + isa + ")";
    const auto got = run_cpu(run, {.threads = 1});
    for (size_t i = 0; i < got.size(); ++i)
      expect_close(got[i], expected[i], tolerance, what + ", result " + std::to_string(i));
    for (const int threads : kSanitizer ? std::vector{3} : std::vector{2, 3, 8})
      expect_same_bits(got, run_cpu(run, {.threads = threads}),
                       what + ", threads " + std::to_string(threads));
    expect_same_bits(got, run_cpu(run, {.strided = true}), what + ", strided");
    expect_same_bits(got, run_cpu(run, {.in_place = true}), what + ", in place");
  });
}

}  // namespace plimsoll::cpu::fixtures
