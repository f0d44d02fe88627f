// Shared code of passes that replace patterns of ops: uses of values, positions of ops, fast edits.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ir/builder.h"
#include "ir/graph.h"

namespace plimsoll::passes {

/// Values that a pass replaced, in order; who holds ids across a pass maps them with `follow`.
using Replaced = std::vector<std::pair<ir::ValueId, ir::ValueId>>;
/// Maps each of `values` to what stands for it after `replaced`.
void follow(std::span<ir::ValueId> values, const Replaced& replaced);

/// Edits a graph while a pass walks its original order. New ops stand before or after an op of that order;
/// the order itself is rebuilt once, by `finish`.
class Rewriter {
 public:
  /// `wanted`: values that outside holders need; they count as used.
  Rewriter(ir::Graph& graph, std::span<const ir::ValueId> wanted);

  [[nodiscard]] const ir::Graph& graph() const { return graph_; }
  /// The order as it was at the start; removed ops included.
  [[nodiscard]] const std::vector<ir::OpId>& order() const { return order_; }
  [[nodiscard]] const ir::Op& op(ir::OpId id) const { return graph_.op(id); }
  [[nodiscard]] const ir::Op& producer(ir::ValueId v) const { return graph_.op(graph_.value(v).producer); }
  [[nodiscard]] ir::OpId producer_id(ir::ValueId v) const { return graph_.value(v).producer; }
  [[nodiscard]] bool removed(ir::OpId id) const { return removed_[static_cast<size_t>(id.index)]; }
  [[nodiscard]] const ir::TensorType& type(ir::ValueId v) const { return graph_.type(v); }
  /// Place in the order; a new op has its anchor's.
  [[nodiscard]] size_t position(ir::OpId id) const { return position_[static_cast<size_t>(id.index)]; }
  /// The living ops that use `v`.
  [[nodiscard]] std::span<const ir::OpId> uses(ir::ValueId v) const {
    if (const auto edited = edited_uses_.find(v.index); edited != edited_uses_.end()) return edited->second;
    const auto value = static_cast<size_t>(v.index);
    return value < uses_.size() ? uses_[value] : std::span<const ir::OpId>();
  }
  /// The same, whatever is edited since.
  [[nodiscard]] std::vector<ir::OpId> uses_now(ir::ValueId v) const {
    const std::span<const ir::OpId> now = uses(v);
    return {now.begin(), now.end()};
  }
  [[nodiscard]] bool wanted(ir::ValueId v) const { return wanted_[static_cast<size_t>(v.index)]; }
  /// Whether `v` has this one user and no outside holder.
  [[nodiscard]] bool only_use(ir::ValueId v, ir::OpId user) const;
  /// Whether nothing uses `v`.
  [[nodiscard]] bool unused(ir::ValueId v) const { return uses(v).empty() && !wanted(v); }
  /// Whether every use of `v` but those by `except` stands after `position`.
  [[nodiscard]] bool used_only_after(ir::ValueId v, size_t position, std::span<const ir::OpId> except) const;
  /// Whether `v` or a view of its storage is consumed at a place in (from, to): it cannot be read at `to`
  /// then.
  [[nodiscard]] bool consumed_between(ir::ValueId v, size_t from, size_t to) const;
  /// The first place after `from` where `v` or a view of its storage is consumed; the largest size_t if none.
  [[nodiscard]] size_t next_consumed(ir::ValueId v, size_t from) const;
  /// Whether the operands of `id` may be read at `to`, a later place, as well.
  [[nodiscard]] bool may_sink(ir::OpId id, size_t to) const;

  /// Makes an op just before `anchor`, under its layer; its results.
  std::vector<ir::ValueId> before(ir::OpId anchor, std::string_view name, std::vector<ir::ValueId> inputs,
                                  ir::Attrs attrs = {});
  /// Every use of `from`, an outside holder's too, becomes one of `to`.
  void replace(ir::ValueId from, ir::ValueId to);
  /// Takes an op out.
  void remove(ir::OpId id);

  /// Rebuilds the order. The error of the first op whose operands did not fit, if any.
  Result<Replaced> finish();

 private:
  [[nodiscard]] ir::ValueId root(ir::ValueId v) const;
  std::vector<ir::OpId>& edit_uses(ir::ValueId v);
  void note_new_op(ir::OpId id, ir::OpId anchor);
  void emit(ir::OpId id, std::vector<ir::OpId>& into) const;

  ir::Graph& graph_;
  std::vector<ir::OpId> order_;
  ir::Builder builder_;
  // Few values and ops are touched by a pass, and there are many of both.
  Lists<ir::OpId> uses_;                                            // by value, as they were at the start
  std::unordered_map<int32_t, std::vector<ir::OpId>> edited_uses_;  // by value
  std::vector<bool> wanted_;                                        // by value
  std::unordered_map<int32_t, std::vector<size_t>>
      consumed_;                  // by value that owns a storage: places of its consumers
  std::vector<size_t> position_;  // by op
  std::vector<bool> removed_;     // by op
  std::unordered_map<int32_t, std::vector<ir::OpId>> before_;  // by op: new ops in front of it
  Replaced replaced_;
};

}  // namespace plimsoll::passes
