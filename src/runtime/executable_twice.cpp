// Each op twice, and its results' bits compared: what a program computes depends on nothing but its state, so
// where two runs differ the machine has erred.
//
//   a kernel                      run ─► sums of its results ─► run ─► sums             the same, or an error
//   one that overwrites operands  copy them ─► run on the copies ─► sums ─► run ─► sums
#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/check.h"
#include "passes/recompute/overwritten.h"
#include "runtime/executable.h"

namespace plimsoll::runtime {
namespace {

/// Of what a thread sums at a time.
constexpr size_t kPartBytes = size_t{256} << 10;

}  // namespace

Executable::DoubleRun Executable::double_run_of(const Instruction& instruction) const {
  DoubleRun double_run;
  double_run.call = instruction.call;
  const int32_t storage = program_.binding.double_runs[at(instruction.issue.position)];
  if (storage < 0) return double_run;
  double_run.operands.assign(instruction.call.inputs.begin(), instruction.call.inputs.end());
  double_run.operands.insert(double_run.operands.end(), instruction.call.outputs.begin(),
                             instruction.call.outputs.end());
  Location next = place_of_storage(storage);
  for (const passes::StorageRange& range :
       passes::overwritten(program_.graph, program_.binding, *instruction.call.op)) {
    const int64_t lead = range.begin % passes::kStorageAlignment;
    Location original = place_of_storage(range.storage);
    original.offset += range.begin;
    const Location copy{next.memory, next.offset + lead};
    double_run.kept.push_back({copy, original, Bytes(range.end - range.begin)});
    std::byte *from = original.memory->address() + original.offset,
              *to = copy.memory->address() + copy.offset;
    for (TensorRef& operand : double_run.operands)
      if (operand.data >= from && operand.data < from + (range.end - range.begin))
        operand.data = to + (operand.data - from);
    next.offset += round_up(range.end, passes::kStorageAlignment) - (range.begin - lead);
  }
  const std::span<const TensorRef> all(double_run.operands);
  const size_t inputs = instruction.call.inputs.size();
  double_run.call.inputs = all.first(inputs), double_run.call.outputs = all.subspan(inputs);
  return double_run;
}

/// Adds the sums of a result's parts.
Status Executable::add_sums(Location at, int64_t bytes, size_t result, std::vector<ResultSum>& sums) {
  return transfer_->read(at, bytes, [&](std::span<const std::byte> piece, int64_t) -> Status {
    const size_t first = sums.size(), parts = (piece.size() + kPartBytes - 1) / kPartBytes;
    sums.resize(first + parts, {result, {}});
    const auto add = [&](int64_t part) {
      const size_t begin = static_cast<size_t>(part) * kPartBytes;
      BitSum sum;
      sum.add(piece.subspan(begin, std::min(kPartBytes, piece.size() - begin)));
      sums[first + static_cast<size_t>(part)].sum = sum.value();
    };
    if (parts == 1)
      add(0);
    else
      device_.run_parts(static_cast<int64_t>(parts), add);
    return Ok{};
  });
}

Result<std::vector<Executable::ResultSum>> Executable::sums(const Instruction& instruction,
                                                            const DoubleRun* double_run) {
  std::vector<ResultSum> sums;
  PLIMSOLL_TRY(device_.synchronize(instruction.issue.queue));
  if (instruction.issue.kind == passes::Issue::Kind::kCopy) {
    PLIMSOLL_TRY(add_sums(instruction.to, instruction.bytes.count, 0, sums));
    return sums;
  }
  for (size_t i = 0; i < instruction.call.op->outputs.size(); ++i) {
    const ir::ValueId v = instruction.call.op->outputs[i];
    const passes::StorageRange range = passes::range_of(program_.graph, program_.binding, v);
    Location place = place_of(v);
    if (double_run != nullptr)
      for (const DoubleRun::Kept& kept : double_run->kept)
        if (place.memory == kept.original.memory && place.offset >= kept.original.offset &&
            place.offset < kept.original.offset + kept.bytes.count) {
          place = {kept.copy.memory, kept.copy.offset + place.offset - kept.original.offset};
          break;
        }
    PLIMSOLL_TRY(add_sums(place, range.end - range.begin, i, sums));
  }
  return sums;
}

Status Executable::issue_twice(const Instruction& instruction) {
  const bool copies = instruction.issue.kind == passes::Issue::Kind::kCopy;
  const DoubleRun double_run = copies ? DoubleRun{} : double_run_of(instruction);
  for (const DoubleRun::Kept& kept : double_run.kept)
    PLIMSOLL_TRY(device_.copy(kept.copy, kept.original, kept.bytes, instruction.issue.queue));
  PLIMSOLL_TRY(copies ? issue_one(instruction) : device_.launch(double_run.call, instruction.issue.queue));
  PLIMSOLL_ASSIGN(const std::vector<ResultSum> first, sums(instruction, &double_run));
  PLIMSOLL_TRY(issue_one(instruction));
  PLIMSOLL_ASSIGN(const std::vector<ResultSum> second, sums(instruction, nullptr));
  const auto [one, other] = std::ranges::mismatch(first, second, {}, &ResultSum::sum, &ResultSum::sum);
  if (one == first.end()) return Ok{};
  const ir::Op& op = program_.graph.op(program_.graph.order()[at(instruction.issue.position)]);
  const std::string type = copies ? "" : ", " + ir::to_string(program_.graph.type(op.outputs[one->result]));
  return Error{ErrorCode::kDiverged,
               fmt::format("{} gave a different result when it ran again on the same operands (result {}{})",
                           op.def->name, one->result, type),
               fmt::format("{}, op {}{}{}", program_.graph.name, instruction.issue.position,
                           op.layer.empty() ? "" : ", ", op.layer),
               "the machine computes wrongly: test its memory and its cooling"};
}

Status Executable::run_twice(Transfer& transfer, const std::function<void()>& gate) {
  PLIMSOLL_CHECK(!program_.binding.double_runs.empty(), "the plan has no place to run an op twice");
  transfer_ = &transfer;
  PLIMSOLL_TRY(join());
  const size_t cut = first_update();
  PLIMSOLL_TRY(issue(0, cut, Pace::kTwice));
  if (cut < instructions_.size() && gate) gate();
  PLIMSOLL_TRY(issue(cut, instructions_.size(), Pace::kTwice));
  return join();
}

}  // namespace plimsoll::runtime
