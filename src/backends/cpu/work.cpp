#include "backends/cpu/work.h"

#include <string>
#include <utility>

#include "backends/cpu/collectives.h"
#include "backends/cpu/widened.h"
#include "base/check.h"

namespace plimsoll::cpu {

Work Work::launch(const KernelCall& call, runtime::Communicator* communicator) {
  return {.kind = Kind::kLaunch,
          .kernel = &kernel_of(*call.op),
          .call = call,
          .communicator = communicator != nullptr && is_collective(*call.op) ? communicator : nullptr};
}

Work Work::copy(Place destination, Place source, Bytes bytes, const ir::Op* op) {
  return {.kind = Kind::kCopy,
          .call = {op, {}, {}, {}},
          .destination = destination,
          .source = source,
          .bytes = bytes.count};
}

Work Work::fill(Place destination, Bytes bytes, uint32_t pattern) {
  return {.kind = Kind::kFill, .pattern = pattern, .destination = destination, .bytes = bytes.count};
}

Status run(const Work& work, ThreadPool* pool) {
  if (work.communicator != nullptr) {
    Status status = run_collective(work.call, *work.communicator);
    if (!status) return named(std::move(status).error(), work);
    return status;
  }
  if (work.kind == Work::Kind::kLaunch) {
    PLIMSOLL_CHECK(pool != nullptr);
    run_kernel(*work.kernel, work.call, *pool);
    return Ok{};
  }
  Status status = work.kind == Work::Kind::kCopy ? transfer(work.destination, work.source, work.bytes, pool)
                                                 : fill(work.destination, work.bytes, work.pattern, pool);
  if (!status) return named(std::move(status).error(), work);
  return status;
}

Error named(Error error, const Work& work) {
  const ir::Op* op = work.call.op;
  std::string place = op != nullptr                    ? std::string(op->def->name)
                      : work.kind == Work::Kind::kFill ? "fill"
                                                       : "copy";
  if (op != nullptr && !op->layer.empty()) place += " (" + op->layer + ")";
  return std::move(error).at(place);
}

}  // namespace plimsoll::cpu
