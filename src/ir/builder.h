// Builds graphs op by op, with dotted layer names from nested scopes. The later public C++ API.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"

namespace plimsoll::ir {

/// Appends ops to a graph. The first error sticks: later calls return invalid ids, and `status()` tells.
/// So a model reads as straight-line code and is checked once at its end.
class Builder {
 public:
  Builder(Graph& graph, OpLookup lookup) : graph_(graph), lookup_(lookup) {}

  /// Adds a name to the layer path, and may set the block, until the returned guard goes.
  class Scope {
   public:
    Scope(Builder& b, std::string_view name, int32_t block);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    size_t length_;
    int32_t block_;
  };
  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name, block_); }
  /// The scope of one of the model's blocks, or of the update (graph.h).
  [[nodiscard]] Scope block(int32_t block, std::string_view name) { return Scope(*this, name, block); }
  [[nodiscard]] const std::string& layer() const { return layer_; }
  void set_layer(std::string layer) { layer_ = std::move(layer); }
  /// What is appended from now on belongs where `op` does.
  void stand_with(const Op& op) { layer_ = op.layer, block_ = op.block; }

  /// Appends the op `name`; its results, all invalid if the operands do not fit.
  std::vector<ValueId> ops(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {});
  /// The same where there is one result (or the first is wanted).
  ValueId op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs = {});

  /// Declares a state and reads it.
  ValueId state(const StateDecl& decl);
  /// Reads a declared state.
  ValueId read(std::string_view name);
  /// The state takes the value at this point of the program.
  void assign(std::string_view name, ValueId value);

  [[nodiscard]] Graph& graph() { return graph_; }
  [[nodiscard]] const TensorType& type(ValueId v) const;
  [[nodiscard]] Status status() const;

 private:
  Graph& graph_;
  OpLookup lookup_;
  std::string layer_;
  int32_t block_ = kNoBlock;
  std::unique_ptr<Error> error_;
};

}  // namespace plimsoll::ir
