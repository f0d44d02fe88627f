#include "bound.h"

#include <algorithm>
#include <cstring>

#include "ops/op_list.h"

namespace plimsoll::bench {

using ir::MemorySpace;
using ir::Queue;
using runtime::Memory;

void expect_ok(const Status& status) { PLIMSOLL_CHECK(status.ok(), status ? "" : status.error().message()); }

cuda::CudaDevice& card() {
  static const std::unique_ptr<cuda::CudaDevice> device = [] {
    auto made = cuda::CudaDevice::create({});
    PLIMSOLL_CHECK(made.ok(), made ? "" : made.error().message());
    return std::move(*made);
  }();
  return *device;
}

Options& options() {
  static Options options;
  return options;
}
int64_t extent(int64_t full) { return options().small ? std::min<int64_t>(full, 64) : full; }
int times(int full) { return options().small || options().once ? 1 : full; }

namespace {

/// 16 MiB of random words of two halves, each a bf16 between 2^-7 and 2, of either sign: read as f32 they are
/// numbers of the same size, with random digits.
const Memory& random_words() {
  constexpr int64_t kBytes = int64_t{16} << 20;
  static const std::unique_ptr<Memory> words = [] {
    auto memory = card().allocate(MemorySpace::kHostPinned, Bytes(kBytes));
    PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
    uint64_t state = 0x9E3779B97F4A7C15;
    for (int64_t at = 0; at < kBytes; at += 8) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      const uint64_t bits = (state & 0x83ff83ff83ff83ff) | 0x3c003c003c003c00;
      std::memcpy((*memory)->host().data() + at, &bits, sizeof bits);
    }
    return std::move(*memory);
  }();
  return *words;
}

}  // namespace

std::unique_ptr<Memory> take(MemorySpace space, int64_t bytes) {
  auto memory = card().allocate(space, Bytes(bytes));
  PLIMSOLL_CHECK(memory.ok(), memory ? "" : memory.error().message());
  if (space == MemorySpace::kDevice) {
    const int64_t at_once = random_words().size().count;
    for (int64_t at = 0; at < bytes; at += at_once)
      expect_ok(card().copy({memory->get(), at}, {&random_words(), 0}, Bytes(std::min(at_once, bytes - at)),
                            Queue::kCompute));
  }
  expect_ok(card().synchronize(Queue::kCompute));
  return std::move(*memory);
}

runtime::TensorRef Bound::tensor(ir::DType dtype, const ir::Shape& shape) {
  const ir::TensorType type{dtype, shape};
  memory.push_back(take(MemorySpace::kDevice, type.bytes().count));
  return {memory.back()->address(), type, ir::dense_strides(shape)};
}

runtime::TensorRef Bound::zeros(ir::DType dtype, const ir::Shape& shape) {
  const runtime::TensorRef ref = tensor(dtype, shape);
  expect_ok(card().fill({memory.back().get(), 0}, ref.type.bytes(), 0, Queue::kCompute));
  return ref;
}

runtime::TensorRef Bound::indices(const ir::Shape& shape, int32_t value) {
  const runtime::TensorRef ref = tensor(ir::DType::kI32, shape);
  const auto pattern = static_cast<uint32_t>(value);
  expect_ok(card().fill({memory.back().get(), 0}, ref.type.bytes(), pattern, Queue::kCompute));
  return ref;
}

void Bound::infer(const char* name) {
  const ir::OpDef* def = ops::find_op(name);
  PLIMSOLL_CHECK(def != nullptr, name);
  ir::OpTypes types{name, {}, {}, op.attrs};
  for (const auto& ref : in) types.inputs.push_back(ref.type);
  const auto inferred = def->infer(types);
  PLIMSOLL_CHECK(inferred.ok(), inferred ? "" : inferred.error().message());
  for (const ir::TensorType& type : *inferred) out.push_back(tensor(type.dtype, type.shape));
  finish(name);
}

void Bound::finish(const char* name) {
  op.def = ops::find_op(name);
  // By number, as a graph has them; absent ones have none.
  for (const auto& ref : in) op.inputs.push_back({ref ? static_cast<int32_t>(op.inputs.size()) : -1});
  for (size_t i = 0; i < out.size(); ++i) op.outputs.push_back({static_cast<int32_t>(in.size() + i)});
  ir::OpTypes types{name, {}, {}, op.attrs};
  for (const auto& ref : in) types.inputs.push_back(ref.type);
  for (const auto& ref : out) types.outputs.push_back(ref.type);
  const Status accepted = card().target().accepts(types);
  expect_ok(accepted);
  if (const int64_t bytes = card().target().workspace_bytes(types); bytes > 0)
    workspace = take(MemorySpace::kDevice, bytes);
}

void Bound::launch() const {
  std::span<std::byte> scratch;
  if (workspace != nullptr) scratch = {workspace->address(), static_cast<size_t>(workspace->size().count)};
  expect_ok(card().launch({&op, in, out, scratch}, Queue::kCompute));
}

int64_t Bound::bytes() const {
  int64_t sum = 0;
  for (const auto* list : {&in, &out})
    for (const runtime::TensorRef& ref : *list)
      if (ref) sum += ref.type.bytes().count;
  return sum;
}

std::unique_ptr<runtime::CapturedGraph> captured(const Bound& bound, int times) {
  expect_ok(card().begin_capture());
  for (int i = 0; i < times; ++i) bound.launch();
  auto graph = card().end_capture();
  PLIMSOLL_CHECK(graph.ok(), graph ? "" : graph.error().message());
  return std::move(*graph);
}

void run(const runtime::CapturedGraph& graph) {
  expect_ok(card().replay(graph));
  expect_ok(card().synchronize(Queue::kCompute));
}

void measure(benchmark::State& state, const Bound& bound, double operations) {
  const int launches = times(20);
  const auto graph = captured(bound, launches);
  for (auto _ : state) run(*graph);
  using benchmark::Counter;
  if (operations > 0)
    state.counters["TFLOP/s"] = Counter(1e-12 * launches * operations, Counter::kIsIterationInvariantRate);
  else
    state.counters["GB/s"] =
        Counter(1e-9 * launches * static_cast<double>(bound.bytes()), Counter::kIsIterationInvariantRate);
}

}  // namespace plimsoll::bench
