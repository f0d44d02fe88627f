// The scopes of a trace. They determine an op's layer, which reports and errors name, its block, which is
// kept or recomputed as a whole, and the precision of its products.
//
//   module layers.0            ─► block 0, "layers.0"           the elements of a list are blocks
//     module layers.0.up       ─► block 0, "layers.0.up"
//   checkpoint                 ─► block 1, "checkpoint#1"       recomputed, whatever the budget
//     autocast bf16            ─► "checkpoint#1.autocast:bf16"  what training.precision_overrides match
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"

namespace plimsoll::library {

class TraceScopes {
 public:
  /// Errors: kInvalidArgument for a kind or a precision that there is not, a module without a name.
  Status push(std::string_view kind, std::string_view argument);
  /// Errors: kInvalidArgument where none is open.
  Status pop();
  [[nodiscard]] bool is_open() const { return !open_.empty(); }

  /// Of the next op; in an autocast scope with its precision (autocast_part).
  [[nodiscard]] std::string layer() const;
  [[nodiscard]] int32_t block() const { return open_.empty() ? ir::kNoBlock : open_.back().block; }
  /// Of the innermost autocast scope, "bf16"; empty: the run's.
  [[nodiscard]] std::string precision() const {
    return open_.empty() ? std::string() : open_.back().precision;
  }

  /// Blocks of checkpoint scopes, ascending.
  [[nodiscard]] const std::vector<int32_t>& checkpointed() const { return checkpointed_; }

 private:
  struct Scope {
    std::string path = {};       ///< of modules, "layers.0.up"
    std::string layer = {};      ///< the same with the blocks' marks
    std::string precision = {};  ///< of autocast; empty: the run's
    int32_t block = ir::kNoBlock;
    bool checkpoints = false;
  };
  Status enter_module(Scope& scope, std::string_view name);
  void enter_checkpoint(Scope& scope);

  std::vector<Scope> open_;
  int32_t num_blocks_ = 0;
  std::vector<int32_t> checkpointed_;
};

/// The part of a layer's name that stands for a precision: "autocast:bf16".
std::string autocast_part(std::string_view precision);

}  // namespace plimsoll::library
