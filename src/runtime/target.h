// The interface of a device for planning: a pure description, made without the device, so that a plan for one
// that is not here asks the same questions and gets the same answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::runtime {

/// Every answer is a function of the arguments and of what the target was made with.
class Target {
 public:
  virtual ~Target() = default;
  /// "cpu", "discrete".
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Scratch that the op's kernel is given. Bytes.
  [[nodiscard]] virtual int64_t workspace_bytes(const ir::OpTypes& types) const = 0;
  /// Whether the kernel reads that input through strides; otherwise a view is copied before.
  [[nodiscard]] virtual bool accepts_strided(std::string_view op, size_t input) const = 0;
  /// Whether there is a kernel for an op of these types. Errors: kInvalidArgument with what there is no
  /// kernel for, in the words of settings, and as the hint what would do instead.
  [[nodiscard]] virtual Status accepts(const ir::OpTypes& types) const = 0;
  /// Whether kernels read and write memory of that space.
  [[nodiscard]] virtual bool reaches(ir::MemorySpace space) const = 0;
  /// Kernels that the host runs on its own memory beside the device's (ir::Queue::kHost); null: none, where
  /// the host's memory is the device's or nothing of it is known. Lives as long as this.
  [[nodiscard]] virtual const Target* host() const { return nullptr; }
  /// Whether the device's memory is the process's own, which the host reads and writes as well.
  [[nodiscard]] virtual bool shares_host_memory() const = 0;
  /// Whether the operating system counts the device's memory as the process's: not where it is a card's.
  [[nodiscard]] virtual bool is_in_process() const { return true; }
  /// Host memory that the device's libraries take, which no plan owns. Bytes.
  [[nodiscard]] virtual int64_t library_bytes() const { return 0; }
  /// Bytes that the device has for a plan; 0: as much as the process is given.
  [[nodiscard]] virtual int64_t memory_bytes() const = 0;
  /// Threads that compute.
  [[nodiscard]] virtual int num_threads() const = 0;
  /// What bits depend on: "avx2", "avx512_bf16", "amx", …
  [[nodiscard]] virtual std::string_view instruction_set() const = 0;
  /// Whether products of that dtype run on matrix units, many times as fast as the rest.
  [[nodiscard]] virtual bool has_matrix_units(ir::DType dtype) const = 0;
  /// Whether operands that are not stored as they are multiplied are rounded by a kernel of their own.
  [[nodiscard]] virtual bool rounds_apart() const { return false; }
  /// Whether its products sum the rows of an operand beside what they compute (op linear_dw_db).
  [[nodiscard]] virtual bool sums_beside_products() const { return false; }
  /// What a product of operands in FP8 or FP4 (op scaled_matmul) is computed in: "fp8" or "fp4" where the
  /// device has units for the formats, else "bf16", from operands that are stored in them.
  [[nodiscard]] virtual std::string_view computes_codes_in(const ir::OpTypes& /*types*/) const {
    return "bf16";
  }
};

}  // namespace plimsoll::runtime
